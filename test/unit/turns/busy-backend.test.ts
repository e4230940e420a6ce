// What a call does at a backend that answers only so many at once (setting `maxConcurrent`).
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Backend, BackendEvent } from "../../../src/turns/backends/port.ts";
import { type ChainDeps, callModel, type ModelEnd } from "../../../src/turns/chain.ts";
import { makeGrants } from "../../../src/turns/grants.ts";
import { type FakeClock, fakeClock } from "../../support/clock.ts";
import { prompt } from "../../support/model-endpoint.ts";

const LIMITS: ChainDeps["limits"] = {
  attemptTimeoutMs: 5_000,
  firstTokenMs: 1_000,
  idleMs: 1_000,
  turnTimeoutMs: 60_000,
  graceMs: 300,
  attempts: 1,
};

const ANSWER: BackendEvent[] = [
  { type: "text", delta: "yes" },
  { type: "finish", reason: "stop", usage: { inputTokens: 1, outputTokens: 1 } },
];
const FAILURE: BackendEvent[] = [{ type: "failure", failure: { class: "server", message: "broken" } }];

const ABORTED: BackendEvent[] = [{ type: "failure", failure: { class: "aborted", message: "stopped" } }];

/** False when it was stopped before that. */
function passes(ms: number, clock: FakeClock, signal: AbortSignal): Promise<boolean> {
  return clock.sleep(ms, signal).then(
    () => true,
    () => false,
  );
}

/** What the backend does with a call once it has it: after `ms` its events, or it hangs and ignores that it is stopped. */
type Behaviour = { readonly ms: number; readonly events: readonly BackendEvent[] | "throws" | "hangs" };

function makeStage(size: number | undefined, behaviour: (call: number) => Behaviour) {
  const clock = fakeClock();
  const told: string[] = [];
  let calls = 0;
  let inside = 0;
  let most = 0;
  const slow: Backend = {
    ...{ name: "slow", kind: "test", model: "m", journal: "steps" },
    grants: size === undefined ? undefined : makeGrants(size),
    async *complete(_, signal) {
      calls += 1;
      const { ms, events } = behaviour(calls);
      if (events === "hangs") return await new Promise<never>(() => {});
      inside += 1;
      most = Math.max(most, inside);
      try {
        if (!(await passes(ms, clock, signal))) return yield* ABORTED;
        if (events === "throws") throw new Error("the adapter broke");
        yield* events;
      } finally {
        inside -= 1;
      }
    },
  };
  const other: Backend = {
    ...{ name: "other", kind: "test", model: "m", journal: "steps" },
    async *complete() {
      yield* ANSWER;
    },
  };
  let ids = 0;
  const call = (options: { backends?: Backend[]; signal?: AbortSignal; orderKey?: number; limits?: object } = {}) => {
    ids += 1;
    const id = ids;
    const deps: ChainDeps = {
      backends: options.backends ?? [slow],
      caller: { id, orderKey: options.orderKey ?? id, forPerson: true },
      limits: { ...LIMITS, ...options.limits },
      clock,
      emit: {
        start: () => told.push(`${id} starts`),
        text: () => {},
        attempt: (backend, failed) => told.push(`${id} ${backend} ${failed ?? "ok"}`),
        note: (note) => told.push(`${id} ${note}`),
      },
      log: () => {},
      jitter: () => 0,
    };
    return callModel(prompt("hello"), deps, options.signal ?? new AbortController().signal);
  };
  return { clock, call, slow, other, told, calls: () => calls, most: () => most };
}

const textOf = (end: ModelEnd) => (end.ok ? `${end.backend}: ${end.reply.text}` : end.message);

