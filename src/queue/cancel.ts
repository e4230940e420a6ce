// Owns: stopping a command in every state: the row first, then what memory must do about it.
import type { Clock } from "../kernel/clock.ts";
import { NotFound } from "../kernel/errors.ts";
import type { CommandState } from "../kernel/events.ts";
import type { CommandId } from "../kernel/ids.ts";
import type { Log } from "../kernel/log.ts";
import type { Command } from "../store/commands.ts";
import type { Store, Tx } from "../store/store.ts";
import { type Resolved, resolveAbsorbed } from "./absorb.ts";
import type { Outcome } from "./command.ts";
import type { Pump } from "./pump.ts";
import type { Runner } from "./runner.ts";
import type { Waiting } from "./waiting.ts";

/** A cancel that has taken place in a write. */
export interface Cancelled {
  /** As it was before. */
  readonly command: Command;
  readonly resolved: Resolved;
}

interface CancelDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly runner: Runner;
  readonly waiting: Waiting;
  readonly pump: Pump;
  readonly emit: (command: Command, state: CommandState) => void;
  readonly offerAgain: (command: Command) => void;
}

/** The three verbs as the queue's port describes them. */
export function makeCancels(deps: CancelDeps) {
  const { store, clock, log, waiting, pump, emit, offerAgain } = deps;
  const cancelled = ({ command, resolved }: Cancelled) => {
    waiting.remove(command.id);
    // An ask holds its session without any work: here it ends.
    if (command.state === "waiting") waiting.freeSession(command.session);
    pump.stop(command.id, "cancelled");
    for (const back of resolved.returned) offerAgain(back);
    for (const one of [command, ...resolved.ended]) emit(one, "cancelled");
    log.info("command.finished", { commandId: command.id, state: "cancelled" });
    pump.go();
  };

  const cancelIn = (tx: Tx, id: CommandId, outcome: Outcome): Cancelled | undefined => {
    const command = tx.commands.get(id);
    if (command === undefined || !tx.commands.cancel(id, clock.now(), JSON.stringify(outcome))) return undefined;
    // Before the note about the end stands in the transcript.
    const resolved = resolveAbsorbed(tx, id, "cancelled", clock.now(), deps.runner);
    deps.runner.cancelled(tx, command);
    return { command, resolved };
  };

  return {
    cancelIn,
    cancelled,
    async cancel(id: CommandId, outcome: Outcome): Promise<CommandState> {
      const result = await store.write("cancel", (tx) => {
        const state = tx.commands.stateOf(id);
        if (state === undefined) throw new NotFound(`there is no command ${id}`);
        return { state, done: cancelIn(tx, id, outcome) };
      });
      if (result.done === undefined) return result.state;
      cancelled(result.done);
      return "cancelled";
    },
  };
}
