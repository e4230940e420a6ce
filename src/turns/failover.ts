// Owns: the one table of error classes: whether the same backend is tried again, whether the next one is, and what the
// person is told (Q5.1). Pure: it neither waits nor calls. Cool-downs are no part of it.
import { type BackoffRule, backoffMs } from "../kernel/backoff.ts";
import type { BackendFailure, ErrorClass } from "./backends/port.ts";

export interface ClassRule {
  /** Another attempt on the same backend may help. */
  readonly retryHere: boolean;
  /** The next backend may help. */
  readonly next: boolean;
  /** What the person can do, one sentence. */
  readonly tell: string;
}

/**
 * What passes by itself is tried once more in place; what a person must mend is not. The next backend gets everything
 * except an abort:
 * - `context-overflow`, since its window may be larger (Q5.5);
 * - `refusal`, since filters differ and refuse harmless texts, and whoever names a fallback wants an answer;
 * - `invalid`, since a request that one server's dialect refuses is often taken by another, and nothing was done yet.
 */
export const CLASS_RULES: Readonly<Record<ErrorClass, ClassRule>> = {
  "rate-limit": { retryHere: true, next: true, tell: "Wait a little and write again." },
  overloaded: { retryHere: true, next: true, tell: "Wait a little and write again." },
  network: { retryHere: true, next: true, tell: "Check that its server runs and can be reached." },
  timeout: { retryHere: true, next: true, tell: "Write again, or raise the time limits under `turns:`." },
  server: { retryHere: true, next: true, tell: "Write again later; if it stays so, look at its server." },
  auth: { retryHere: false, next: true, tell: "Check its key (apiKey)." },
  billing: { retryHere: false, next: true, tell: "Add credit to its account." },
  quota: { retryHere: false, next: true, tell: "Wait until its quota is renewed, or raise it." },
  "context-overflow": { retryHere: false, next: true, tell: "Begin a new conversation with /new." },
  refusal: { retryHere: false, next: true, tell: "Put it in other words." },
  invalid: { retryHere: false, next: true, tell: "Check its settings (model, baseUrl)." },
  aborted: { retryHere: false, next: false, tell: "Write again to go on." },
};

export type Plan =
  | { readonly kind: "retry"; readonly afterMs: number }
  | { readonly kind: "next" }
  | { readonly kind: "stop" };

/** The attempts on the backend that failed, within this call. */
export interface Attempts {
  /** Made so far, the failed one included. */
  readonly used: number;
  /** Allowed (setting `turns.attempts`). */
  readonly max: number;
  /** A number in [0, 1) that spreads the waits. */
  readonly jitter: number;
}

/** At most 0.96 s with jitter: after a first failure the next backend must be able to answer within 2 s. */
const RETRY: BackoffRule = { baseMs: 400, factor: 2, maxMs: 800, jitter: 0.2 };

/** A person waits: beyond this the next backend answers sooner than the one that asked for the wait. */
const MAX_ASKED_WAIT_MS = 10_000;

/**
 * What follows a failed attempt. A wait that the other side asked for is honoured up to 10 s and counts as any
 * other retry; a longer one is as good as no retry. `next` is said whether or not there is a next backend.
 */
export function planNext(failure: BackendFailure, attempts: Attempts): Plan {
  const rule = CLASS_RULES[failure.class];
  if (!rule.next) return { kind: "stop" };
  const askedMs = failure.retryAfterMs ?? 0;
  if (!rule.retryHere || attempts.used >= attempts.max || askedMs > MAX_ASKED_WAIT_MS) return { kind: "next" };
  return { kind: "retry", afterMs: Math.max(askedMs, backoffMs(RETRY, attempts.used, attempts.jitter)) };
}

export type NamedFailure = BackendFailure & { readonly backend: string };

/**
 * The one message to the person when no backend is left: each backend with the class of its last failure, why, and
 * what to do, and the earliest time at which one of them said to come back (Q5.6).
 */
export function exhaustedMessage(failures: readonly NamedFailure[]): string {
  if (failures.length === 0) return "There is no backend to ask. Name one under `backends:` in laneway.yaml.";
  const last = new Map(failures.map((failure) => [failure.backend, failure]));
  const lines = [...last.values()].map(
    ({ backend, class: errorClass, message }) =>
      `- ${backend} (${errorClass}): ${message.replace(/[.\s]+$/, "")}. ${CLASS_RULES[errorClass].tell}`,
  );
  const waits = [...last.values()].flatMap(({ retryAfterMs }) => (retryAfterMs === undefined ? [] : [retryAfterMs]));
  if (waits.length > 0) lines.push(`Earliest retry: in ${waitText(Math.min(...waits))}.`);
  return [last.size === 1 ? "The model did not answer." : "None of the models answered.", ...lines].join("\n");
}

function waitText(ms: number): string {
  const seconds = Math.max(1, Math.ceil(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.ceil(minutes / 60)} h`;
}
