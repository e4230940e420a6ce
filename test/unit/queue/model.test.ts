import fc from "fast-check";
import { test } from "vitest";
import type { StepKind } from "../../../src/store/commands.ts";
import { fakeClock } from "../../support/clock.ts";
import { tempHome } from "../../support/store.ts";
import {
  type AcceptInput,
  accept,
  advance,
  cancel,
  crash,
  type Death,
  disk,
  end,
  lateEnds,
  openRig,
  progress,
  type Real,
  runDry,
  type Step,
  stop,
} from "./actions.ts";
import { runs } from "./rig.ts";
import { SIZES, type World } from "./world.ts";

// The queue against the reference, step by step, through crashes, planned stops and a disk that cannot be written (R12).

const LANES = ["main", "main", "subagent", "cron", "nested:a", "nested:b", "nested:c"];
const SENDERS = ["owner", "ann", "bob"];

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
