import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { StoreUnavailable } from "../../../src/kernel/errors.ts";
import type { Tx } from "../../../src/store/store.ts";
import { type FakeClock, fakeClock } from "../../support/clock.ts";
import { naiveBatch } from "../../support/naive-batch.ts";
import { openTestStore, type TestStore } from "../../support/store.ts";

// A full disk, played by SQLite's own limit of pages: it is the same SQLITE_FULL, raised in the middle of the statement that
// needs a new page. Real full disks are in test/crash/store-disk.test.ts.

type Host = TestStore<FakeClock>;

const note = (tx: Tx, action: string, bytes = 10) =>
  tx.audit.add({ actor: "test", action, target: "", detail: { filler: "x".repeat(bytes) } }, 0);

const LARGE = 400_000;

/** Leaves room for a few more pages, or for as many as anybody wants. */
function limitSpace(host: Host, pages?: number): void {
  const used = Number(host.opened.db.pragma("page_count", { simple: true }));
  host.opened.db.pragma(`max_page_count = ${pages === undefined ? 1_000_000 : used + pages}`);
}

function committed(host: Host): string[] {
  const db = new Database(host.home.paths.db, { readonly: true });
  try {
    return db.prepare("select action from audit order by id").pluck().all() as string[];
  } finally {
    db.close();
  }
}

const events = (host: Host) => host.seen.map((event) => event.type);
const refused = { status: "rejected", reason: expect.any(StoreUnavailable) };

describe("a disk that is full in the middle of a batch (DESIGN Store, G14)", () => {
  test.each([1, 2, 3, 4])("at write %i of 4: all four are rejected and none of them is kept", async (position) => {
    await using host = await openTestStore();
    await host.store.write("before", (tx) => note(tx, "before"));
    limitSpace(host, 8);
    const ran: number[] = [];
    const batch = [1, 2, 3, 4].map((n) =>
      host.store.write(`write ${n}`, (tx) => {
        ran.push(n);
        note(tx, `write ${n}`, n === position ? LARGE : 10);
      }),
    );
    expect(await Promise.allSettled(batch)).toEqual([refused, refused, refused, refused]);
    expect(ran.at(-1)).toBe(position);
    expect(committed(host)).toEqual(["before"]);
    expect(host.opened.db.inTransaction).toBe(false);
    expect(host.store.paused()).toBe(true);
  });

  test("a statement that SQLite can undo alone still gives the whole batch up", async () => {
    await using host = await openTestStore();
    limitSpace(host, 8);
    // A check that can fail on a later row makes SQLite keep a journal for the statement; then only that is rolled back.
    const { db } = host.opened;
    const many = db.prepare(
      `insert into audit (at, actor, action, target, detail)
       select value, '', 'many', '', replace(hex(zeroblob(2000)), '00', 'x') from json_each(?)`,
    );
    let stillOpen = false;
    const fails = host.store.write("many", () => {
      try {
        many.run(JSON.stringify(Array.from({ length: 500 }, (_, n) => n)));
      } catch (thrown) {
        stillOpen = db.inTransaction;
        throw thrown;
      }
    });
    const after = host.store.write("after", (tx) => note(tx, "after"));
    expect(await Promise.allSettled([fails, after])).toEqual([refused, refused]);
    expect(stillOpen).toBe(true);
    expect(committed(host)).toEqual([]);
  });

  test("control: a loop that does not look at the transaction commits later writes one by one while all are told that they failed", async () => {
    await using host = await openTestStore();
    limitSpace(host, 8);
    const rejected = naiveBatch(host.opened.db, [
      { name: "one", bytes: 10 },
      { name: "two", bytes: LARGE },
      { name: "three", bytes: 10 },
      { name: "four", bytes: 10 },
    ]);
    expect(rejected).toEqual(["one", "two", "three", "four"]);
    expect(committed(host)).toEqual(["three", "four"]);
  });
});

describe("the pause (G14)", () => {
  async function fullHost(clock = fakeClock()) {
    const host = await openTestStore({ clock });
    limitSpace(host, 8);
    await expect(host.store.write("too large", (tx) => note(tx, "too large", LARGE))).rejects.toThrow(StoreUnavailable);
    return host;
  }

  test("later writes are refused at once, without being run", async () => {
    await using host = await fullHost();
    let ran = false;
    const write = host.store.write("small", () => {
      ran = true;
    });
    await expect(write).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("SQLITE_FULL"),
    });
    expect(ran).toBe(false);
    expect(events(host)).toEqual(["store.paused"]);
    expect(host.logged.map((line) => line.event)).toEqual(["store.paused"]);
  });

  test.each([1_000, 50_000, 130_000, 3_600_000])(
    "after %i ms of a full disk it ends by itself within 30 s of space coming back, and says so once",
    async (fullMs) => {
      await using host = await fullHost();
      await host.clock.advance(fullMs);
      expect(host.store.paused()).toBe(true);
      expect(events(host)).toEqual(["store.paused"]);
      limitSpace(host);
      await host.clock.advance(30_000);
      expect(host.store.paused()).toBe(false);
      expect(events(host)).toEqual(["store.paused", "store.resumed"]);
      expect(host.clock.waiting()).toBe(0);
      await host.store.write("again", (tx) => note(tx, "again", LARGE));
      expect(committed(host)).toEqual(["again"]);
      expect(host.store.integrity()).toEqual(["ok"]);
    },
  );

  test("a second full disk pauses and resumes anew", async () => {
    await using host = await fullHost();
    limitSpace(host);
    await host.clock.advance(30_000);
    limitSpace(host, 8);
    await expect(host.store.write("too large", (tx) => note(tx, "too large", LARGE))).rejects.toThrow(StoreUnavailable);
    limitSpace(host);
    await host.clock.advance(30_000);
    expect(events(host)).toEqual(["store.paused", "store.resumed", "store.paused", "store.resumed"]);
  });

  test("who waits until it is writable goes on at the resumption, and at once when it is writable already", async () => {
    await using host = await fullHost();
    const { signal } = new AbortController();
    let writable = false;
    const waits = host.store.writable(signal).then(() => {
      writable = true;
    });
    await host.clock.advance(60_000);
    expect(writable).toBe(false);
    limitSpace(host);
    await host.clock.advance(30_000);
    await waits;
    await host.store.writable(signal);
  });

  test("a wait for it ends with the signal", async () => {
    await using host = await fullHost();
    const controller = new AbortController();
    const waits = host.store.writable(controller.signal);
    controller.abort("enough");
    await expect(waits).rejects.toMatchObject({ code: "aborted", reason: "enough" });
    await expect(host.store.writable(controller.signal)).rejects.toMatchObject({ code: "aborted" });
  });

  test.each([
    { moment: "between two probes", full: true },
    { moment: "during a probe that fails", full: true },
    { moment: "during a probe that succeeds", full: false },
  ])("a store closed $moment leaves no timer and reports nothing more", async ({ moment, full }) => {
    const clock = fakeClock();
    let afterFiring = () => {};
    const after: FakeClock["after"] = (ms, fire) =>
      clock.after(ms, () => {
        fire();
        afterFiring();
      });
    await using host = await fullHost({ ...clock, after });
    if (!full) limitSpace(host);
    if (moment === "between two probes") host.store.close();
    else afterFiring = () => host.store.close();
    await clock.advance(3_600_000);
    expect(clock.waiting()).toBe(0);
    expect(events(host)).toEqual(["store.paused"]);
    await expect(host.store.write("late", () => {})).rejects.toThrow(/closed/);
  });
});
