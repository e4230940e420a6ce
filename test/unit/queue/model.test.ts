import fc from "fast-check";
import { expect, test } from "vitest";
import { StoreUnavailable } from "../../../src/kernel/errors.ts";
import type { CommandId, SessionKey } from "../../../src/kernel/ids.ts";
import type { StepKind } from "../../../src/store/commands.ts";
import { type FakeClock, fakeClock } from "../../support/clock.ts";
import { type TempHome, tempHome } from "../../support/store.ts";
import { boot, claimAll, type Item, type Model, nextClaim, release, step } from "./reference.ts";
import { makeRig, type Rig, runs, SETTINGS, type Work } from "./rig.ts";

// The queue against the reference, step by step, through crashes, planned stops and a disk that cannot be written (R12).
// Commands happen at whole seconds; what a clock brings about has its own fraction of a second, so that no two things
// happen at the same instant in an order that the reference would have to know.

const TICK_MS = 125;
const GRACE_MS = 5_250;
const BACK_OFF_FRACTION_MS = 125;
const MAX_AGE_MS = 60_000;
const SIZES = { ...SETTINGS.lanes, main: 4, subagent: 2, cron: 2, nestedTotal: 2, total: 6, mainReserved: 1 };
const LANES = ["main", "main", "subagent", "cron", "nested:a", "nested:b", "nested:c"];
const SENDERS = ["owner", "ann", "bob"];
/** The first probes of a pause that began at 0; from the last on there is one every 10 s. */
const PROBES_MS = [500, 1_500, 3_500, 7_500, 15_500];

type End = "done" | "failed" | "handed-back";

/** The reference, and what surrounds it: a disk, work that does not listen, ends that wait for the disk. */
interface World extends Model {
  isBroken: boolean;
  pausedAt: number | undefined;
  ending: { item: Item; end: End }[];
  deaf: { item: Item; until: number }[];
  /** What happens a number of commits from now. */
  soon: { at: number; run: () => void }[];
  round: number;
}

interface Real {
  rig: Rig;
  readonly home: TempHome;
  readonly clock: FakeClock;
  crashAt: string | undefined;
  /** Works of this life that were given up, whose late ends must change nothing. */
  abandoned: Work[];
}

const isDeaf = (item: { text?: string }) => item.text?.includes("deaf") === true;
const cannotBegin = (item: { text?: string }) => item.text?.includes("broken") === true;
interface Told extends Item {
  readonly text: string;
  parts: number;
}

const cannotWrite = (world: World) => world.isBroken || world.pausedAt !== undefined;
const live = (world: World) => world.items.filter((item) => ["queued", "running"].includes(item.state));
const told = (item: Item) => item as Told;
const pick = <T>(list: readonly T[], n: number): T | undefined => list[n % list.length];

/** Work in the test's hand: running or deaf, and not waiting for the disk with its end. */
const inHand = (world: World) => world.held.filter((item) => !world.ending.some((one) => one.item === item));

function later(world: World, commits: number, run: () => void): void {
  world.soon.push({ at: world.round + commits, run });
}

function settle(world: World): void {
  for (;;) {
    const next = world.soon.toSorted((a, b) => a.at - b.at)[0];
    if (next === undefined) return;
    world.soon.splice(world.soon.indexOf(next), 1);
    world.round = next.at;
    next.run();
  }
}

function pump(world: World): void {
  if (world.pausedAt !== undefined) return;
  if (world.isBroken) {
    if (nextClaim(world) !== undefined) world.pausedAt = world.now;
    return;
  }
  const before = new Set(world.held);
  claimAll(world);
  for (const item of world.held.filter((one) => !before.has(one) && cannotBegin(told(one)))) {
    // The claim, the claim without a beginning, and the end.
    later(world, 3, () => finish(world, item, "failed"));
  }
}

function finish(world: World, item: Item, end: End): void {
  if (cannotWrite(world)) {
    world.pausedAt ??= world.now;
    world.ending.push({ item, end });
    return;
  }
  apply(item, end);
  release(world, item);
  pump(world);
}

function apply(item: Item, end: End): void {
  if (item.state !== "running") return;
  item.state = end === "handed-back" ? "queued" : end;
  if (end === "handed-back") return;
  item.open = false;
  told(item).parts = 1;
}

