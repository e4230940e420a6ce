import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { DataUnusable, FencedOff, StoreUnavailable } from "../../../src/kernel/errors.ts";
import { makeBatch } from "../../../src/store/batch.ts";
import type { Tx } from "../../../src/store/store.ts";
import { openTestStore, type TempHome } from "../../support/store.ts";

// Group commit (design, "Store"; guarantees 5.1). A row of the audit table stands for any write.

const note = (tx: Tx, action: string) => tx.audit.add({ actor: "test", action, target: "", detail: {} }, 0);

/** Another connection: it sees what is committed and nothing else. */
function outsider(home: TempHome) {
  const db = new Database(home.paths.db, { readonly: true });
  const actions = db.prepare("select action from audit order by id").pluck();
  return { actions: () => actions.all() as string[], [Symbol.dispose]: () => db.close() };
}

/** From another process: an ordinary call on the file here would drop the lock that this one holds. */
function damagePage(file: string, page: number): void {
  const script = `const fs = require("node:fs"), fd = fs.openSync(process.argv[1], "r+"); fs.writeSync(fd, Buffer.alloc(4096, 0x5a), 0, 4096, ${(page - 1) * 4096})`;
  execFileSync(process.execPath, ["-e", script, file]);
}

/** How many commits the write-ahead log holds: the frames that carry a database size (sqlite.org/fileformat2.html#walformat). */
function commitsIn(wal: string): number {
  const bytes = readFileSync(wal);
  const frameBytes = 24 + bytes.readUInt32BE(8);
  let commits = 0;
  for (let at = 32; at + frameBytes <= bytes.length; at += frameBytes) {
    if (bytes.readUInt32BE(at + 4) !== 0) commits += 1;
  }
  return commits;
}

test("the writes of one loop turn are one commit, in their order, whatever their number (DESIGN Store)", async () => {
  const points: string[] = [];
  await using host = await openTestStore({ crashPoint: (name) => points.push(name) });
  const wal = `${host.home.paths.db}-wal`;
  const before = commitsIn(wal);
  const names = ["a", "b", "c"];
  const order: string[] = [];
  const write = async (name: string) => {
    await host.store.write(name, (tx) => note(tx, name));
    order.push(name);
  };
  await Promise.all([...names.map(write), ...Array.from({ length: 61 }, () => write("more"))]);
  expect(commitsIn(wal) - before).toBe(1);
  expect(order.slice(0, 3)).toEqual(names);
  expect(host.store.read.audit.recent(100).map((row) => row.action)).toHaveLength(64);
  expect(points.slice(0, 3)).toEqual(names.map((name) => `commit.before:${name}`));
  expect(points.slice(64, 67)).toEqual(names.map((name) => `commit.after:${name}`));

  await write("d");
  await write("e");
  expect(commitsIn(wal) - before).toBe(3);
});

test("nothing of a batch is visible before its commit point, all of it after, and only then is anybody told", async () => {
  const visible: [point: string, rows: number][] = [];
  const home = { current: undefined as TempHome | undefined };
  const settled: string[] = [];
  await using host = await openTestStore({
    crashPoint(name) {
      using other = outsider(home.current!);
      visible.push([name, other.actions().length]);
      expect(settled).toEqual([]);
    },
  });
  home.current = host.home;
  const write = (name: string) => host.store.write(name, (tx) => note(tx, name)).then(() => settled.push(name));
  await Promise.all([write("a"), write("b")]);
  expect(visible).toEqual([
    ["commit.before:a", 0],
    ["commit.before:b", 0],
    ["commit.after:a", 2],
    ["commit.after:b", 2],
  ]);
});

