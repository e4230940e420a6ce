// Owns: the SQL of the transcript. Rows are only added; /new moves the session's start instead of deleting.
import type { Database } from "better-sqlite3";
import type { CommandId, RowSeq, SessionKey } from "../kernel/ids.ts";

export interface TranscriptRow {
  readonly id: RowSeq;
  readonly command: CommandId;
  /** Position within its command; 0 is the person's message. */
  readonly n: number;
  readonly role: "user" | "assistant" | "tool" | "note";
  /** JSON, parsed where transcripts are turned into requests. */
  readonly body: string;
  readonly createdAt: number;
}

export type NewTranscriptRow = Pick<TranscriptRow, "n" | "role" | "body">;

interface Row {
  id: number;
  prev: number;
  command: number;
  n: number;
  role: TranscriptRow["role"];
  body: string;
  created_at: number;
}

function parse(row: Row): TranscriptRow {
  return {
    id: row.id as RowSeq,
    command: row.command as CommandId,
    n: row.n,
    role: row.role,
    body: row.body,
    createdAt: row.created_at,
  };
}

export function messageReads(db: Database) {
  const last = db.prepare("select last_message from sessions where key = ?").pluck();
  const get = db.prepare("select * from messages where id = ?");
  const ofCommand = db.prepare("select * from messages where command = ? order by n");
  const lastId = db.prepare("select coalesce(max(id), 0) from messages").pluck();
  return {
    /** The newest rows of a session after `startsAfter`, oldest first, as many as fit `maxChars` of JSON. */
    newest(session: SessionKey, startsAfter: number, maxChars: number): TranscriptRow[] {
      const rows: TranscriptRow[] = [];
      let chars = 0;
      for (let id = Number(last.get(session) ?? 0); id > startsAfter; ) {
        const raw = get.get(id) as Row | undefined;
        if (raw === undefined) break;
        chars += raw.body.length;
        if (chars > maxChars && rows.length > 0) break;
        rows.push(parse(raw));
        id = raw.prev;
      }
      return rows.reverse();
    },
    ofCommand: (command: CommandId): TranscriptRow[] => ofCommand.all(command).map((row) => parse(row as Row)),
    lastId: (): number => Number(lastId.get()),
  };
}

export function messageWrites(db: Database) {
  const insert = db.prepare(
    `insert into messages (id, session, prev, command, n, role, body, created_at) values (?, ?, ?, ?, ?, ?, ?, ?)
     on conflict (command, n) do nothing`,
  );
  const last = db.prepare("select last_message from sessions where key = ?").pluck();
  const get = db.prepare("select * from messages where id = ?");
  const remove = db.prepare("delete from messages where id = ?");
  const unlink = db.prepare("update sessions set last_message = ?, messages = messages - 1 where key = ?");
  const link = db.prepare("update sessions set last_message = ?, messages = messages + 1, last_at = ? where key = ?");
  return {
    ...messageReads(db),
    /** Takes a command's only row away again, while it is the newest of its session. False when it is not. */
    takeBack(session: SessionKey, command: CommandId): boolean {
      const row = get.get(last.get(session) ?? 0) as Row | undefined;
      if (row === undefined || row.command !== command || row.n !== 0) return false;
      remove.run(row.id);
      unlink.run(row.prev, session);
      return true;
    },
    /** Adds a row once: the same place of the same command is never written twice. */
    append(id: RowSeq, session: SessionKey, command: CommandId, row: NewTranscriptRow, now: number): boolean {
      const prev = Number(last.get(session) ?? 0);
      if (insert.run(id, session, prev, command, row.n, row.role, row.body, now).changes === 0) return false;
      link.run(id, now, session);
      return true;
    },
  };
}
