import { expect, describe as group, test } from "vitest";
import type { ErrorClass } from "../../../src/turns/backends/port.ts";
import { CLASS_RULES, exhaustedMessage, type NamedFailure, planNext } from "../../../src/turns/failover.ts";

const ALL = Object.keys(CLASS_RULES) as ErrorClass[];

function failure(errorClass: ErrorClass, retryAfterMs?: number): NamedFailure {
  return { backend: "p", class: errorClass, message: "why", retryAfterMs };
}

/** The backends that are asked when every attempt fails with this class. */
function asked(errorClass: ErrorClass, max = 2): string {
  const calls: string[] = [];
  for (const backend of ["P", "F"]) {
    for (let used = 1; ; used++) {
      calls.push(backend);
      const plan = planNext(failure(errorClass), { used, max, jitter: 0.5 });
      if (plan.kind === "stop") return calls.join("");
      if (plan.kind === "next") break;
    }
  }
  return calls.join("");
}

group("what follows a failure (Q5.1, Q5.2)", () => {
  test.each([
    ["rate-limit", "PPFF"],
    ["overloaded", "PPFF"],
    ["network", "PPFF"],
    ["timeout", "PPFF"],
    ["server", "PPFF"],
    ["auth", "PF"],
    ["billing", "PF"],
    ["quota", "PF"],
    ["context-overflow", "PF"],
    ["refusal", "PF"],
    ["invalid", "PF"],
    ["aborted", "P"],
  ] satisfies [ErrorClass, string][])("%s asks %s", (errorClass, expected) => {
    expect(asked(errorClass)).toBe(expected);
  });

  test("every class has a rule and something to tell", () => {
    expect(ALL).toHaveLength(12);
    for (const errorClass of ALL) expect(CLASS_RULES[errorClass].tell).toMatch(/^[A-Z].+\.$/);
  });

  test("the number of attempts is the setting's", () => {
    expect(asked("server", 1)).toBe("PF");
    expect(asked("server", 3)).toBe("PPPFFF");
    expect(asked("auth", 3)).toBe("PF");
  });

  test("the wait before a retry is short, whatever the jitter", () => {
    for (const jitter of [0, 0.5, 0.999]) {
      for (const used of [1, 2, 4]) {
        const plan = planNext(failure("server"), { used, max: 5, jitter });
        expect(plan).toEqual({ kind: "retry", afterMs: expect.any(Number) });
        expect(plan.kind === "retry" && plan.afterMs).toBeGreaterThanOrEqual(300);
        expect(plan.kind === "retry" && plan.afterMs).toBeLessThanOrEqual(1_000);
      }
    }
  });

  test("a wait of up to 10 s that the other side asked for is honoured; a longer one moves on", () => {
    const plan = (ms: number) => planNext(failure("rate-limit", ms), { used: 1, max: 2, jitter: 0.5 });
    expect(plan(0)).toEqual({ kind: "retry", afterMs: 400 });
    expect(plan(3_000)).toEqual({ kind: "retry", afterMs: 3_000 });
    expect(plan(10_000)).toEqual({ kind: "retry", afterMs: 10_000 });
    expect(plan(10_001)).toEqual({ kind: "next" });
  });

  test("a short asked wait does not make a class retried that never is, nor adds an attempt", () => {
    expect(planNext(failure("quota", 1_000), { used: 1, max: 2, jitter: 0 })).toEqual({ kind: "next" });
    expect(planNext(failure("rate-limit", 1_000), { used: 2, max: 2, jitter: 0 })).toEqual({ kind: "next" });
  });
});

group("the message when nothing is left (Q5.6)", () => {
  test("names each backend once, with its last class, the reason, what to do and the earliest retry", () => {
    const message = exhaustedMessage([
      { backend: "opus", class: "server", message: "the server failed (500)" },
      { backend: "opus", class: "rate-limit", message: "the server was asked too often (429).", retryAfterMs: 90_000 },
      { backend: "local", class: "network", message: "nothing listens at http://127.0.0.1:11434" },
    ]);
    expect(message.split("\n")).toEqual([
      "None of the models answered.",
      "- opus (rate-limit): the server was asked too often (429). Wait a little and write again.",
      "- local (network): nothing listens at http://127.0.0.1:11434. Check that its server runs and can be reached.",
      "Earliest retry: in 90 s.",
    ]);
  });

  test.each([
    [400, "1 s"],
    [150_000, "3 min"],
    [5 * 3_600_000, "5 h"],
  ])("writes a wait of %i ms as %s", (retryAfterMs, expected) => {
    const message = exhaustedMessage([{ backend: "p", class: "quota", message: "x", retryAfterMs }]);
    expect(message).toContain(`Earliest retry: in ${expected}.`);
  });

  test("says how to get a backend when there is none", () => {
    expect(exhaustedMessage([])).toContain("laneway.yaml");
  });
});