test("a write that fails, by a constraint or by throwing, fails alone and leaves nothing; the others of the batch are kept", async () => {
  await using host = await openTestStore();
  const event = { channel: "test", account: "1", key: "same" };
  const bug = new Error("planted");
  const results = await Promise.allSettled([
    host.store.write("first", (tx) => note(tx, "first")),
    host.store.write("throws", (tx) => {
      note(tx, "before the throw");
      throw bug;
    }),
    host.store.write("inbox", (tx) => tx.inbox.insert(event, "hash", 1 as never, 0)),
    host.store.write("twice", (tx) => {
      note(tx, "before the constraint");
      tx.inbox.insert(event, "hash", 2 as never, 0);
    }),
    host.store.write("last", (tx) => note(tx, "last")),
  ]);
  expect(results.map((result) => result.status)).toEqual([
    "fulfilled",
    "rejected",
    "fulfilled",
    "rejected",
    "fulfilled",
  ]);
  expect(results[1]).toMatchObject({ reason: bug });
  expect(results[3]).toMatchObject({ reason: { code: "SQLITE_CONSTRAINT_PRIMARYKEY" } });
  using other = outsider(host.home);
  expect(other.actions()).toEqual(["first", "last"]);
  expect(host.store.paused()).toBe(false);
});

test("when the commit itself fails, the whole batch is rejected and nobody is told otherwise", async () => {
  await using host = await openTestStore();
  const orphan = host.opened.db.prepare(
    "insert into steps values (4711, 1, 'model', 'done', '', null, null, null, 0, null)",
  );
  const results = await Promise.allSettled([
    host.store.write("good", (tx) => note(tx, "good")),
    host.store.write("found at the commit only", () => {
      host.opened.db.pragma("defer_foreign_keys = on");
      orphan.run();
    }),
  ]);
  expect(results).toEqual([
    { status: "rejected", reason: expect.any(StoreUnavailable) },
    { status: "rejected", reason: expect.any(StoreUnavailable) },
  ]);
  using other = outsider(host.home);
  expect(other.actions()).toEqual([]);
});

test("a write that makes SQLite end the transaction takes the whole batch with it", async () => {
  await using host = await openTestStore();
  const ends = host.opened.db.prepare("insert or rollback into meta (key, value) values ('generation', 1)");
  const ran: string[] = [];
  const write = (name: string, act: (tx: Tx) => unknown) =>
    host.store.write(name, (tx) => {
      ran.push(name);
      act(tx);
    });
  const results = await Promise.allSettled([
    write("before", (tx) => note(tx, "before")),
    write("ends it", () => ends.run()),
    write("after", (tx) => note(tx, "after")),
  ]);
  expect(results.map((result) => result.status)).toEqual(["rejected", "rejected", "rejected"]);
  expect(ran).toEqual(["before", "ends it"]);
  using other = outsider(host.home);
  expect(other.actions()).toEqual([]);
});

test("a write made while a batch runs, or when it has ended, comes in the next one", async () => {
  const points: string[] = [];
  await using host = await openTestStore({ crashPoint: (name) => points.push(name) });
  const inner: Promise<unknown>[] = [];
  await host.store.write("outer", (tx) => {
    note(tx, "outer");
    inner.push(host.store.write("inner", (again) => note(again, "inner")));
  });
  inner.push(host.store.write("then", (tx) => note(tx, "then")));
  await Promise.all(inner);
  const [first, second] = ["outer", "inner"].map((name) => [`commit.before:${name}`, `commit.after:${name}`]);
  expect(points.slice(0, 2)).toEqual(first);
  expect(points).toEqual(expect.arrayContaining(second!));
  using other = outsider(host.home);
  expect(other.actions()).toEqual(["outer", "inner", "then"]);
});

test("an asynchronous write is refused and undone: what it did later would be outside the transaction", async () => {
  await using host = await openTestStore();
  const write = host.store.write("async", async (tx) => note(tx, "async"));
  await expect(write).rejects.toThrow(/"async" is asynchronous/);
  expect(host.store.read.audit.recent(1)).toEqual([]);
  expect(host.store.paused()).toBe(false);
});

