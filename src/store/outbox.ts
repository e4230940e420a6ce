// Owns: the SQL of the outbox: what must reach a person, until it has.
//
// | state   | event                          | next    |
// |---------|--------------------------------|---------|
// | ready   | taken by a push channel        | sending |
// | ready   | a client of a pull door has it | sent    |
// | sending | the platform confirmed         | sent    |
// | sending | certainly not sent             | ready   |
// | sending | outcome unknown, host died     | unknown |
// | sending | refused for good               | failed  |
// | ready, unknown, held, failed | dropped by the owner   | failed |
// | unknown, held, failed        | resent by the owner    | ready  |
import type { Database } from "better-sqlite3";
import type { CommandId, Generation, PartId } from "../kernel/ids.ts";
import { chatLink } from "./chats.ts";

export type PartState = "ready" | "sending" | "sent" | "unknown" | "failed" | "held";
export type PartClass = "answer" | "notice" | "failure";

export interface Part {
  readonly id: PartId;
  readonly chatKey: string;
  readonly command: CommandId | undefined;
  readonly part: number;
  readonly class: PartClass;
  /** Markdown. */
  readonly text: string;
  /** JSON owned by the door (finish reason and usage for the API). */
  readonly extra: string | undefined;
  readonly state: PartState;
  readonly attempts: number;
  readonly createdAt: number;
  readonly sentAt: number | undefined;
  readonly reason: string | undefined;
}

export interface NewPart {
  readonly chatKey: string;
  readonly command: CommandId | undefined;
  readonly part: number;
  readonly class: PartClass;
  readonly text: string;
  readonly extra?: string | undefined;
}

interface Row {
  id: number;
  chat_key: string;
  command: number | null;
  part: number;
  class: PartClass;
  text: string;
  extra: string | null;
  state: PartState;
  attempts: number;
  created_at: number;
  sent_at: number | null;
  reason: string | null;
}

function parse(row: Row): Part {
  return {
    id: row.id as PartId,
    chatKey: row.chat_key,
    command: row.command === null ? undefined : (row.command as CommandId),
    part: row.part,
    class: row.class,
    text: row.text,
    extra: row.extra ?? undefined,
    state: row.state,
    attempts: row.attempts,
    createdAt: row.created_at,
    sentAt: row.sent_at ?? undefined,
    reason: row.reason ?? undefined,
  };
}

/** The condition of the index outbox_live, word for word: without it SQLite reads the chat's whole history instead. */
const LIVE = "state in ('ready','sending','unknown','held')";

export function outboxReads(db: Database) {
  const get = db.prepare("select * from outbox where id = ?");
  const ofCommand = db.prepare("select * from outbox where command = ? order by part");
  const recent = db.prepare("select * from outbox order by id desc limit ?");
  const live = db.prepare(`select * from outbox where ${LIVE} order by id limit ?`);
  const counts = db.prepare(`select state, count(*) as n from outbox where ${LIVE} group by state`);
  const lastId = db.prepare("select coalesce(max(id), 0) from outbox").pluck();
  const all = (rows: unknown[]) => rows.map((row) => parse(row as Row));
  return {
    get(id: PartId): Part | undefined {
      const row = get.get(id);
      return row === undefined ? undefined : parse(row as Row);
    },
    ofCommand: (command: CommandId): Part[] => all(ofCommand.all(command)),
    recent: (limit: number): Part[] => all(recent.all(limit)),
    live: (limit: number): Part[] => all(live.all(limit)),
    counts(): Partial<Record<PartState, number>> {
      return Object.fromEntries(counts.all().map((row) => [(row as Row).state, (row as { n: number }).n]));
    },
    lastId: (): number => Number(lastId.get()),
  };
}

export function outboxWrites(db: Database) {
  const insert = db.prepare(
    `insert into outbox (id, chat_key, prev, command, part, class, text, extra, state, generation, created_at)
     values (?, ?, ?, ?, ?, ?, ?, ?, 'ready', ?, ?)`,
  );
  const link = chatLink(db);
  const acknowledge = db.prepare(
    `update outbox set state = 'sent', sent_at = ? where ${LIVE} and state = 'ready' and chat_key = ? and id <= ?`,
  );
  const drop = db.prepare(
    "update outbox set state = 'failed', reason = 'dropped' where id = ? and state in ('ready','unknown','held','failed')",
  );
  const resend = db.prepare(
    "update outbox set state = 'ready', reason = null, attempts = 0 where id = ? and state in ('unknown','held','failed')",
  );
  return {
    ...outboxReads(db),
    insert(id: PartId, part: NewPart, generation: Generation, now: number): void {
      const extra = part.extra ?? null;
      const prev = link(part.chatKey, id);
      insert.run(
        id,
        part.chatKey,
        prev,
        part.command ?? null,
        part.part,
        part.class,
        part.text,
        extra,
        generation,
        now,
      );
    },
    /** ready → sent for every part of a pull door's chat up to `id`. Answers how many changed. */
    acknowledge: (chat: string, id: number, now: number): number => acknowledge.run(now, chat, id).changes,
    drop: (id: PartId): boolean => drop.run(id).changes === 1,
    resend: (id: PartId): boolean => resend.run(id).changes === 1,
  };
}
