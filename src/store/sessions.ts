// Owns: the SQL of sessions: one conversation each.
import type { Database } from "better-sqlite3";
import type { SessionKey } from "../kernel/ids.ts";
import type { BusyMode, Route } from "./commands.ts";

export interface Session {
  readonly key: SessionKey;
  readonly agent: string;
  readonly channel: string;
  readonly chat: string;
  readonly createdAt: number;
  /** The backend that was chosen for it. */
  readonly backend: string | undefined;
  readonly mode: BusyMode | undefined;
  readonly startsAfter: number;
}

export interface SessionSummary extends Session {
  readonly messages: number;
  readonly lastAt: number | undefined;
}

interface Row {
  key: string;
  agent: string;
  channel: string;
  chat: string;
  created_at: number;
  backend: string | null;
  mode: BusyMode | null;
  starts_after: number;
  messages: number;
  last_at: number | null;
}

function parse(row: Row): Session {
  return {
    key: row.key as SessionKey,
    agent: row.agent,
    channel: row.channel,
    chat: row.chat,
    createdAt: row.created_at,
    backend: row.backend ?? undefined,
    mode: row.mode ?? undefined,
    startsAfter: row.starts_after,
  };
}

export function sessionReads(db: Database) {
  const get = db.prepare("select * from sessions where key = ?");
  const list = db.prepare("select * from sessions order by last_at desc, created_at desc limit ?");
  return {
    get(key: SessionKey): Session | undefined {
      const row = get.get(key);
      return row === undefined ? undefined : parse(row as Row);
    },
    list: (limit: number): SessionSummary[] =>
      list.all(limit).map((raw) => {
        const row = raw as Row;
        return { ...parse(row), messages: row.messages, lastAt: row.last_at ?? undefined };
      }),
  };
}

export function sessionWrites(db: Database) {
  const ensure = db.prepare(
    `insert into sessions (key, agent, channel, account, chat, thread, created_at) values (?, ?, ?, ?, ?, ?, ?)
     on conflict (key) do nothing`,
  );
  const restart = db.prepare("update sessions set starts_after = ? where key = ?");
  const setMode = db.prepare("update sessions set mode = ? where key = ?");
  const choose = db.prepare("update sessions set backend = ? where key = ?");
  return {
    ...sessionReads(db),
    /** The backend that goes before the agent's own; undefined for none. */
    choose: (key: SessionKey, backend: string | undefined): boolean => choose.run(backend ?? null, key).changes === 1,
    /** What happens to its messages while it is busy; undefined for what the settings say. */
    setMode: (key: SessionKey, mode: BusyMode | undefined): boolean => setMode.run(mode ?? null, key).changes === 1,
    ensure(key: SessionKey, agent: string, route: Route, now: number): void {
      ensure.run(key, agent, route.channel, route.account, route.chat, route.thread ?? null, now);
    },
    /** From now on the model sees only rows after `seq`. */
    startAfter: (key: SessionKey, seq: number): boolean => restart.run(seq, key).changes === 1,
  };
}