test("closing commits what waits, and later writes are refused without waking a probe", async () => {
  await using host = await openTestStore();
  const last = host.store.write("last", (tx) => note(tx, "last"));
  host.store.close();
  await last;
  await expect(host.store.write("late", (tx) => note(tx, "late"))).rejects.toThrow(StoreUnavailable);
  expect(host.clock.waiting()).toBe(0);
  expect(host.seen).toEqual([]);
  await using next = await openTestStore({ home: host.home });
  expect(next.store.read.audit.recent(9).map((row) => row.action)).toEqual(["last"]);
});

test("a host whose lock file was removed commits nothing once another has started, and is told to end (G6, G13)", async () => {
  await using host = await openTestStore();
  await host.store.write("mine", (tx) => note(tx, "mine"));
  rmSync(host.home.paths.lockDb);
  await using rival = await openTestStore({ home: host.home });
  await rival.store.write("theirs", (tx) => note(tx, "theirs"));
  const results = await Promise.allSettled(["a", "b"].map((name) => host.store.write(name, (tx) => note(tx, name))));
  expect(results).toEqual([
    { status: "rejected", reason: expect.any(FencedOff) },
    { status: "rejected", reason: expect.any(FencedOff) },
  ]);
  expect(host.fatal).toHaveLength(1);
  expect(host.fatal[0]?.exitCode).toBe(70);
  expect(host.fatal[0]?.message).toContain("generation 2, this one is 1");
  using other = outsider(host.home);
  expect(other.actions()).toEqual(["mine", "theirs"]);
  expect(rival.fatal).toEqual([]);
});

test("a write that meets a damaged page is told so for good: the host must end with exit 65, not wait (fault matrix, database corrupt)", async () => {
  await using host = await openTestStore();
  const { db } = host.opened;
  await host.store.write("whole", (tx) => note(tx, "whole"));
  const root = Number(db.prepare("select rootpage from sqlite_schema where name = 'audit'").pluck().get());
  db.pragma("wal_checkpoint(truncate)");
  damagePage(host.home.paths.db, root);
  db.pragma("shrink_memory");
  const results = await Promise.allSettled(["a", "b"].map((name) => host.store.write(name, (tx) => note(tx, name))));
  expect(results).toEqual([
    { status: "rejected", reason: expect.any(DataUnusable) },
    { status: "rejected", reason: expect.any(DataUnusable) },
  ]);
  expect(host.fatal).toEqual([expect.objectContaining({ exitCode: 65 })]);
  expect(host.fatal[0]?.message).toMatch(/damaged.*SQLITE_CORRUPT/);
  expect([host.store.paused(), host.seen, host.clock.waiting()]).toEqual([false, [], 0]);
});

test("when even the rollback fails, the writers hear of it and the next batch heals the connection", async () => {
  await using host = await openTestStore();
  const { db, generation } = host.opened;
  let broken = true;
  const rollback = db.prepare("rollback");
  const flaky = Object.assign(Object.create(rollback) as object, {
    run() {
      if (broken) throw new Error("planted: no rollback");
      return rollback.run();
    },
  });
  const seen: StoreUnavailable[] = [];
  const batch = makeBatch({
    db: new Proxy(db, {
      get(target, name) {
        if (name === "prepare") return (sql: string) => (sql === "rollback" ? flaky : target.prepare(sql));
        return Reflect.get(target, name, target);
      },
    }),
    generation,
    crashPoint: () => {},
    onFatal: () => {},
    onUnavailable: (error) => seen.push(error),
  });
  const fault = Object.assign(new Error("planted"), { code: "SQLITE_IOERR" });
  const fails = () =>
    batch.write("fails", () => {
      throw fault;
    });
  await expect(fails()).rejects.toThrow(StoreUnavailable);
  broken = false;
  await expect(fails()).rejects.toThrow(StoreUnavailable);
  await expect(batch.write("works", () => 5)).resolves.toBe(5);
  expect(seen).toHaveLength(2);
});
