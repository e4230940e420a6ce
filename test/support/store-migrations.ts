// Owns: two planted migrations, large enough to be killed in the middle, and what a database looks like before, between and
// after them.
import Database from "better-sqlite3";
import { migrate } from "../../src/store/migrate.ts";
import type { Migration } from "../../src/store/schema.ts";

/** The SQL function that is called between any two statements of `killable` migrations. */
export const KILL_POINT = "kill_point";

const ROWS = 3_000;

const STATEMENTS: readonly (readonly string[])[] = [
  [
    "create table meta (key text primary key, value any not null) strict, without rowid",
    "create table people (id integer primary key, name text not null) strict",
    `with recursive n (id) as (select 1 union all select id + 1 from n where id < ${ROWS})
     insert into people select id, printf('%.400c', 'x') || id from n`,
    "create index people_by_name on people (name)",
  ],
  [
    "alter table people add column born integer",
    "update people set born = id * 7, name = name || '!'",
    "create table ages (person integer primary key references people (id), age integer) strict",
    "insert into ages select id, born from people",
    "drop index people_by_name",
  ],
];

/** One more than the statements of each: before the first, between any two, after the last. */
const POINTS = STATEMENTS.map((statements) => statements.length + 1);
export const KILL_POINTS = POINTS.reduce((sum, points) => sum + points);
export const KILL_POINTS_OF_FIRST = POINTS[0] ?? 0;

function planted(between: (point: number) => string): readonly Migration[] {
  let point = 0;
  const next = () => {
    point += 1;
    return between(point);
  };
  return STATEMENTS.map((statements, n) => ({
    version: n + 1,
    name: `planted ${n + 1}`,
    sql: [next(), ...statements.flatMap((statement) => [`${statement};`, next()])].join("\n"),
  }));
}

export const PLANTED: readonly Migration[] = planted(() => "");
export const KILLABLE: readonly Migration[] = planted((point) => `select ${KILL_POINT}(${point});`);

/** Everything that a migration can leave behind, in a form that can be compared; the generation is left out. */
export function stateOf(db: Database.Database): unknown {
  const all = (sql: string) => db.prepare(sql).all();
  const schema = all("select type, name, sql from sqlite_schema where name not like 'sqlite_%' order by name");
  const tables = db
    .prepare("select name from sqlite_schema where type = 'table' and name <> 'meta' order by name")
    .pluck()
    .all();
  return {
    version: db.pragma("user_version", { simple: true }),
    schema,
    rows: tables.map((table) => all(`select count(*) as n, * from ${String(table)} group by rowid % 100`)),
  };
}

/** The three whole states: nothing, the first migration, both. */
export function wholeStates(): unknown[] {
  return [0, 1, 2].map((count) => {
    const db = new Database(":memory:");
    migrate(db, PLANTED.slice(0, count));
    return stateOf(db);
  });
}
