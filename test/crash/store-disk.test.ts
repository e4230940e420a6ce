import { execFileSync } from "node:child_process";
import Database from "better-sqlite3";
import { describe, expect, type TestContext, test } from "vitest";
import { type Clock, systemClock } from "../../src/kernel/clock.ts";
import { StoreUnavailable } from "../../src/kernel/errors.ts";
import type { Store, Tx } from "../../src/store/store.ts";
import { fakeClock } from "../support/clock.ts";
import { naiveBatch } from "../support/naive-batch.ts";
import { mountSmallDisk, type SmallDisk } from "../support/small-disk.ts";
import { openHome, openTestStore, type TempHome, type TestStore, tempHome } from "../support/store.ts";
import { startStoreProcess } from "../support/store-process.ts";

const MB = 1024 * 1024;
const PAGE = 4096;
/** Room for a few pages in the log, and for less than the probe writes. */
const NEARLY_NOTHING = 12 * PAGE;
const LARGE = MB;

const note = (tx: Tx, action: string, bytes = 10) =>
  tx.audit.add({ actor: "", action, target: "", detail: { filler: "x".repeat(bytes) } }, 0);
const write = (store: Store, action: string, bytes?: number) => store.write(action, (tx) => note(tx, action, bytes));
const refused = { status: "rejected", reason: expect.any(StoreUnavailable) };
const types = (host: TestStore<Clock>) => host.seen.map((event) => event.type);

interface HomeOnDisk extends AsyncDisposable {
  readonly home: TempHome;
  readonly disk: SmallDisk;
}

/** A home on a disk of its own of 2 MB. Where that cannot be, the test says so and is skipped. */
async function homeOnSmallDisk({ skip }: TestContext): Promise<HomeOnDisk> {
  const home = await tempHome();
  const disk = mountSmallDisk(home.path, 2 * MB);
  if (typeof disk === "string") {
    await home[Symbol.asyncDispose]();
    console.log(`skipped: needs mount (${disk})`);
    return skip("needs mount");
  }
  const dispose = async () => {
    disk[Symbol.dispose]();
    await home[Symbol.asyncDispose]();
  };
  return { home, disk, [Symbol.asyncDispose]: dispose };
}

/** Rows that another connection sees. */
function committed(home: TempHome): string[] {
  const db = new Database(home.paths.db, { readonly: true });
  try {
    return db.prepare("select action from audit order by id").pluck().all() as string[];
  } finally {
    db.close();
  }
}

/** With so small a cache the pages of a large write go to the disk while its statement runs, else at the commit. */
const MOMENTS = { "in its own statement": 10, "at the commit": -16_000 } as const;

