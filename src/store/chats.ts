// Owns: the SQL of chats: the rows that people of a chat see, commands and outbox parts, as one chain from the newest to the
// oldest. A chain costs a commit one page for all chats; an index by chat costs one for each.
import type { Database } from "better-sqlite3";
import type { RowSeq } from "../kernel/ids.ts";

export function chatReads(db: Database) {
  const last = db.prepare("select last from chats where key = ?").pluck();
  const prevOfPart = db.prepare("select prev from outbox where id = ?").pluck();
  const prevOfCommand = db.prepare("select prev from commands where id = ?").pluck();
  /** 0 before the first one; what is missing in between (rows may be thrown away with time) ends the chain too. */
  const prev = (id: number) => Number(prevOfPart.get(id) ?? prevOfCommand.get(id) ?? 0);
  return {
    /** The sequences of a chat's rows, newest first. It may be left at any time. */
    *newestFirst(chatKey: string): Generator<RowSeq> {
      for (let id = Number(last.get(chatKey) ?? 0); id > 0; id = prev(id)) yield id as RowSeq;
    },
    /** The sequences before a row of this chat, newest first. */
    *before(id: RowSeq): Generator<RowSeq> {
      for (let at = prev(id); at > 0; at = prev(at)) yield at as RowSeq;
    },
  };
}

/** Inside a write: makes `id` the newest row of the chat and answers the one before it, 0 for the first. */
export function chatLink(db: Database): (chatKey: string, id: RowSeq) => number {
  const last = db.prepare("select last from chats where key = ?").pluck();
  const put = db.prepare(
    "insert into chats (key, last) values (?, ?) on conflict (key) do update set last = excluded.last",
  );
  return (chatKey, id) => {
    const prev = Number(last.get(chatKey) ?? 0);
    put.run(chatKey, id);
    return prev;
  };
}
