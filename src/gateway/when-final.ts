// Owns: waiting for a command's end: the row is asked first and last, the event only wakes.
import { NotFound } from "../kernel/errors.ts";
import type { Events } from "../kernel/events.ts";
import type { CommandId } from "../kernel/ids.ts";
import { isFinal } from "../queue/command.ts";
import type { Command } from "../store/commands.ts";
import type { Store } from "../store/store.ts";

/** The command as it is when it has ended, or when `signal` aborts. Throws NotFound. */
export async function whenFinal(
  id: CommandId,
  { store, events }: { store: Store; events: Events },
  signal: AbortSignal,
): Promise<Command> {
  const ended = Promise.withResolvers<void>();
  const stop = events.on((event) => {
    if (event.type === "command" && event.id === id && isFinal(event.state)) ended.resolve();
  });
  const onAbort = () => ended.resolve();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const now = known(store, id);
    if (isFinal(now.state) || signal.aborted) return now;
    await ended.promise;
    return known(store, id);
  } finally {
    stop();
    signal.removeEventListener("abort", onAbort);
  }
}

function known(store: Store, id: CommandId): Command {
  const command = store.read.commands.get(id);
  if (command === undefined) throw new NotFound(`there is no command ${id}`);
  return command;
}