describe("a disk that is really full (G14, R5)", () => {
  test.for(
    [1, 2, 3, 4].flatMap((position) =>
      (Object.keys(MOMENTS) as (keyof typeof MOMENTS)[]).map((moment) => ({ position, moment })),
    ),
  )(
    "write $position of 4 fills it $moment: none is kept, all are told, the store opens again by itself",
    async ({ position, moment }, context) => {
      await using place = await homeOnSmallDisk(context);
      const clock = fakeClock();
      {
        await using host = await openTestStore({ home: place.home, clock });
        host.opened.db.pragma(`cache_size = ${MOMENTS[moment]}`);
        await write(host.store, "acknowledged", 1_000);
        place.disk.fill(NEARLY_NOTHING);

        const batch = [1, 2, 3, 4].map((n) => write(host.store, `write ${n}`, n === position ? LARGE : 10));
        expect(await Promise.allSettled(batch)).toEqual([refused, refused, refused, refused]);
        expect(committed(place.home)).toEqual(["acknowledged"]);
        await expect(write(host.store, "later")).rejects.toThrow(/SQLITE_FULL/);

        await clock.advance(600_000);
        expect(types(host)).toEqual(["store.paused"]);
        place.disk.free();
        await clock.advance(30_000);
        expect(types(host)).toEqual(["store.paused", "store.resumed"]);
        await write(host.store, "resumed", 1_000);
      }
      await using next = await openTestStore({ home: place.home });
      expect(next.store.integrity()).toEqual(["ok"]);
      expect(next.store.read.audit.recent(9).map((row) => row.action)).toEqual(["resumed", "acknowledged"]);
    },
  );

  test("control: a loop that does not look at the transaction commits later writes while it tells their callers that they failed", async (context) => {
    await using place = await homeOnSmallDisk(context);
    await using host = await openTestStore({ home: place.home });
    host.opened.db.pragma("cache_size = 10");
    place.disk.fill(NEARLY_NOTHING);
    const rejected = naiveBatch(host.opened.db, [
      { name: "one", bytes: 10 },
      { name: "two", bytes: LARGE },
      { name: "three", bytes: 10 },
      { name: "four", bytes: 10 },
    ]);
    expect(rejected).toEqual(["one", "two", "three", "four"]);
    expect(committed(place.home)).toEqual(["three", "four"]);
  });

  test("in real time it goes on within seconds of space coming back", async (context) => {
    await using place = await homeOnSmallDisk(context);
    await using host = await openTestStore({ home: place.home, clock: systemClock() });
    place.disk.fill(0);
    await expect(write(host.store, "large", LARGE)).rejects.toThrow(StoreUnavailable);
    place.disk.free();
    await host.store.writable(AbortSignal.timeout(60_000));
    await write(host.store, "again", 1_000);
    expect(committed(place.home)).toEqual(["again"]);
  });

  test("a host that starts on a full disk says so without calling the data unusable, and starts when there is space", async (context) => {
    await using place = await homeOnSmallDisk(context);
    place.disk.fill(0);
    expect(() => openHome(place.home)).toThrow(StoreUnavailable);
    place.disk.free();
    openHome(place.home).close();
  });

  test("a disk that fills up while the log is long loses nothing that was acknowledged", async (context) => {
    await using place = await homeOnSmallDisk(context);
    const kept: string[] = [];
    {
      await using host = await openTestStore({ home: place.home });
      place.disk.fill(MB);
      for (let n = 0; !host.store.paused(); n++) {
        const results = await Promise.allSettled([
          write(host.store, `${n} a`, 3_000),
          write(host.store, `${n} b`, 9_000),
        ]);
        if (results.every((result) => result.status === "fulfilled")) kept.push(`${n} a`, `${n} b`);
      }
      expect(kept.length).toBeGreaterThan(20);
      expect(committed(place.home)).toEqual(kept);
    }
    place.disk.free();
    await using next = await openTestStore({ home: place.home });
    expect(committed(place.home)).toEqual(kept);
    expect(next.store.integrity()).toEqual(["ok"]);
  });
});

describe("a file that may not grow (G14, R5)", () => {
  test("writes fail with an I/O error, nothing rejected is kept, and the host goes on when it may write again", async ({
    skip,
  }) => {
    const missing = whyNoPrlimit();
    if (missing !== undefined) {
      console.log(`skipped: needs prlimit (${missing})`);
      skip("needs prlimit");
    }
    await using home = await tempHome();
    openHome(home).close();
    await using child = startStoreProcess("fill", home, [], { prefix: ["prlimit", `--fsize=${MB}:unlimited`] });
    await child.line(/^rejected 1000000 /);
    execFileSync("prlimit", ["--pid", `${child.pid}`, "--fsize=unlimited"]);
    expect(await child.line(/^integrity/)).toBe("integrity ok");
    child.kill();
    await child.ended;

    const said = (pattern: RegExp) => child.said.flatMap((line) => pattern.exec(line)?.[1] ?? []);
    const acknowledged = said(/^acknowledged (\d+)/);
    expect(acknowledged.length).toBeGreaterThan(20);
    expect(said(/^rejected (\d+) store_unavailable .*SQLITE_IOERR_WRITE/)).toHaveLength(5);
    expect(said(/^(store\..*)/)).toEqual(["store.paused", "store.resumed"]);
    await using next = await openTestStore({ home });
    expect(committed(home)).toEqual(acknowledged);
    expect(next.store.integrity()).toEqual(["ok"]);
  });
});

function whyNoPrlimit(): string | undefined {
  try {
    execFileSync("prlimit", ["--version"], { stdio: "pipe" });
    return process.platform === "linux" ? undefined : process.platform;
  } catch (thrown) {
    return String(thrown);
  }
}
