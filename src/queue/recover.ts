// Owns: what boot does about the commands that an earlier host left behind. It runs once, in one transaction, before any
// claim: work of an older generation is an orphan at once (G7); no timer is involved.
import type { CommandId } from "../kernel/ids.ts";
import type { Command, StepKind } from "../store/commands.ts";
import type { Step } from "../store/steps.ts";
import type { Tx } from "../store/store.ts";
import { giveBackUnseen, resolveAbsorbed } from "./absorb.ts";
import type { Outcome } from "./command.ts";
import type { Runner } from "./runner.ts";

/** At two strikes a command runs alone; a death while alone makes it dead (G8). */
const ALONE_AT = 2;

export function runsAlone(strikes: number): boolean {
  return strikes >= ALONE_AT;
}

export interface Recovered {
  readonly requeued: number;
  readonly dead: readonly CommandId[];
}

interface RecoverOptions {
  readonly runner: Runner;
  readonly plannedStop: boolean;
  readonly now: number;
  /** A queued command older than this is announced as skipped instead of run (G9). 0 means none. */
  readonly maxAgeMs: number;
}

/** The guards of the UPDATEs pick the orphans out: what runs in this life, and an open ask, stay as they are. */
export function recover(tx: Tx, options: RecoverOptions): Recovered {
  const { now, maxAgeMs } = options;
  const requeued = new Set<CommandId>();
  const dead: CommandId[] = [];
  for (const command of tx.commands.running()) {
    const became = recoverOrphan(tx, command, options);
    if (became === "queued") requeued.add(command.id);
    if (became === "dead") dead.push(command.id);
  }
  for (const command of tx.commands.notToRun(maxAgeMs > 0 ? now - maxAgeMs : 0)) {
    requeued.delete(command.id);
    // A stateless request is never run again: its client is gone, and its history was the client's (contract, OpenAI door).
    if (command.kind === "completion") tx.commands.cancel(command.id, now, JSON.stringify(CLIENT_GONE));
    else if (giveUp(tx, command, TOO_OLD, options)) dead.push(command.id);
  }
  return { requeued: requeued.size, dead };
}

/**
 * A message that the turn had taken in and no completed call had held may be what killed the host: it takes the strike instead of
 * its turn, returns to the queue and is not taken in again.
 */
function recoverOrphan(tx: Tx, command: Command, options: RecoverOptions): "queued" | "dead" | undefined {
  const { plannedStop, runner } = options;
  const suspects = plannedStop ? [] : giveBackUnseen(tx, command.id, 1, runner);
  const steps = tx.steps.ofCommand(command.id);
  const { strikes, kind, deathStep } = strike(command, steps, plannedStop || suspects.length > 0);
  if (strikes > ALONE_AT) return giveUp(tx, command, POISON, options) ? "dead" : undefined;
  return tx.commands.orphanToQueue(command.id, strikes, kind, deathStep, tx.generation) ? "queued" : undefined;
}

function giveUp(tx: Tx, command: Command, outcome: Outcome, { now, runner }: RecoverOptions): boolean {
  const given = tx.commands.giveUp(command.id, tx.generation, now, JSON.stringify(outcome));
  if (given) resolveAbsorbed(tx, command.id, "dead", now, runner);
  if (given) runner.gaveUp(tx, command, outcome);
  return given;
}

const POISON: Outcome = {
  reason: "poison",
  message: "The host stopped three times while it worked on this message, so it was given up. Nothing else was lost.",
};

const TOO_OLD: Outcome = {
  reason: "too-old",
  message: "The host was down for so long that this message was not run any more. Send it again if it still matters.",
};

const CLIENT_GONE: Outcome = { reason: "client-gone", message: "The host stopped while the request was open." };

interface Strike {
  readonly strikes: number;
  readonly kind: StepKind | undefined;
  readonly deathStep: number;
}

/**
 * A host death is a strike, unless a step of the kind that was in flight finished since the last death. A planned stop never
 * counts, and progress wipes the earlier strikes out.
 */
export function strike(command: Command, steps: readonly Step[], plannedStop: boolean): Strike {
  const last = steps.at(-1);
  const deathStep = last?.n ?? 0;
  const kind = last?.kind ?? "model";
  if (plannedStop) return { strikes: command.strikes, kind: command.strikeKind, deathStep: command.deathStep };
  const progressed = steps.some((step) => step.kind === kind && step.state === "done" && step.n > command.deathStep);
  if (progressed) return { strikes: 0, kind: undefined, deathStep };
  return { strikes: command.strikes + 1, kind, deathStep };
}
