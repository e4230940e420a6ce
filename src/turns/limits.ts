// Owns: the named time limits of a turn. Each has its own timer, and the one that fired is named to the person with the
// setting that governs it (Q15.1). 0 means none.
import type { Clock, Stop } from "../kernel/clock.ts";

export interface TurnLimits {
  readonly attemptTimeoutMs: number;
  readonly firstTokenMs: number;
  readonly idleMs: number;
  readonly turnTimeoutMs: number;
  /** How long a backend may take to end after it was told to stop, before it is left behind. */
  readonly graceMs: number;
  readonly attempts: number;
}

export type LimitName = "attemptTimeoutMs" | "firstTokenMs" | "idleMs" | "turnTimeoutMs";

const WHAT: Readonly<Record<LimitName, string>> = {
  attemptTimeoutMs: "did not finish",
  firstTokenMs: "sent nothing",
  idleMs: "sent nothing more",
  turnTimeoutMs: "did not finish the whole turn",
};

/** One line for people, as in `sent nothing within 120 s (turns.firstTokenMs)`. */
export function limitText(name: LimitName, ms: number): string {
  return `${WHAT[name]} within ${span(ms)} (turns.${name})`;
}

/** Why a call was never made: others had the backend for as long as a try may take. */
export function busyText(backend: string, ms: number): string {
  return `${backend} was busy with other calls for ${span(ms)} (backends.${backend}.maxConcurrent)`;
}

function span(ms: number): string {
  return ms >= 1_000 ? `${ms / 1_000} s` : `${ms} ms`;
}

/** Starts a named timer; 0 starts none. */
export function startLimit(clock: Clock, ms: number, fire: () => void): Stop {
  return ms === 0 ? () => {} : clock.after(ms, fire);
}
