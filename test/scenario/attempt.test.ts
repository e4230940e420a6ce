import { expect, test } from "vitest";
import { type AttemptEnd, attempt } from "../../src/turns/attempt.ts";
import type { Backend, BackendEvent } from "../../src/turns/backends/port.ts";
import type { TurnLimits } from "../../src/turns/limits.ts";
import { type FakeClock, fakeClock } from "../support/clock.ts";
import { prompt } from "../support/model-endpoint.ts";

// What no endpoint can show, since its connection is closed at a limit: a backend that breaks the contract and goes on.

const LIMITS: TurnLimits = {
  ...{ attemptTimeoutMs: 10_000, firstTokenMs: 3_000, idleMs: 2_000, turnTimeoutMs: 0, graceMs: 500, attempts: 1 },
};

const FINISH: BackendEvent = { type: "finish", reason: "stop", usage: { inputTokens: 1, outputTokens: 1 } };
const text = (delta: string): BackendEvent => ({ type: "text", delta });

interface Trial {
  readonly clock: FakeClock;
  readonly shown: string[];
  /** What the backend says next, whether it was told to stop or not. */
  say(event: BackendEvent): Promise<void>;
  /** Undefined while it runs. */
  end(): AttemptEnd | undefined;
  readonly stop: AbortController;
}

/** An attempt on a backend that hears no abort and speaks when the test says so. */
function trial(limits: Partial<TurnLimits> = {}): Trial {
  const clock = fakeClock();
  const shown: string[] = [];
  const spoken: BackendEvent[] = [];
  let wake = Promise.withResolvers<void>();
  const backend: Backend = {
    ...{ name: "deaf", kind: "test", model: "none", journal: "steps" },
    async *complete() {
      for (;;) {
        for (let next = spoken.shift(); next !== undefined; next = spoken.shift()) yield next;
        await wake.promise;
      }
    },
  };
  const stop = new AbortController();
  let end: AttemptEnd | undefined;
  const deps = { clock, limits: { ...LIMITS, ...limits }, onText: (delta: string) => shown.push(delta) };
  void attempt(backend, prompt("x"), stop.signal, deps).then((found) => {
    end = found;
  });
  return {
    clock,
    shown,
    stop,
    end: () => end,
    async say(event) {
      spoken.push(event);
      wake.resolve();
      wake = Promise.withResolvers();
      await clock.advance(0);
    },
  };
}

const failed = (message: string, partial: string) => ({ ok: false, partial, failure: { class: "timeout", message } });

test.each([
  ["firstTokenMs", 3_000, "deaf sent nothing within 3 s (turns.firstTokenMs)", []],
  ["idleMs", 2_000, "deaf sent nothing more within 2 s (turns.idleMs)", ["so far"]],
] as const)(
  "a backend that hears no abort is left behind after %s and the grace (Q15.1, G19)",
  async (_, ms, named, before) => {
    const it = trial();
    for (const words of before) await it.say(text(words));
    await it.clock.advance(ms);
    expect(it.end()).toBeUndefined();
    await it.clock.advance(LIMITS.graceMs);
    expect(it.end()).toMatchObject(failed(named, before.join("")));
    expect(it.clock.waiting()).toBe(0);
  },
);

test("tokens keep the idle limit away, not the limit of the attempt (Q15.2)", async () => {
  const it = trial();
  for (let n = 0; n < 10; n += 1) {
    await it.say(text("x"));
    await it.clock.advance(1_000);
  }
  await it.clock.advance(LIMITS.graceMs);
  expect(it.end()).toMatchObject(failed("deaf did not finish within 10 s (turns.attemptTimeoutMs)", "x".repeat(10)));
});

test("0 means no limit (Q15.1)", async () => {
  const it = trial({ attemptTimeoutMs: 0, firstTokenMs: 0, idleMs: 0 });
  await it.clock.advance(86_400_000 * 30);
  await it.say(text("at last"));
  await it.clock.advance(86_400_000 * 30);
  await it.say(FINISH);
  expect(it.end()).toMatchObject({ ok: true, reply: { text: "at last" } });
});

test("what comes after the limit is neither shown nor an answer, within the grace and beyond it (G19)", async () => {
  for (const waitMs of [LIMITS.graceMs / 2, LIMITS.graceMs * 2]) {
    const it = trial();
    await it.say(text("early"));
    await it.clock.advance(LIMITS.idleMs + waitMs);
    await it.say(text(" late"));
    await it.say(FINISH);
    await it.clock.advance(60_000);
    expect(it.end()).toMatchObject({ ok: false, partial: "early", failure: { class: "timeout" } });
    expect(it.shown).toEqual(["early"]);
  }
});

test("a stopped attempt shows no more text and ends within the grace (G18)", async () => {
  const it = trial();
  await it.say(text("early"));
  it.stop.abort("cancelled");
  await it.say(text(" late"));
  expect(it.shown).toEqual(["early"]);
  await it.clock.advance(LIMITS.graceMs);
  expect(it.end()).toMatchObject({ ok: false, failure: { class: "aborted" } });
  expect(it.clock.waiting()).toBe(0);
});
