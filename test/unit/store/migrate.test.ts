import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { DataUnusable } from "../../../src/kernel/errors.ts";
import { migrate } from "../../../src/store/migrate.ts";
import { type Migration, migrations } from "../../../src/store/schema.ts";

const ONE: Migration = { version: 1, name: "one", sql: "create table one (a); insert into one values (1);" };
const TWO: Migration = {
  version: 2,
  name: "two",
  sql: "alter table one add column b; update one set b = 2; create table two (a);",
};

const memory = () => new Database(":memory:");
const version = (db: Database.Database) => db.pragma("user_version", { simple: true });
const tables = (db: Database.Database) =>
  db.prepare("select name from sqlite_schema where type = 'table' order by name").pluck().all();

test("each migration runs once, in order, whatever the version that it starts from (G20)", () => {
  const db = memory();
  migrate(db, [ONE]);
  expect([version(db), tables(db)]).toEqual([1, ["one"]]);
  migrate(db, [ONE, TWO]);
  migrate(db, [ONE, TWO]);
  expect([version(db), tables(db)]).toEqual([2, ["one", "two"]]);
  expect(db.prepare("select * from one").all()).toEqual([{ a: 1, b: 2 }]);
});

test("a migration that fails leaves the schema and the number of before, and keeps the earlier ones (G20)", () => {
  const db = memory();
  const broken = { ...TWO, sql: `${TWO.sql} insert into nowhere values (1);` };
  expect(() => migrate(db, [ONE, broken])).toThrow(/nowhere/);
  expect([version(db), tables(db), db.prepare("select * from one").all()]).toEqual([1, ["one"], [{ a: 1 }]]);
  migrate(db, [ONE, TWO]);
  expect(version(db)).toBe(2);
});

test("a migration and its number are one transaction: no death can come between them (G20)", () => {
  const db = memory();
  const inTransaction: boolean[] = [];
  const listening = new Proxy(db, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        const sets = name === "pragma" && /user_version =/.test(String(args[0]));
        if (name === "exec" || sets) inTransaction.push(target.inTransaction);
        return value.apply(target, args) as unknown;
      };
    },
  });
  migrate(listening, [ONE, TWO]);
  expect(inTransaction).toEqual([true, true, true, true]);
});

test("data of a newer schema is refused by an older program, and stays as it is (G20)", () => {
  const db = memory();
  migrate(db, [ONE, TWO]);
  expect(() => migrate(db, [ONE])).toThrow(DataUnusable);
  expect([version(db), tables(db)]).toEqual([2, ["one", "two"]]);
});

test("the numbers of the real migrations are 1, 2, 3 … and their names differ", () => {
  expect(migrations.map((migration) => migration.version)).toEqual(migrations.map((_, index) => index + 1));
  expect(new Set(migrations.map((migration) => migration.name)).size).toBe(migrations.length);
});