function resume(world: World): void {
  world.pausedAt = undefined;
  const { ending } = world;
  world.ending = [];
  pump(world);
  for (const { item, end } of ending) later(world, 1, () => finish(world, item, end));
  settle(world);
}

function isProbed(pausedForMs: number): boolean {
  return PROBES_MS.includes(pausedForMs) || (pausedForMs > 15_500 && pausedForMs % 10_000 === 5_500);
}

/** Lets a tick pass in the reference. */
function tick(world: World): void {
  world.now += TICK_MS;
  if (world.pausedAt !== undefined && !world.isBroken && isProbed(world.now - world.pausedAt)) resume(world);
  for (const { item } of world.deaf.filter(({ until }) => until === world.now)) stopsListening(world, item);
  pump(world);
  settle(world);
}

function stopsListening(world: World, item: Item): void {
  world.deaf = world.deaf.filter((one) => one.item !== item);
  finish(world, item, "handed-back");
}

function reboot(world: World, planned: boolean): void {
  Object.assign(world, { isBroken: false, pausedAt: undefined, ending: [], deaf: [] });
  const before = new Map(world.items.map((item) => [item, item.state]));
  boot(world, planned, MAX_AGE_MS);
  for (const item of world.items) if (item.state === "dead" && before.get(item) !== "dead") told(item).parts = 1;
  pump(world);
  settle(world);
}

async function nextLife(real: Real): Promise<void> {
  real.rig.kill();
  real.abandoned = [];
  real.crashAt = undefined;
  real.rig = await openRig(real);
  await real.rig.start();
  await real.rig.quiet();
}

function openRig(real: Pick<Real, "home" | "clock"> & { crashAt: string | undefined }): Promise<Rig> {
  return makeRig({
    ...{ home: real.home, clock: real.clock, isDeaf },
    settings: { lanes: { ...SIZES, agingMs: 4_000 }, maxAgeMs: MAX_AGE_MS, abortGraceMs: GRACE_MS },
    onBegin: (command) => {
      if (cannotBegin(command)) throw new TypeError("cannot begin");
    },
    crashPoint: (name) => {
      if (name === real.crashAt) throw new Error("the process is gone");
    },
  });
}

type Step = fc.AsyncCommand<World, Real>;

/** A command of the test: `run` changes both, and then everything visible is compared. */
function action(
  name: string,
  check: (world: World) => boolean,
  run: (world: World, real: Real) => Promise<void>,
): Step {
  return {
    check,
    async run(world, real) {
      await run(world, real);
      await real.rig.quiet();
      settle(world);
      compare(world, real);
    },
    toString: () => name,
  };
}

function compare(world: World, { rig }: Real): void {
  for (const item of world.items) {
    const row = rig.row(item.id as CommandId);
    const { state, open, parts } = told(item);
    expect({ state: row.state, open: row.open, parts: rig.told(row.id).length }).toEqual({ state, open, parts });
    if (live(world).includes(item)) expect(row.strikes).toBe(item.strikes);
  }
  expect(rig.claims).toEqual(
    world.claims.filter((id) => !cannotBegin(told(world.items.find((one) => one.id === id)!))),
  );
  expect(rig.running().toSorted()).toEqual(
    inHand(world)
      .map(({ id }) => id)
      .toSorted(),
  );
  expect(rig.failures).toEqual([]);
  const sessions = rig.host.opened.db.prepare("select session from commands where state = 'running'").pluck().all();
  expect(new Set(sessions).size).toBe(sessions.length);
  for (const { lane, running, size } of rig.queue.lanes()) {
    expect(running).toBe(world.held.filter((item) => item.lane === lane).length);
    expect(running).toBeLessThanOrEqual(size);
  }
}

interface AcceptInput {
  readonly lane: string;
  readonly session: number;
  readonly sender: string;
  readonly priority: number;
  readonly backOffS: number;
  readonly isCompletion: boolean;
  readonly source: string;
  readonly text: string;
}

