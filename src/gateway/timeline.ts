// Owns: a chat as people see it: their messages and the parts that answer them, in row sequence. It reads rows only.
import type { CommandState } from "../kernel/events.ts";
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

const bySeq = (a: Item, b: Item) => a.seq - b.seq;

/** The newest `limit` items before `before`, oldest first, and whether there are older ones. */
export function history(read: Reads, route: Route, before: number, limit: number): { items: Item[]; more: boolean } {
  const commands = read.commands.ofChat(route, before, limit + 1).map(personItem);
  const parts = read.outbox.before(chatKey(route), before, limit + 1).map(partItem);
  const newest = [...commands, ...parts].sort(bySeq);
  return { items: newest.slice(-limit), more: newest.length > limit };
}

/** Everything after `after`, oldest first, at most `limit`. */
export function since(read: Reads, route: Route, after: number, limit: number): Item[] {
  const commands = read.commands.ofChatAfter(route, after, limit).map(personItem);
  const parts = read.outbox.after(chatKey(route), after, limit).map(partItem);
  return [...commands, ...parts].sort(bySeq).slice(0, limit);
}
