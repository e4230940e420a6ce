import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { CommandId, SessionKey } from "../../../src/kernel/ids.ts";
import { laneSize, OWNER } from "../../../src/queue/lane.ts";
import type { Command } from "../../../src/store/commands.ts";
import type { FakeClock } from "../../support/clock.ts";
import { openTestStore, type TestStore } from "../../support/store.ts";
import { LANES, makeRig, type Rig, runs, type Work } from "./rig.ts";

// Q2.1: whatever way a task ends, its slot is free within timeout + grace. Random schedules on the fake clock: no limit is ever
// passed, no count is ever negative, and the queue always drains. Nothing here knows how the queue chooses.

const GRACE_MS = 5_000;
const SIZES = { ...LANES, main: 3, subagent: 2, cron: 1, nestedTotal: 2, total: 5, mainReserved: 1 };

const throws = () => {
  throw new Error("a bug");
};

/** The ways in which work ends, or does not. */
const ENDINGS: Readonly<Record<string, (work: Work) => void>> = {
  answers: (work) => work.finish(),
  fails: (work) => work.finish("failed"),
  rejects: (work) => work.reject(new Error("a bug")),
  "rejects with nothing": (work) => work.reject(undefined),
  "cannot be written": (work) => work.end({ state: "done", outcome: { reason: "answered" }, write: throws }),
  // The second claim answers.
  "is handed back": (work) => (work.command.claim > 1 ? work.finish() : work.end({ state: "handed-back" })),
  hangs: () => {},
  "cannot begin": () => {},
  "throws at once": () => {},
};

interface Plan {
  readonly lane: string;
  readonly session: number;
  readonly sender: string;
  readonly ending: string;
  readonly acceptedAtMs: number;
  readonly runsMs: number;
  readonly backOffMs: number;
  /** When it is cancelled, in ms after its acceptance; what hangs is always cancelled. */
  readonly cancelledMs: number;
  readonly listens: boolean;
}

const ms = (max: number) => fc.nat(max);
const plan: fc.Arbitrary<Plan> = fc.record({
  lane: fc.constantFrom("main", "main", "main", "subagent", "cron", "background", "nested:a", "nested:b", "nested:c"),
  session: fc.nat(6),
  sender: fc.constantFrom(OWNER, "ann", "bob"),
  ending: fc.constantFrom(...Object.keys(ENDINGS)),
  acceptedAtMs: ms(3_000),
  runsMs: ms(4_000),
  backOffMs: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: ms(5_000) }),
  cancelledMs: fc.oneof(
    { weight: 3, arbitrary: fc.constant(Number.POSITIVE_INFINITY) },
    { weight: 1, arbitrary: ms(4_000) },
  ),
  listens: fc.boolean(),
});

let host: TestStore<FakeClock>;
beforeAll(async () => {
  host = await openTestStore();
  host.opened.db.pragma("synchronous = OFF");
});
afterAll(() => host[Symbol.asyncDispose]());

const planOf = (command: Command): Plan => JSON.parse(command.text, (_, value) => value ?? Number.POSITIVE_INFINITY);

/** What must hold at every moment, by the queue's own count and by the rows. */
function checkLimits(rig: Rig): void {
  const lanes = rig.queue.lanes();
  for (const { lane, running, size } of lanes) {
    expect(running).toBeGreaterThanOrEqual(0);
    expect(running).toBeLessThanOrEqual(size);
    expect(size).toBe(laneSize(lane, SIZES));
  }
  const total = lanes.reduce((sum, lane) => sum + lane.running, 0);
  const main = lanes.find(({ lane }) => lane === "main")!.running;
  const nested = lanes.filter(({ lane }) => lane.startsWith("nested:")).reduce((sum, lane) => sum + lane.running, 0);
  expect(total).toBeLessThanOrEqual(SIZES.total);
  expect(total - main).toBeLessThanOrEqual(SIZES.total - SIZES.mainReserved);
  expect(nested).toBeLessThanOrEqual(SIZES.nestedTotal);
  const rows = rig.store.read.commands.running();
  expect(new Set(rows.map(({ session }) => session)).size).toBe(rows.length);
  expect(rows.length).toBeLessThanOrEqual(total);
  const othersInMain = rows.filter(({ lane, actor }) => lane === "main" && actor !== OWNER);
  expect(othersInMain.length).toBeLessThanOrEqual(SIZES.main - SIZES.mainReserved);
  for (const sender of ["ann", "bob"]) {
    expect(othersInMain.filter(({ actor }) => actor === sender).length).toBeLessThanOrEqual(Math.ceil(SIZES.main / 2));
  }
}