const accept = (input: AcceptInput): Step =>
  action(
    `accept(${JSON.stringify(input)})`,
    () => true,
    async (world, real) => {
      const { lane, sender, priority, source, text } = input;
      const kind = input.isCompletion ? "completion" : "message";
      const session = `s${input.session}` as SessionKey;
      const { clock, rig } = real;
      const notBefore = input.backOffS === 0 ? 0 : world.now + input.backOffS * 1_000 + BACK_OFF_FRACTION_MS;
      const write = rig.accept({ lane, session, sender, actor: sender, priority, source, text, kind }, notBefore);
      if (cannotWrite(world)) {
        await expect(write).rejects.toThrow(StoreUnavailable);
        world.pausedAt ??= world.now;
        return;
      }
      const item: Told = {
        ...{ id: await write, lane, session, sender, actor: sender, source, kind, text, notBefore },
        ...{ acceptedAt: clock.now(), key: clock.now() - priority * 4_000, state: "queued", open: false, parts: 0 },
        ...{ strikes: 0, strikeKind: undefined, deathStep: 0, steps: [] },
      };
      world.items.push(item);
      pump(world);
    },
  );

const end = (n: number, state: "done" | "failed" | "throws"): Step =>
  action(
    `end(${n}, ${state})`,
    (world) => inHand(world).length > 0,
    async (world, { rig }) => {
      const item = pick(inHand(world), n)!;
      const work = rig.works.get(item.id as CommandId)!;
      if (state === "throws") work.reject(new Error("a bug in the work"));
      else work.finish(state);
      world.deaf = world.deaf.filter((one) => one.item !== item);
      const wasStopped = item.state !== "running";
      finish(world, item, state === "throws" ? (wasStopped ? "handed-back" : "failed") : state);
    },
  );

const progress = (n: number, next: StepKind): Step =>
  action(
    `step(${n}, ${next})`,
    (world) => inHand(world).length > 0 && !cannotWrite(world),
    async (world, { rig }) => {
      const item = pick(inHand(world), n)!;
      const stepped = rig.works.get(item.id as CommandId)!.step(next);
      if (item.state !== "running") return await expect(stepped).rejects.toThrow("no longer held");
      await stepped;
      step(world, item, next);
      pump(world);
    },
  );

const cancel = (n: number): Step =>
  action(
    `cancel(${n})`,
    (world) => world.items.length > 0,
    async (world, { rig }) => {
      // Mostly something live.
      const item = pick(n % 5 === 0 ? world.items : [...live(world), ...world.items.slice(0, 1)], n)!;
      const work = rig.works.get(item.id as CommandId);
      const answer = rig.queue.cancel(item.id as CommandId, { reason: "stopped" });
      if (cannotWrite(world)) {
        await expect(answer).rejects.toThrow(StoreUnavailable);
        world.pausedAt ??= world.now;
        return;
      }
      const was = item.state;
      if (live(world).includes(item)) Object.assign(item, { state: "cancelled", open: false });
      expect(await answer).toBe(item.state);
      pump(world);
      if (was !== "running") return;
      expect(work?.signal.aborted).toBe(true);
      if (isDeaf(told(item))) world.deaf.push({ item, until: world.now + GRACE_MS });
      else finish(world, item, "handed-back");
    },
  );

const lateEnds = (): Step =>
  action(
    "lateEnds()",
    (world) => !cannotWrite(world),
    async (_, { abandoned }) => {
      for (const work of abandoned.splice(0)) {
        await expect(work.step()).rejects.toThrow("no longer held");
        work.finish();
      }
    },
  );

type Death = "quiet" | "commit.before:finish" | "commit.after:finish";

const crash = (n: number, death: Death): Step =>
  action(
    `crash(${n}, ${death})`,
    () => true,
    async (world, real) => {
      const item = pick(inHand(world), n);
      if (death !== "quiet" && item?.state === "running" && !cannotWrite(world)) {
        real.crashAt = death;
        real.rig.works.get(item.id as CommandId)!.finish();
        await real.rig.quiet();
        if (death === "commit.after:finish") apply(item, "done");
      }
      await nextLife(real);
      reboot(world, false);
    },
  );

const stop = (): Step =>
  action(
    "stop()",
    (world) => !cannotWrite(world),
    async (world, real) => {
      const { rig, clock } = real;
      await rig.store.write("plan-stop", (tx) => tx.meta.planStop(rig.store.generation));
      const drained = rig.queue.drain(1_000);
      await clock.advance(1_000);
      await rig.quiet();
      await clock.advance(2_000);
      await drained;
      world.now += 3_000;
      await nextLife(real);
      reboot(world, true);
    },
  );