describe("a call of a backend that is busy", () => {
  test("begins only when the one before has ended, and its timers begin with it (Q15.1)", async () => {
    const { clock, call, told } = makeStage(1, () => ({ ms: 900, events: ANSWER }));
    const all = Promise.all([1, 2, 3, 4].map(() => call()));
    // The last waits for longer than a first token may take.
    await clock.advance(4 * 900);
    expect((await all).map(textOf)).toEqual(Array(4).fill("slow: yes"));
    expect(told.filter((line) => !line.includes("waiting"))).toEqual([
      ...["1 starts", "1 slow ok", "2 starts", "2 slow ok"],
      ...["3 starts", "3 slow ok", "4 starts", "4 slow ok"],
    ]);
  });

  test("is told to those who watch, and shows no answer before it has begun", async () => {
    const { clock, call, told } = makeStage(1, () => ({ ms: 900, events: ANSWER }));
    const all = Promise.all([call(), call()]);
    await clock.advance(899);
    expect(told).toEqual(["2 waiting for slow, which is busy", "1 starts"]);
    await clock.advance(901);
    await all;
  });

  test("goes to the next backend when it has waited as long as a try may take", async () => {
    const { clock, call, slow, other, told } = makeStage(1, () => ({ ms: 5_001, events: ANSWER }));
    const first = call({ limits: { attemptTimeoutMs: 0, firstTokenMs: 0 } });
    const second = call({ backends: [slow, other] });
    await clock.advance(4_999);
    expect(told).not.toContain("2 starts");
    await clock.advance(1);
    expect(textOf(await second)).toBe("other: yes");
    expect(told).toContain("2 slow is busy, asking other");
    // It was never tried, so nothing is said of how it does.
    expect(told).not.toContain("2 slow overloaded");
    await clock.advance(1);
    expect(textOf(await first)).toBe("slow: yes");
    expect(slow.grants?.isFree()).toBe(true);
  });

  test("waits on when there is no next backend", async () => {
    const { clock, call } = makeStage(1, () => ({ ms: 900, events: ANSWER }));
    const all = Promise.all(Array.from({ length: 10 }, () => call()));
    await clock.advance(10 * 900);
    expect((await all).map(textOf)).toEqual(Array(10).fill("slow: yes"));
  });

  test("names the busy backend with its setting when the next one fails too (Q5.6)", async () => {
    const { clock, call, slow, other } = makeStage(1, () => ({ ms: 9_000, events: ANSWER }));
    const first = call({ limits: { attemptTimeoutMs: 0, firstTokenMs: 0 } });
    const broken: Backend = {
      ...other,
      async *complete() {
        yield* FAILURE;
      },
    };
    const second = call({ backends: [slow, broken] });
    await clock.advance(9_000);
    expect(textOf(await second)).toContain(
      "- slow (overloaded): slow was busy with other calls for 5 s (backends.slow.maxConcurrent). Wait a little",
    );
    await first;
  });

  test("ends at once when it is stopped while it waits, and takes nothing (Q2.1)", async () => {
    const { clock, call, slow, told, calls } = makeStage(1, () => ({ ms: 900, events: ANSWER }));
    const first = call();
    const stop = new AbortController();
    const second = call({ signal: stop.signal });
    await clock.advance(100);
    stop.abort("cancelled");
    expect((await second).ok).toBe(false);
    expect(told).not.toContain("2 starts");
    await clock.advance(800);
    await first;
    expect(calls()).toBe(1);
    expect(slow.grants?.isFree()).toBe(true);
    expect(clock.waiting()).toBe(0);
  });

  test("gives back a grant that comes together with its stop, and never begins (Q2.1)", async () => {
    const { call, slow, told } = makeStage(1, () => ({ ms: 900, events: ANSWER }));
    const release = await slow.grants?.take({ id: 0, orderKey: 0, forPerson: true }, new AbortController().signal);
    const stop = new AbortController();
    const waits = call({ signal: stop.signal });
    release?.();
    stop.abort("cancelled");
    expect((await waits).ok).toBe(false);
    expect(told).toEqual(["1 waiting for slow, which is busy"]);
    expect(slow.grants?.isFree()).toBe(true);
  });

  test("goes when the one before hangs and ignores its stop: after limit and grace (G19, Q2.1)", async () => {
    const { clock, call, slow, told } = makeStage(1, (n) =>
      n === 1 ? { ms: 0, events: "hangs" } : { ms: 10, events: ANSWER },
    );
    const all = Promise.all([call(), call()]);
    await clock.advance(1_000 + 299);
    expect(told).not.toContain("2 starts");
    await clock.advance(1 + 10);
    expect((await all).map(textOf)).toEqual([expect.stringContaining("sent nothing within 1 s"), "slow: yes"]);
    expect(slow.grants?.isFree()).toBe(true);
  });

  test("goes before a younger one that asked earlier (DESIGN Commands, Capacity)", async () => {
    const { clock, call, told } = makeStage(1, () => ({ ms: 900, events: ANSWER }));
    const all = Promise.all([call({ orderKey: 1 }), call({ orderKey: 300 }), call({ orderKey: 200 })]);
    await clock.advance(2_700);
    await all;
    expect(told.filter((line) => line.endsWith("starts"))).toEqual(["1 starts", "3 starts", "2 starts"]);
  });

  test("needs no grant at a backend without a limit", async () => {
    const { clock, call, most } = makeStage(undefined, () => ({ ms: 900, events: ANSWER }));
    const all = Promise.all([call(), call(), call()]);
    await clock.advance(900);
    await all;
    expect(most()).toBe(3);
  });
});

const behaviour: fc.Arbitrary<Behaviour> = fc.record({
  ms: fc.nat(1_500),
  events: fc.constantFrom(ANSWER, FAILURE, [], "throws" as const, "hangs" as const),
});

test("whatever calls do, never more than maxConcurrent are in it, all end, and every grant comes back (Q2.1)", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 3 }),
      fc.array(fc.record({ behaviour, startMs: fc.nat(3_000), stopMs: fc.option(fc.nat(6_000)) }), { maxLength: 12 }),
      fc.boolean(),
      async (size, calls, hasNext) => {
        const stage = makeStage(size, (n) => calls[n % calls.length]?.behaviour ?? { ms: 0, events: ANSWER });
        const { clock, slow, other } = stage;
        const ends: Promise<ModelEnd>[] = [];
        for (const { startMs, stopMs } of calls) {
          const stop = new AbortController();
          clock.after(startMs, () => {
            ends.push(stage.call({ signal: stop.signal, backends: hasNext ? [slow, other] : [slow] }));
          });
          if (stopMs !== null) clock.after(startMs + stopMs, () => stop.abort("cancelled"));
        }
        await clock.advance(120_000);
        expect(await Promise.all(ends)).toHaveLength(calls.length);
        expect(stage.most()).toBeLessThanOrEqual(size);
        expect(slow.grants?.isFree()).toBe(true);
        expect(clock.waiting()).toBe(0);
      },
    ),
    { numRuns: 200 },
  );
});
