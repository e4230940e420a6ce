// Owns: the SQL of the inbox: which events were accepted, so that a redelivery makes no second command (G2).
import type { Database } from "better-sqlite3";
import type { CommandId } from "../kernel/ids.ts";

export interface EventKey {
  readonly channel: string;
  readonly account: string;
  readonly key: string;
}

export function inboxReads(db: Database) {
  const find = db.prepare("select command from inbox where channel = ? and account = ? and event_key = ?").pluck();
  const sameBody = db
    .prepare("select raw_hash = ? from inbox where channel = ? and account = ? and event_key = ?")
    .pluck();
  const byHash = db
    .prepare(
      "select command from inbox where raw_hash = ? and channel = 'api' and received_at >= ? order by command desc limit 1",
    )
    .pluck();
  return {
    /** Its command, null when none came of it, undefined when it is new. */
    find: (event: EventKey): CommandId | null | undefined =>
      find.get(event.channel, event.account, event.key) as CommandId | null | undefined,
    /** False when the key was used with another body. */
    hasBody: (event: EventKey, rawHash: string): boolean =>
      sameBody.get(rawHash, event.channel, event.account, event.key) !== 0,
    /** The newest command that the API made from the same raw body since `since`. */
    findByHash: (rawHash: string, since: number): CommandId | undefined =>
      byHash.get(rawHash, since) as CommandId | undefined,
  };
}

export function inboxWrites(db: Database) {
  const insert = db.prepare(
    "insert into inbox (channel, account, event_key, received_at, raw_hash, command) values (?, ?, ?, ?, ?, ?)",
  );
  const forget = db.prepare("delete from inbox where received_at < ?");
  return {
    ...inboxReads(db),
    insert(event: EventKey, rawHash: string, command: CommandId | null, now: number): void {
      insert.run(event.channel, event.account, event.key, now, rawHash, command);
    },
    /**
     * Deduplication rows are kept longer than any platform redelivers. Reads the whole table, once a day: an index by age would
     * cost every message a page.
     */
    forgetBefore: (instant: number): number => forget.run(instant).changes,
  };
}
