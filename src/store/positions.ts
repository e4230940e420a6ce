// Owns: the SQL of positions: where each platform is to go on, committed together with the events before it.
import type { Database } from "better-sqlite3";

export function positionReads(db: Database) {
  const get = db.prepare("select position from positions where channel = ? and identity = ?").pluck();
  return {
    /** By the bot's own numeric id, not by the account's name or its token (G3). */
    get: (channel: string, identity: string): string | undefined => get.get(channel, identity) as string | undefined,
  };
}

export function positionWrites(db: Database) {
  const put = db.prepare(
    `insert into positions (channel, identity, position) values (?, ?, ?)
     on conflict (channel, identity) do update set position = excluded.position`,
  );
  return {
    ...positionReads(db),
    put(channel: string, identity: string, position: string): void {
      put.run(channel, identity, position);
    },
  };
}
