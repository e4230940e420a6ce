// Owns: the port through which the queue has a command worked off. The queue knows nothing of models or transcripts.
import type { Command } from "../store/commands.ts";
import type { Tx } from "../store/store.ts";
import type { Outcome } from "./command.ts";

/**
 * How the work on a command ended. `write` adds transcript and outbox rows to the transaction that ends the command; `after` is
 * called once it has committed.
 */
export type CommandEnd =
  | {
      readonly state: "done" | "failed";
      readonly outcome: Outcome;
      readonly write: (tx: Tx) => void;
      readonly after?: () => void;
    }
  /** Back to the queue at its old place, without penalty (drain). */
  | { readonly state: "handed-back" };

/** Why a running command is told to stop; the abort signal's reason. */
export type StopReason = "cancelled" | "drain";

export interface Runner {
  /** Runs in the claim's transaction: SQL only. Writes the intent of the first step. */
  begin(tx: Tx, command: Command): void;
  /**
   * Works the command off. Should not reject: a rejection is a bug and ends the command `failed`. When `signal` aborts it
   * ends within its grace; the slot is freed then in any case, and a later end changes nothing (claim number).
   */
  run(command: Command, signal: AbortSignal): Promise<CommandEnd>;
  /** What to write for a command whose work threw. SQL only in `write`. */
  crashed(command: Command, thrown: unknown): CommandEnd;
  /** Runs in the transaction that cancels a command: what the transcript keeps of it. `from` is its state before. */
  cancelled(tx: Tx, command: Command): void;
  /** Runs in the transaction that gives an absorbed command back to the queue: its transcript row goes. */
  givenBack(tx: Tx, command: Command): void;
  /** Runs in the transaction that gives a command up: tells its sender and the owner. */
  gaveUp(tx: Tx, command: Command, outcome: Outcome): void;
}
