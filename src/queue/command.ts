// Owns: the life of a command. The SQL of each move is in store/commands.ts, where it is guarded by the old state; nothing
// else changes a state.
import type { CommandState } from "../kernel/events.ts";

/** Every move a command can make, and who makes it. A state without a line here is final. */
export const TRANSITIONS: readonly { from: CommandState; to: CommandState; by: string; when: string }[] = [
  { from: "queued", to: "running", by: "pump", when: "claimed: raises the claim number, commits before work begins" },
  {
    from: "queued",
    to: "cancelled",
    by: "cancel, recover",
    when: "its person or the owner cancelled it, or its client is gone",
  },
  { from: "queued", to: "dead", by: "recover", when: "older than its maximum age at boot" },
  { from: "running", to: "done", by: "finish", when: "its outcome is committed together with transcript and outbox" },
  { from: "running", to: "failed", by: "finish", when: "every backend and retry was used and the person is told" },
  { from: "running", to: "queued", by: "drain, recover", when: "handed back without penalty, or its host died" },
  { from: "running", to: "cancelled", by: "cancel, recover", when: "stopped: its late end finds no row (the fence)" },
  { from: "running", to: "dead", by: "recover", when: "its host died a third time without a finished step" },
  { from: "queued", to: "absorbed", by: "absorb", when: "a running turn takes it into its next step (steering)" },
  { from: "absorbed", to: "done", by: "finish", when: "the turn that took it in has answered" },
  { from: "absorbed", to: "failed", by: "finish", when: "the turn that took it in failed after a call that held it" },
  {
    from: "absorbed",
    to: "dead",
    by: "recover",
    when: "the turn that took it in was given up after a call that held it",
  },
  { from: "absorbed", to: "queued", by: "finish, cancel, recover", when: "no completed call of that turn held it" },
  { from: "waiting", to: "cancelled", by: "cancel", when: "stopped while an ask was open" },
  { from: "absorbed", to: "cancelled", by: "cancel", when: "stopped, itself or with the turn that held it" },
];

/** True for a command that will not change any more. */
export function isFinal(state: CommandState): boolean {
  return !TRANSITIONS.some((move) => move.from === state);
}

/** Why a command ended as it did; stored as JSON in its row and shown to people. */
export interface Outcome {
  readonly reason:
    | "answered"
    | "absorbed"
    | "silent"
    | "tool-calls"
    | "backends-failed"
    | "limit"
    | "internal"
    | "stopped"
    | "poison"
    | "too-old"
    | "client-gone";
  /** One sentence for people; never model text. */
  readonly message?: string | undefined;
}