function openRig(): Promise<Rig> {
  return makeRig({
    host,
    settings: { lanes: SIZES, abortGraceMs: GRACE_MS },
    isDeaf: (command) => !planOf(command).listens,
    onBegin: (command) => {
      if (planOf(command).ending === "cannot begin") throws();
    },
    onRun: (work) => {
      const { ending, runsMs } = planOf(work.command);
      if (ending === "throws at once") throws();
      host.clock.after(runsMs, () => ENDINGS[ending]!(work));
    },
  });
}

/** Accepts each command at its time and cancels it at its time. */
function schedule(rig: Rig, plans: readonly Plan[]): { ids: CommandId[]; untilMs: number } {
  const ids: CommandId[] = [];
  let untilMs = 0;
  for (const one of plans) {
    const { lane, session, sender, acceptedAtMs, backOffMs, ending } = one;
    const cancelledMs = ending === "hangs" ? Math.min(one.cancelledMs, 6_000) : one.cancelledMs;
    const fields = { lane, sender, actor: sender, session: `s${session}` as SessionKey, text: JSON.stringify(one) };
    rig.clock.after(acceptedAtMs, () => {
      const notBefore = backOffMs === 0 ? 0 : rig.clock.now() + backOffMs;
      rig.accept(fields, notBefore).then((id) => {
        ids.push(id);
        if (cancelledMs < Number.POSITIVE_INFINITY) cancelLater(rig, id, cancelledMs);
      }, expect.unreachable);
    });
    untilMs = Math.max(untilMs, acceptedAtMs + (cancelledMs === Number.POSITIVE_INFINITY ? 0 : cancelledMs));
  }
  return { ids, untilMs };
}

function cancelLater(rig: Rig, id: CommandId, ms: number): void {
  rig.clock.after(ms, () => {
    rig.queue.cancel(id, { reason: "stopped" }).catch(expect.unreachable);
  });
}

const STEP_MS = 500;

test("in every schedule no limit is passed and the queue drains, whatever way its commands end (Q2.1)", async () => {
  const property = fc.asyncProperty(fc.array(plan, { maxLength: 15, size: "max" }), async (plans) => {
    host.opened.db.exec("delete from outbox; delete from steps; delete from commands");
    const rig = await openRig();
    await rig.start();
    const { ids, untilMs } = schedule(rig, plans);
    // All of it one after the other, each with its back-off, its two claims and its grace.
    const boundMs = untilMs + plans.reduce((sum, one) => sum + one.backOffMs + 2 * one.runsMs + GRACE_MS, 0) + 10_000;
    let passedMs = 0;
    for (; passedMs <= boundMs; passedMs += STEP_MS) {
      await rig.pass(STEP_MS);
      checkLimits(rig);
      const isOver =
        passedMs >= untilMs && rig.queue.size() === 0 && rig.queue.lanes().every(({ running }) => running === 0);
      if (isOver) break;
    }
    expect(passedMs).toBeLessThanOrEqual(boundMs);
    expect(ids).toHaveLength(plans.length);
    expect(ids.filter((id) => !["done", "failed", "cancelled"].includes(rig.state(id)))).toEqual([]);
    expect(ids.filter((id) => rig.told(id).length !== (rig.state(id) === "cancelled" ? 0 : 1))).toEqual([]);
    expect(rig.failures).toEqual([]);
    // Late ends of work that was given up, and no timer of the queue's own.
    await rig.pass(20_000);
    checkLimits(rig);
    expect(rig.clock.waiting()).toBe(0);
    expect(rig.queue.lanes().map(({ running }) => running)).toEqual([0, 0, 0, 0, 0]);
  });
  await fc.assert(property, { numRuns: runs(1_000) });
}, 600_000);
