// Owns: the SQL of the outbox: what must reach a person, until it has.
//
// | state   | event                          | next    |
// |---------|--------------------------------|---------|
// | ready   | taken by a push channel        | sending |
// | ready   | a client of a pull door has it | sent    |
// | ready   | too old to be sent             | failed  |
// | sending | the platform confirmed         | sent    |
// | sending | certainly not sent             | ready   |
// | sending | outcome unknown, may go once more, marked   | ready |
// | sending | outcome unknown, a person must decide       | unknown, or held when nobody asked for it |
// | sending | what it was to edit is gone    | ready, as a new message |
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
  /** The platform's id of the message that it answers. */
  readonly replyTo: string | undefined;
  /** The platform's id of the message that becomes this part, instead of a new one. */
  readonly editRef: string | undefined;
  readonly state: PartState;
  /** The host that wrote it or sent it last. */
  readonly generation: Generation;
  readonly attempts: number;
  readonly notBefore: number;
  /** It may have been sent once already. */
  readonly again: boolean;
  readonly createdAt: number;
  readonly resentAt: number | undefined;
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
  readonly replyTo?: string | undefined;
  readonly editRef?: string | undefined;
}

/** What became of a part that was being sent and is not known to have arrived. */
export interface Settled {
  readonly state: "ready" | "unknown" | "held" | "failed";
  readonly reason: string;
  readonly notBefore?: number;
  /** It may have arrived. */
  readonly again?: boolean;
  /** It goes as a new message: what it was to edit is gone. */
  readonly anew?: boolean;
}

interface Row {
  id: number;
  chat_key: string;
  command: number | null;
  part: number;
  class: PartClass;
  text: string;
  extra: string | null;
  reply_to: string | null;
  edit_ref: string | null;
  state: PartState;
  generation: number;
  attempts: number;
  not_before: number;
  again: number;
  created_at: number;
  resent_at: number | null;
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
    replyTo: row.reply_to ?? undefined,
    editRef: row.edit_ref ?? undefined,
    state: row.state,
    generation: row.generation as Generation,
    attempts: row.attempts,
    notBefore: row.not_before,
    again: row.again === 1,
    createdAt: row.created_at,
    resentAt: row.resent_at ?? undefined,
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
  const undelivered = db.prepare(`select * from outbox where ${LIVE} and state in ('ready','sending') order by id`);
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
    /** What is still to go out, or was going out when the host ended; one at a time, since a pull door's parts may be many. */
    *undelivered(): Generator<Part> {
      for (const row of undelivered.iterate()) yield parse(row as Row);
    },
    counts(): Partial<Record<PartState, number>> {
      return Object.fromEntries(counts.all().map((row) => [(row as Row).state, (row as { n: number }).n]));
    },
    lastId: (): number => Number(lastId.get()),
  };
}

export function outboxWrites(db: Database) {
  const insert = db.prepare(
    `insert into outbox (id, chat_key, prev, command, part, class, text, extra, reply_to, edit_ref, state, generation,
       created_at)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'ready', ?, ?)`,
  );
  const link = chatLink(db);
  const acknowledge = db.prepare(
    `update outbox set state = 'sent', sent_at = ? where ${LIVE} and state = 'ready' and chat_key = ? and id <= ?`,
  );
  const drop = db.prepare(
    "update outbox set state = 'failed', reason = 'dropped' where id = ? and state in ('ready','unknown','held','failed')",
  );
  const resend = db.prepare(
    `update outbox set state = 'ready', reason = null, attempts = 0, not_before = 0, resent_at = ?,
       again = max(again, state in ('unknown','held'))
     where id = ? and state in ('unknown','held','failed')`,
  );
  const take = db.prepare(
    "update outbox set state = 'sending', attempts = attempts + 1, generation = ? where id = ? and state = 'ready'",
  );
  const sent = db.prepare(
    "update outbox set state = 'sent', sent_at = ?, ext_id = ?, reason = null where id = ? and state = 'sending' and generation = ?",
  );
  const settle = db.prepare(
    `update outbox set state = ?, reason = ?, not_before = ?, again = max(again, ?),
       edit_ref = case ? when 1 then null else edit_ref end
     where id = ? and state = 'sending' and generation <= ?`,
  );
  const takeOver = db.prepare(
    `update outbox set edit_ref = ?
     where command = ? and part = 0 and state = 'ready' and attempts = 0 and edit_ref is null`,
  );
  const expire = db.prepare("update outbox set state = 'failed', reason = ? where id = ? and state = 'ready'");
  return {
    ...outboxReads(db),
    insert(id: PartId, part: NewPart, generation: Generation, now: number): void {
      const { chatKey: chat, command, class: kind, text, extra, replyTo, editRef } = part;
      const prev = link(chat, id);
      insert.run(
        ...[id, chat, prev, command ?? null, part.part, kind, text, extra ?? null, replyTo ?? null, editRef ?? null],
        ...[generation, now],
      );
    },
    /** ready → sent for every part of a pull door's chat up to `id`. Answers how many changed. */
    acknowledge: (chat: string, id: number, now: number): number => acknowledge.run(now, chat, id).changes,
    /** ready → sending, before any byte leaves. */
    take: (id: PartId, generation: Generation): boolean => take.run(generation, id).changes === 1,
    /** sending → sent. `ref` is the platform's id of the message. */
    sent: (id: PartId, ref: string, generation: Generation, now: number): boolean =>
      sent.run(now, ref, id, generation).changes === 1,
    /** sending (of this host or an earlier one) → what became of it. */
    settle: (id: PartId, as: Settled, generation: Generation): boolean =>
      settle.run(as.state, as.reason, as.notBefore ?? 0, flag(as.again), flag(as.anew), id, generation).changes === 1,
    /** A message that shows the beginning of this answer becomes its first part. False when that part was begun, or is none. */
    takeOver: (command: CommandId, ref: string): boolean => takeOver.run(ref, command).changes === 1,
    /** ready → failed: it is too old to be of use. */
    expire: (id: PartId, reason: string): boolean => expire.run(reason, id).changes === 1,
    drop: (id: PartId): boolean => drop.run(id).changes === 1,
    /** unknown | held | failed → ready. What may have arrived goes marked, and never again by itself. */
    resend: (id: PartId, now: number): boolean => resend.run(now, id).changes === 1,
  };
}

function flag(set: boolean | undefined): number {
  return set === true ? 1 : 0;
}
