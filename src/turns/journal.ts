// Owns: the step journal of one turn. The end of a step and the intent of the next are one commit, so that a crash leaves a
// turn after its last finished step (G10). Every write is fenced by generation and claim number (G6).
import type { Clock } from "../kernel/clock.ts";
import { LanewayError, StoreUnavailable } from "../kernel/errors.ts";
import type { RowSeq } from "../kernel/ids.ts";
import type { Command, StepKind } from "../store/commands.ts";
import type { StepIntent } from "../store/steps.ts";
import type { Store, Tx } from "../store/store.ts";
import type { NewRow } from "./transcript.ts";

/** The claim is no longer ours: the command was cancelled or another host has it. The turn ends and writes nothing. */
export class ClaimLost extends LanewayError {
  readonly code = "claim_lost";
}

export interface StepEnd {
  readonly n: number;
  readonly kind: StepKind;
  /** The backend that answered, or the tool. */
  readonly name: string;
  /** Figures, stored as JSON; the text is in `rows`. */
  readonly result: Readonly<Record<string, unknown>>;
  /** What the step adds to the transcript. */
  readonly rows: readonly NewRow[];
}

export interface Journal {
  /** Commits the end of the step in flight and the intent of the next. Waits while the disk is full. Rejects with ClaimLost or Aborted. */
  advance(ended: StepEnd, next: StepIntent, signal: AbortSignal): Promise<void>;
  /** Inside a write that is fenced elsewhere: rows before the step's end. `kept` is called once it has committed. */
  writeEarly(tx: Tx, rows: readonly NewRow[]): { kept: () => void };
  /** Inside the finish transaction: the end of the last step with its rows. */
  writeEnd(tx: Tx, ended: StepEnd): void;
}

interface JournalDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly command: Command;
  /** How many transcript rows the command has already. */
  readonly rows: number;
  /** A stateless request keeps its history at the client. */
  readonly keepTranscript: boolean;
  readonly onProgress: (kind: StepKind) => void;
}

export function makeJournal(deps: JournalDeps): Journal {
  const { store, clock, command } = deps;
  let nextRow = deps.rows;

  const writeRows = (tx: Tx, rows: readonly NewRow[]) => {
    if (!deps.keepTranscript) return;
    // The number of a row is only taken for good when the transaction is: see advance.
    let n = nextRow;
    for (const row of rows) {
      tx.messages.append(tx.nextSeq() as RowSeq, command.session, command.id, { ...row, n }, clock.now());
      n += 1;
    }
  };

  const writeEnd: Journal["writeEnd"] = (tx, ended) => {
    tx.steps.done(command.id, ended.n, JSON.stringify(ended.result), clock.now(), ended.name);
    writeRows(tx, ended.rows);
  };

  const commit = (ended: StepEnd, next: StepIntent) =>
    store.write("step", (tx) => {
      if (!tx.commands.hold(command))
        throw new ClaimLost(`command ${command.id} is no longer held by claim ${command.claim}`);
      if (command.strikeKind === ended.kind) tx.commands.forgive(command.id);
      writeEnd(tx, ended);
      tx.steps.intend(command.id, next, clock.now());
    });

  return {
    writeEnd,
    writeEarly(tx, rows) {
      writeRows(tx, rows);
      return {
        kept: () => {
          if (deps.keepTranscript) nextRow += rows.length;
        },
      };
    },
    async advance(ended, next, signal) {
      for (;;) {
        try {
          await commit(ended, next);
          break;
        } catch (thrown) {
          if (!(thrown instanceof StoreUnavailable)) throw thrown;
          await store.writable(signal);
        }
      }
      if (deps.keepTranscript) nextRow += ended.rows.length;
      deps.onProgress(ended.kind);
    },
  };
}
