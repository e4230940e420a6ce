// Owns: the SQL of peers: senders that the settings do not name, and what the owner decided about them (ID-R2, ID-2).
//
// | state             | event                          | next     |
// |-------------------|--------------------------------|----------|
// | none, denied      | writes and is told a code      | pending  |
// | pending           | the owner approves by the code | approved |
// | pending, approved | the owner denies               | denied   |
import type { Database } from "better-sqlite3";

export interface PeerKey {
  readonly channel: string;
  readonly account: string;
  /** The platform's numeric id; names grant nothing (ID-R1). */
  readonly sender: string;
}

export interface Peer extends PeerKey {
  /** For people only. */
  readonly name: string;
  readonly state: "pending" | "approved" | "denied";
  readonly code: string | undefined;
  readonly expiresAt: number;
  readonly wrong: number;
  /** When the sender was told last how to be let in. */
  readonly toldAt: number;
}

interface Row {
  channel: string;
  account: string;
  sender: string;
  name: string;
  state: Peer["state"];
  code: string | null;
  expires_at: number;
  wrong: number;
  told_at: number;
}

function parse(row: Row): Peer {
  const { channel, account, sender, name, state, wrong } = row;
  return {
    ...{ channel, account, sender, name, state, wrong },
    code: row.code ?? undefined,
    expiresAt: row.expires_at,
    toldAt: row.told_at,
  };
}

export function peerReads(db: Database) {
  const get = db.prepare("select * from peers where channel = ? and account = ? and sender = ?");
  const list = db.prepare("select * from peers order by told_at desc limit ?");
  const pending = db.prepare("select * from peers where state = 'pending' and expires_at > ?");
  const misses = db.prepare("select count(*) from pairing_misses where at > ? and channel = ?").pluck();
  return {
    get({ channel, account, sender }: PeerKey): Peer | undefined {
      const row = get.get(channel, account, sender);
      return row === undefined ? undefined : parse(row as Row);
    },
    /** Newest first. */
    list: (limit: number): Peer[] => list.all(limit).map((row) => parse(row as Row)),
    /** Those whose code still holds. */
    pending: (now: number): Peer[] => pending.all(now).map((row) => parse(row as Row)),
    misses: (channel: string, since: number): number => Number(misses.get(since, channel)),
  };
}

export function peerWrites(db: Database) {
  const ask = db.prepare(
    `insert into peers (channel, account, sender, name, state, code, expires_at, told_at) values (?, ?, ?, ?, 'pending', ?, ?, ?)
     on conflict (channel, account, sender) do update
     set state = 'pending', name = excluded.name, code = excluded.code, expires_at = excluded.expires_at, wrong = 0,
       told_at = excluded.told_at
     where state in ('pending','denied')`,
  );
  const approve = db.prepare(
    `update peers set state = 'approved', code = null, decided_at = ?
     where channel = ? and account = ? and sender = ? and state = 'pending' and code = ? and expires_at > ?`,
  );
  const deny = db.prepare(
    `update peers set state = 'denied', code = null, decided_at = ?
     where channel = ? and account = ? and sender = ? and state in ('pending','approved')`,
  );
  const wrong = db.prepare(
    `update peers set wrong = wrong + 1, code = case when wrong + 1 >= ? then null else code end
     where channel = ? and state = 'pending' and expires_at > ?`,
  );
  const miss = db.prepare("insert into pairing_misses (channel, at) values (?, ?)");
  const forget = db.prepare("delete from pairing_misses where at < ?");
  return {
    ...peerReads(db),
    /** none | pending | denied → pending with a new code. */
    ask({ channel, account, sender }: PeerKey, about: { name: string; code: string; expiresAt: number }, now: number) {
      return ask.run(channel, account, sender, about.name, about.code, about.expiresAt, now).changes === 1;
    },
    /** pending → approved, while that code holds. */
    approve: ({ channel, account, sender }: PeerKey, code: string, now: number): boolean =>
      approve.run(now, channel, account, sender, code, now).changes === 1,
    /** pending | approved → denied. */
    deny: ({ channel, account, sender }: PeerKey, now: number): boolean =>
      deny.run(now, channel, account, sender).changes === 1,
    /** A wrong code counts against every request that it could have been meant for; at `void` tries a request's code is void. */
    missed(channel: string, voidAt: number, now: number): void {
      wrong.run(voidAt, channel, now);
      miss.run(channel, now);
    },
    forgetMissesBefore: (instant: number): number => forget.run(instant).changes,
  };
}
