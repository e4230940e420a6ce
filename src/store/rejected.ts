// Owns: the SQL of events that could not be read or kept: nothing that a platform sent disappears without a trace.
import type { Database } from "better-sqlite3";
import type { EventKey } from "./inbox.ts";

/** Enough to see what it was; a platform's event is far smaller. */
const MAX_RAW_CHARS = 20_000;

export function rejectedWrites(db: Database) {
  const insert = db.prepare(
    "insert into rejected (at, channel, account, event_key, raw, problem) values (?, ?, ?, ?, ?, ?)",
  );
  const forget = db.prepare("delete from rejected where at < ?");
  return {
    /** Reads the whole table, once a day: it is small. */
    forgetBefore: (instant: number): number => forget.run(instant).changes,
    add({ channel, account, key }: EventKey, raw: string, problem: string, now: number): void {
      insert.run(now, channel, account, key, raw.slice(0, MAX_RAW_CHARS), problem);
    },
  };
}
