import type { Database } from "better-sqlite3";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/kernel/clock.ts";
import { noCrashPoint } from "../../../src/kernel/crashpoint.ts";
import { makeEvents } from "../../../src/kernel/events.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { makeStore } from "../../../src/store/store.ts";
import { openTestStore } from "../../support/store.ts";

/** Every statement that a store prepares. */
function statementsOf(db: Database): string[] {
  const found = new Set<string>();
  const listening = new Proxy(db, {
    get(target, name) {
      if (name !== "prepare") return Reflect.get(target, name, target);
      return (sql: string) => {
        found.add(sql);
        return target.prepare(sql);
      };
    },
  });
  makeStore({
    opened: { db: listening, generation: 1 as never, plannedStop: false, close: () => {} },
    clock: systemClock(),
    log: silentLog,
    events: makeEvents(() => {}),
    crashPoint: noCrashPoint,
    onFatal: () => {},
  });
  return [...found].filter((sql) => /^\s*(select|insert|update|delete)\b/i.test(sql));
}

function planOf(db: Database, sql: string): string[] {
  const explain = db.prepare(`explain query plan ${sql}`);
  const named = [...sql.matchAll(/@(\w+)/g)].map(([, name]) => [name, 1]);
  const values = named.length > 0 ? [Object.fromEntries(named)] : [...sql.matchAll(/\?/g)].map(() => 1);
  return explain.all(...values).map((row) => (row as { detail: string }).detail);
}

/** These read a whole table by intent: the newest rows first, until the limit is reached; the lists of conversations and peers; the daily cleaning. */
const READS_IN_ORDER = /^select [\w, *]+ from \w+ order by id desc limit \?$/;
const LISTS = /from (sessions order by last_at|peers order by told_at) desc/;
const DAILY = ["delete from inbox where received_at < ?", "delete from rejected where at < ?"];

test("no statement reads through a table whose history grows: every cost is that of what is live (R10, Q17.3)", async () => {
  await using host = await openTestStore();
  const { db } = host.opened;
  const statements = statementsOf(db);
  expect(statements.length).toBeGreaterThan(40);
  const scans = statements
    .filter((sql) => !READS_IN_ORDER.test(sql) && !LISTS.test(sql) && !DAILY.includes(sql))
    .map((sql) => ({ sql, plan: planOf(db, sql) }))
    .filter(({ plan }) => plan.some((step) => step.startsWith("SCAN")));
  expect(scans).toEqual([]);
});

test("removing an old command looks at its own rows only", async () => {
  await using host = await openTestStore();
  const plan = planOf(host.opened.db, "delete from commands where id = ?");
  expect(plan.filter((step) => step.startsWith("SCAN"))).toEqual([]);
});

test("acknowledging parts looks at what waits, not at the history of the chat", async () => {
  await using host = await openTestStore();
  const sql = statementsOf(host.opened.db).find((one) => one.startsWith("update outbox set state = 'sent'"));
  expect(planOf(host.opened.db, sql ?? "")).toEqual([expect.stringContaining("INDEX outbox_live")]);
});
