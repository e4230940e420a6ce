// Owns: a chat as people see it: their messages and the parts that answer them, in row sequence. It reads rows only.
import type { CommandState } from "../kernel/events.ts";
import type { CommandId, PartId, RowSeq } from "../kernel/ids.ts";
import { type Command, chatKey, type Route } from "../store/commands.ts";
import type { Part, PartClass, PartState } from "../store/outbox.ts";
import type { Reads } from "../store/store.ts";

export type Item =
  | { seq: number; kind: "person"; command: number; text: string; at: string; state: CommandState }
  | { seq: number; kind: "part"; command?: number; text: string; at: string; state: PartState; class: PartClass };

const iso = (ms: number) => new Date(ms).toISOString();

function personItem({ id, text, acceptedAt, state }: Command): Item {
  return { seq: id, kind: "person", command: id, text, at: iso(acceptedAt), state };
}

function partItem(part: Part): Item {
  const about = part.command === undefined ? {} : { command: part.command };
  const { id, text, createdAt, state } = part;
  return { seq: id, kind: "part", ...about, text, at: iso(createdAt), state, class: part.class };
}

/** The row as people see it; undefined when it is no row of a chat. */
export function itemOf(read: Reads, seq: RowSeq): Item | undefined {
  const command = read.commands.get(seq as CommandId);
  if (command !== undefined) return personItem(command);
  const part = read.outbox.get(seq as PartId);
  return part === undefined ? undefined : partItem(part);
}

/** The newest `limit` items before `before`, oldest first, and whether there are older ones. */
export function history(read: Reads, route: Route, before: number, limit: number): { items: Item[]; more: boolean } {
  const found: Item[] = [];
  for (const seq of seqsBefore(read, route, before)) {
    if (found.length === limit) return { items: found.reverse(), more: true };
    const item = itemOf(read, seq);
    if (item !== undefined) found.push(item);
  }
  return { items: found.reverse(), more: false };
}

/** A page begins at a row of the chat, so the chain is entered there; any other number is looked for from the newest on. */
function* seqsBefore(read: Reads, route: Route, before: number): Generator<RowSeq> {
  const chat = chatKey(route);
  if (chatOf(read, before) === chat) {
    yield* read.chats.before(before as RowSeq);
    return;
  }
  for (const seq of read.chats.newestFirst(chat)) if (seq < before) yield seq;
}

function chatOf(read: Reads, seq: number): string | undefined {
  const command = read.commands.get(seq as CommandId);
  return command === undefined ? read.outbox.get(seq as PartId)?.chatKey : chatKey(command.route);
}

/** The sequences of everything after `after`, newest first. */
export function seqsAfter(read: Reads, route: Route, after: number): RowSeq[] {
  const seqs: RowSeq[] = [];
  for (const seq of read.chats.newestFirst(chatKey(route))) {
    if (seq <= after) break;
    seqs.push(seq);
  }
  return seqs;
}
