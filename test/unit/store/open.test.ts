import { readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { AlreadyRunning, DataUnusable, StoreUnavailable } from "../../../src/kernel/errors.ts";
import { assertDurable, openDatabase } from "../../../src/store/open.ts";
import { migrations } from "../../../src/store/schema.ts";
import { openHome, openTestStore, type TempHome, tempHome } from "../../support/store.ts";

/** What was thrown; the test fails when nothing was. */
function thrownBy(run: () => unknown): unknown {
  try {
    run();
  } catch (thrown) {
    return thrown;
  }
  throw new Error("expected it to throw");
}

function withRaw<T>(file: string, use: (db: Database.Database) => T): T {
  const db = new Database(file);
  try {
    return use(db);
  } finally {
    db.close();
  }
}

describe("durability (guarantees 5.1)", () => {
  test("after the first writes the connection is really in WAL with synchronous=FULL, and all pragmas of the design hold", async () => {
    await using host = await openTestStore();
    await host.store.write("some", (tx) => tx.audit.add({ actor: "", action: "", target: "", detail: {} }, 0));
    const of = (name: string) => host.opened.db.pragma(name, { simple: true });
    expect({
      journal_mode: of("journal_mode"),
      synchronous: of("synchronous"),
      foreign_keys: of("foreign_keys"),
      busy_timeout: of("busy_timeout"),
      trusted_schema: of("trusted_schema"),
      wal_autocheckpoint: of("wal_autocheckpoint"),
      journal_size_limit: of("journal_size_limit"),
    }).toEqual({
      journal_mode: "wal",
      synchronous: 2,
      foreign_keys: 1,
      busy_timeout: 5000,
      trusted_schema: 0,
      wal_autocheckpoint: 1000,
      journal_size_limit: 64 * 1024 * 1024,
    });
  });

  test("the drop to NORMAL of this build shows only after the first write, and is refused then", async () => {
    await using home = await tempHome();
    withRaw(home.paths.db, (db) => {
      db.pragma("journal_mode = WAL");
      expect(db.pragma("synchronous", { simple: true })).toBe(2);
      db.exec("create table t (a)");
      expect(thrownBy(() => assertDurable(db))).toMatchObject({
        exitCode: 65,
        message: expect.stringContaining(`"synchronous":1`),
      });
      db.pragma("synchronous = FULL");
      db.exec("insert into t values (1)");
      expect(() => assertDurable(db)).not.toThrow();
      db.pragma("foreign_keys = OFF");
      expect(() => assertDurable(db)).toThrow(DataUnusable);
    });
  });

  test("a database that cannot be in WAL is refused with exit 65", async () => {
    await using home = await tempHome();
    const open = () => openDatabase({ db: ":memory:", lockDb: home.paths.lockDb, holder: () => undefined });
    expect(thrownBy(open)).toMatchObject({ exitCode: 65, message: expect.stringContaining(`"journal_mode":"memory"`) });
  });
});

describe("generation (G6, guarantees 5.2)", () => {
  test("each opening raises it by one, and the store carries it", async () => {
    await using home = await tempHome();
    for (const expected of [1, 2, 3]) {
      await using host = await openTestStore({ home });
      expect(host.store.generation).toBe(expected);
    }
  });

  test("a planned stop is known to the next host only, and only when that host itself said so (G8)", async () => {
    await using home = await tempHome();
    const life = async (planStop: boolean) => {
      await using host = await openTestStore({ home });
      if (planStop) await host.store.write("stop", (tx) => tx.meta.planStop(tx.generation));
      return host.store.plannedStop;
    };
    expect([await life(false), await life(true), await life(false), await life(false)]).toEqual([
      false,
      false,
      true,
      false,
    ]);
  });
});

describe("one host per home (G13)", () => {
  test("a second opening is refused with exit 75, names the holder and does not touch the data", async () => {
    await using host = await openTestStore();
    const { db, lockDb } = host.home.paths;
    const second = thrownBy(() => openDatabase({ db, lockDb, holder: () => "pid 4711" }));
    expect(second).toBeInstanceOf(AlreadyRunning);
    expect(second).toMatchObject({ exitCode: 75, message: expect.stringContaining("pid 4711") });
    await host.store.write("still", () => {});
    expect(host.store.generation).toBe(1);
  });

  test("an opening that fails frees the lock", async () => {
    await using home = await tempHome();
    const broken = [{ version: 1, name: "broken", sql: "create table" }];
    expect(() => openHome(home, broken)).toThrow(DataUnusable);
    openHome(home).close();
  });

  test("a lock file that is none is refused with exit 65 and may be deleted", async () => {
    await using home = await tempHome();
    await home.write(
      "lock.db",
      "this is not a database at all, but it is long enough to look like something".repeat(20),
    );
    expect(thrownBy(() => openHome(home))).toMatchObject({ exitCode: 65, hint: expect.stringContaining("deleted") });
    rmSync(home.paths.lockDb);
    openHome(home).close();
  });
});

describe("data that cannot be used (G20, fault matrix)", () => {
  async function usedHome(): Promise<TempHome> {
    const home = await tempHome();
    await using host = await openTestStore({ home });
    for (let round = 0; round < 50; round++) {
      const detail = { filler: "x".repeat(2_000) };
      await host.store.write("row", (tx) => tx.audit.add({ actor: "", action: `${round}`, target: "", detail }, 0));
    }
    return home;
  }

  /** Everything that can change in a file by an opening. */
  const fingerprint = (file: string) => ({ bytes: readFileSync(file).toString("base64"), size: statSync(file).size });

  test.each(["WAL", "DELETE"])(
    "data of a newer schema in %s is refused with exit 65, says so, and the file stays as it was",
    async (mode) => {
      await using home = await usedHome();
      const newer = migrations.length + 1;
      withRaw(home.paths.db, (db) => {
        db.pragma(`journal_mode = ${mode}`);
        db.pragma(`user_version = ${newer}`);
      });
      const before = fingerprint(home.paths.db);
      const refusal = thrownBy(() => openHome(home));
      expect(refusal).toBeInstanceOf(DataUnusable);
      expect(refusal).toMatchObject({
        exitCode: 65,
        message: expect.stringContaining(`schema ${newer}`),
        hint: expect.stringContaining("newer Laneway"),
      });
      expect(fingerprint(home.paths.db)).toEqual(before);
    },
  );

  test("a file that is no database is refused with exit 65 and advice to restore, and stays as it was", async () => {
    await using home = await tempHome();
    writeFileSync(home.paths.db, "no database ".repeat(1_000));
    const before = fingerprint(home.paths.db);
    const refusal = thrownBy(() => openHome(home));
    expect(refusal).toBeInstanceOf(DataUnusable);
    expect(refusal).toMatchObject({ exitCode: 65, hint: expect.stringContaining("restore the latest backup") });
    expect(fingerprint(home.paths.db)).toEqual(before);
  });

  test("a database cut in half is refused with exit 65 and never deleted", async () => {
    await using home = await usedHome();
    const half = Math.floor(statSync(home.paths.db).size / 8192) * 4096;
    truncateSync(home.paths.db, half);
    expect(thrownBy(() => openHome(home))).toMatchObject({ exitCode: 65 });
    expect(statSync(home.paths.db).size).toBe(half);
  });

  test("a folder that is not there, or a database that is a folder, is refused in plain words", async () => {
    await using home = await tempHome();
    const gone = openDatabase.bind(undefined, {
      db: home.at("gone/laneway.db"),
      lockDb: home.at("gone/lock.db"),
      holder: () => undefined,
    });
    expect(thrownBy(gone)).toMatchObject({ exitCode: 65, message: expect.stringContaining("cannot reach it") });
    await home.write("laneway.db/file", "");
    expect(thrownBy(() => openHome(home))).toMatchObject({
      exitCode: 65,
      message: expect.stringContaining("cannot be opened"),
    });
  });

  test("a disk that is full for now is no corrupt data: a supervisor may start again (G14)", async () => {
    await using home = await tempHome();
    const full = [
      {
        version: 1,
        name: "large",
        sql: "create table t (a); pragma max_page_count = 3; insert into t values (zeroblob(100000));",
      },
    ];
    const refusal = thrownBy(() => openHome(home, full));
    expect(refusal).toBeInstanceOf(StoreUnavailable);
    expect(refusal).toMatchObject({ exitCode: 1, message: expect.stringContaining("full") });
    openHome(home).close();
  });
});

test("a backup made while the store is written holds everything accepted before it, and opens as a home of its own (G21)", async () => {
  await using host = await openTestStore();
  const write = (n: number) => {
    const detail = { filler: "x".repeat(4_000) };
    return host.store.write("row", (tx) => tx.audit.add({ actor: "", action: `${n}`, target: "", detail }, 0));
  };
  const numbers = Array.from({ length: 600 }, (_, n) => n);
  await Promise.all(numbers.map(write));
  await using copy = await tempHome();
  let running = true;
  const backup = host.store.backup(copy.paths.db).finally(() => {
    running = false;
  });
  for (let n = numbers.length; running; n++) await write(n);
  await backup;
  await using restored = await openTestStore({ home: copy });
  expect(restored.store.integrity()).toEqual(["ok"]);
  const kept = new Set(restored.store.read.audit.recent(100_000).map((row) => Number(row.action)));
  expect(numbers.filter((n) => !kept.has(n))).toEqual([]);
});
