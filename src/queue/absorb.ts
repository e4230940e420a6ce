// Owns: taking waiting messages into a running turn, and what becomes of them when it ends. "Seen exactly once" means one
// transcript row, in every later request and in no earlier one (Q9.1).
import type { CommandId } from "../kernel/ids.ts";
import { type BusyMode, type Command, chatKey, type Fence } from "../store/commands.ts";
import type { Tx } from "../store/store.ts";
import type { Outcome } from "./command.ts";
import type { Runner } from "./runner.ts";
import type { Waiting, WaitingRow } from "./waiting.ts";

/**
 * The waiting commands that a turn may take in now, in the order in which they came: those of the same route on the same
 * authority. One that may not be taken holds back the later ones of its line, as it does in a claim.
 */
export function absorbable(waiting: Waiting, turn: Command, modes: readonly BusyMode[], now: number): WaitingRow[] {
  const held = new Set<string>();
  const taken: WaitingRow[] = [];
  for (const entry of [...waiting.ofSession(turn.session)].sort((a, b) => a.id - b.id)) {
    const line = entry.line ?? "";
    // A collected message waits for more of its kind only, and here they are.
    const isDue = entry.notBefore <= now || entry.mode === "collect";
    const fits =
      isDue &&
      modes.includes(entry.mode) &&
      entry.strikes === 0 &&
      !entry.open &&
      entry.actor === turn.actor &&
      entry.chat === chatKey(turn.route) &&
      !held.has(line);
    if (fits) taken.push(entry);
    else held.add(line);
  }
  return taken;
}

/** Inside a write: queued → absorbed for each, as far as it still waits and the turn still runs at its claim. */
export function absorbIn(tx: Tx, turn: Fence, entries: readonly WaitingRow[], step: number): Command[] {
  return entries.flatMap((entry) => tx.commands.absorb(entry.id, turn, step) ?? []);
}

type TurnState = "done" | "failed" | "dead" | "cancelled";

/** What became of the messages that a turn had taken in. */
export interface Resolved {
  /** They wait again at their old place. */
  readonly returned: readonly Command[];
  /** They ended as the turn did. */
  readonly ended: readonly Command[];
}

/**
 * Inside the write that ends a turn: what a completed model call of it held ends with it; the others return to their old
 * place and lose their transcript row.
 */
export function resolveAbsorbed(tx: Tx, turn: CommandId, end: TurnState, now: number, runner: Runner): Resolved {
  // Almost every turn: the rest would read rows and journal at every finish.
  if (!tx.commands.hasAbsorbed(turn)) return { returned: [], ended: [] };
  const returned = giveBackUnseen(tx, turn, 0, runner);
  const outcome: Outcome = { reason: "absorbed", message: `It was taken into the turn of message ${turn}.` };
  const ended = tx.commands
    .absorbedBy(turn)
    .filter(({ id }) => tx.commands.endWith(id, turn, end, now, JSON.stringify(outcome)));
  return { returned, ended };
}

/**
 * Those that no completed model call held, back in the queue; the newest first, so that each has the newest row.
 * @param strikes what the death of the host adds to each (G8)
 */
export function giveBackUnseen(tx: Tx, turn: CommandId, strikes: 0 | 1, runner: Runner): Command[] {
  const completed = tx.steps
    .ofCommand(turn)
    .filter((step) => step.kind === "model" && step.state === "done")
    .reduce((last, step) => Math.max(last, step.n), 0);
  const unseen = tx.commands.absorbedBy(turn).filter((command) => (command.absorbedStep ?? 0) > completed);
  return unseen.reverse().flatMap((command) => {
    runner.givenBack(tx, command);
    return tx.commands.giveBack(command.id, strikes) ?? [];
  });
}