const advance = (seconds: number): Step =>
  action(
    `advance(${seconds} s)`,
    () => true,
    async (world, { clock, rig, ...real }) => {
      for (let passed = 0; passed < seconds * 1_000; passed += TICK_MS) {
        const before = new Map(rig.works);
        await clock.advance(TICK_MS);
        await rig.quiet();
        const overdue = world.deaf.filter(({ until }) => until === world.now + TICK_MS);
        real.abandoned.push(...overdue.map(({ item }) => before.get(item.id as CommandId)!));
        for (const { item } of overdue) rig.forget(item.id as CommandId);
        tick(world);
      }
    },
  );

const disk = (isBroken: boolean): Step =>
  action(
    isBroken ? "breakDisk()" : "mendDisk()",
    (world) => world.isBroken !== isBroken,
    async (world, { rig }) => {
      rig.host.opened.db.pragma(`query_only = ${isBroken ? 1 : 0}`);
      world.isBroken = isBroken;
    },
  );

/** Whatever happened, everything accepted comes to an end. */
async function runDry(world: World, real: Real): Promise<void> {
  if (world.isBroken) await disk(false).run(world, real);
  for (let turns = 0; live(world).length > 0 || world.held.length > 0; turns += 1) {
    expect(turns).toBeLessThan(300);
    if (inHand(world).length > 0) await end(0, "done").run(world, real);
    else await advance(1).run(world, real);
  }
}

const acceptInput: fc.Arbitrary<AcceptInput> = fc.record({
  lane: fc.constantFrom(...LANES),
  session: fc.nat(5),
  sender: fc.constantFrom(...SENDERS),
  priority: fc.constantFrom(1, 1, 0, -1),
  backOffS: fc.constantFrom(0, 0, 0, 1, 3),
  isCompletion: fc.constantFrom(false, false, false, false, false, true),
  source: fc.constantFrom("chat", "chat", "chat", "announce"),
  text: fc.constantFrom("plain", "plain", "plain", "deaf", "deaf", "broken"),
});

const n = fc.nat(20);
const ends = fc.constantFrom<("done" | "failed" | "throws")[]>("done", "done", "failed", "throws");
const kinds = fc.constantFrom<StepKind[]>("model", "tool");
const deaths = fc.constantFrom<Death[]>("quiet", "quiet", "quiet", "commit.before:finish", "commit.after:finish");
const steps = fc.commands<World, Real, false>(
  [
    acceptInput.map(accept),
    acceptInput.map(accept),
    acceptInput.map(accept),
    fc.tuple(n, ends).map(([i, how]) => end(i, how)),
    fc.tuple(n, ends).map(([i, how]) => end(i, how)),
    fc.tuple(n, kinds).map(([i, kind]) => progress(i, kind)),
    fc.tuple(n, kinds).map(([i, kind]) => progress(i, kind)),
    fc.tuple(n, deaths).map(([i, death]) => crash(i, death)),
    fc.tuple(n, deaths).map(([i, death]) => crash(i, death)),
    fc.tuple(n, deaths).map(([i, death]) => crash(i, death)),
    n.map(cancel),
    n.map(cancel),
    fc.constant(lateEnds()),
    fc.constant(stop()),
    fc.constantFrom(1, 1, 2, 6, 70).map(advance),
    fc.constant(disk(true)),
    fc.constant(disk(false)),
    fc.constant(disk(false)),
  ],
  { maxCommands: 60, size: "max" },
);

async function runOne(waiting: readonly AcceptInput[], commands: Iterable<Step>): Promise<void> {
  await using home = await tempHome();
  const clock = fakeClock();
  const real: Real = { ...{ home, clock, crashAt: undefined, abandoned: [] }, rig: undefined as never };
  real.rig = await openRig(real);
  const world: World = {
    ...{ items: [], sizes: SIZES, now: clock.now(), held: [], alone: undefined, claims: [] },
    ...{ isBroken: false, pausedAt: undefined, ending: [], deaf: [], soon: [], round: 0 },
  };
  try {
    await real.rig.start();
    for (const input of waiting) await accept(input).run(world, real);
    await fc.asyncModelRun(() => ({ model: world, real }), commands);
    await runDry(world, real);
  } finally {
    real.rig.kill();
  }
}

test("in every sequence of events the queue does what the reference does, and everything accepted ends once (R12; G1, G6, G7, G8, G9, G18)", async () => {
  const waiting = fc.array(acceptInput, { maxLength: 10, size: "max" });
  await fc.assert(fc.asyncProperty(waiting, steps, runOne), { numRuns: runs(100) });
}, 600_000);
