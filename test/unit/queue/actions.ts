// Owns: what can happen to the queue in the comparison with the reference: each action changes both, and then everything that
// can be seen is compared.
import type fc from "fast-check";
import { expect } from "vitest";
import { StoreUnavailable } from "../../../src/kernel/errors.ts";
import type { CommandId, SessionKey } from "../../../src/kernel/ids.ts";
import type { StepKind } from "../../../src/store/commands.ts";
import type { FakeClock } from "../../support/clock.ts";
import type { TempHome } from "../../support/store.ts";
import { step } from "./reference.ts";
import { makeRig, type Rig, type Work } from "./rig.ts";
import {
  apply,
  BACK_OFF_FRACTION_MS,
  cannotBegin,
  cannotWrite,
  finish,
  GRACE_MS,
  inHand,
  isDeaf,
  live,
  MAX_AGE_MS,
  pump,
  reboot,
  SIZES,
  settle,
  TICK_MS,
  type Told,
  tick,
  told,
  type World,
} from "./world.ts";

export interface Real {
  rig: Rig;
  readonly home: TempHome;
  readonly clock: FakeClock;
  crashAt: string | undefined;
  /** Works of this life that were given up, whose late ends must change nothing. */
  abandoned: Work[];
}

const pick = <T>(list: readonly T[], n: number): T | undefined => list[n % list.length];

async function nextLife(real: Real): Promise<void> {
  real.rig.kill();
  real.abandoned = [];
  real.crashAt = undefined;
  real.rig = await openRig(real);
  await real.rig.start();
  await real.rig.quiet();
}

export function openRig(real: Pick<Real, "home" | "clock"> & { crashAt: string | undefined }): Promise<Rig> {
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

export type Step = fc.AsyncCommand<World, Real>;

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

export interface AcceptInput {
  readonly lane: string;
  readonly session: number;
  readonly sender: string;
  readonly priority: number;
  readonly backOffS: number;
  readonly isCompletion: boolean;
  readonly source: string;
  readonly text: string;
}

export const accept = (input: AcceptInput): Step =>
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

export const end = (n: number, state: "done" | "failed" | "throws"): Step =>
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

export const progress = (n: number, next: StepKind): Step =>
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

export const cancel = (n: number): Step =>
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

export const lateEnds = (): Step =>
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

export type Death = "quiet" | "commit.before:finish" | "commit.after:finish";

export const crash = (n: number, death: Death): Step =>
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

export const stop = (): Step =>
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

export const advance = (seconds: number): Step =>
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

export const disk = (isBroken: boolean): Step =>
  action(
    isBroken ? "breakDisk()" : "mendDisk()",
    (world) => world.isBroken !== isBroken,
    async (world, { rig }) => {
      rig.host.opened.db.pragma(`query_only = ${isBroken ? 1 : 0}`);
      world.isBroken = isBroken;
    },
  );

/** Whatever happened, everything accepted comes to an end. */
export async function runDry(world: World, real: Real): Promise<void> {
  if (world.isBroken) await disk(false).run(world, real);
  for (let turns = 0; live(world).length > 0 || world.held.length > 0; turns += 1) {
    expect(turns).toBeLessThan(300);
    if (inHand(world).length > 0) await end(0, "done").run(world, real);
    else await advance(1).run(world, real);
  }
}
