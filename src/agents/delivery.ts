// Owns: what goes into the outbox. Web, terminal and API are pull doors: a part stays `ready` until a client has
// acknowledged its row sequence, and holds back nothing.
import type { Clock } from "../kernel/clock.ts";
import type { CommandId, PartId } from "../kernel/ids.ts";
import { type Command, chatKey, type Route } from "../store/commands.ts";
import type { PartClass } from "../store/outbox.ts";
import type { Tx } from "../store/store.ts";

/** Where the owner is told of things that no chat asked for. */
export const OWNER_ROUTE: Route = { channel: "web", account: "default", chat: "main", thread: undefined };

interface PartOptions {
  readonly class: PartClass;
  readonly text: string;
  readonly extra?: string | undefined;
}

/** Inside a write: the answer of a command, as its part 0. */
export function addPart(tx: Tx, command: Command, clock: Clock, part: PartOptions): PartId {
  return insert(tx, chatKey(command.route), command.id, clock, part);
}

/** Inside a write: something that belongs to no command. */
export function addNotice(tx: Tx, route: Route, clock: Clock, text: string): PartId {
  return insert(tx, chatKey(route), undefined, clock, { class: "notice", text });
}

function insert(tx: Tx, chat: string, command: CommandId | undefined, clock: Clock, part: PartOptions): PartId {
  const id = tx.nextSeq() as PartId;
  tx.outbox.insert(id, { chatKey: chat, command, part: 0, ...part }, tx.generation, clock.now());
  return id;
}
