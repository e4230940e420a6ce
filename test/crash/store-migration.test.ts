import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { systemClock } from "../../src/kernel/clock.ts";
import { openHome, type TempHome, tempHome } from "../support/store.ts";
import { KILL_POINTS, KILL_POINTS_OF_FIRST, PLANTED, stateOf, wholeStates } from "../support/store-migrations.ts";
import { startStoreProcess } from "../support/store-process.ts";

/** CI runs a share; a campaign runs R13 in full. */
const KILLS = process.env["LANEWAY_CAMPAIGN"] === undefined ? 6 : 50;

const WHOLE = wholeStates();

function look(home: TempHome): unknown {
  const db = new Database(home.paths.db);
  try {
    expect(db.pragma("integrity_check", { simple: true })).toBe("ok");
    return stateOf(db);
  } finally {
    db.close();
  }
}

/** The version that the home is at, which it must be at wholly. */
function wholeVersion(home: TempHome): number {
  const state = look(home);
  const version = WHOLE.findIndex((whole) => JSON.stringify(whole) === JSON.stringify(state));
  expect(version, `a mix of two schemas: ${JSON.stringify(state).slice(0, 500)}`).not.toBe(-1);
  return version;
}

/** The next start completes what is missing. */
function complete(home: TempHome): void {
  openHome(home, PLANTED).close();
  expect(wholeVersion(home)).toBe(2);
}

test(`a death at any of ${KILL_POINTS} points inside two migrations leaves the schema of before, and the next start goes on (G20)`, async () => {
  const versions: number[] = [];
  const points = Array.from({ length: KILL_POINTS }, (_, n) => n + 1);
  for (const point of points) {
    await using home = await tempHome();
    await using child = startStoreProcess("upgrade-and-die", home, [`${point}`]);
    expect(await child.ended).toEqual({ code: null, signal: "SIGKILL" });
    versions.push(wholeVersion(home));
    complete(home);
  }
  // A death inside of the first migration leaves nothing of it; one inside of the second leaves the first whole.
  expect(versions).toEqual(points.map((point) => (point <= KILL_POINTS_OF_FIRST ? 0 : 1)));
});

test(`${KILLS} kills at random moments of a start that migrates leave the old schema or the new one (G20)`, async () => {
  const clock = systemClock();
  const { signal } = new AbortController();
  await using trial = await tempHome();
  const started = clock.mono();
  openHome(trial, PLANTED).close();
  const usualMs = clock.mono() - started;
  const found = new Map<number, number>();
  for (let kill = 1; kill <= KILLS; kill++) {
    await using home = await tempHome();
    await using child = startStoreProcess("upgrade", home);
    await child.line(/begins/);
    await clock.sleep(Math.random() * 1.2 * usualMs, signal);
    child.kill();
    await child.ended;
    const version = wholeVersion(home);
    found.set(version, (found.get(version) ?? 0) + 1);
    complete(home);
  }
  console.log(`schemas found after ${KILLS} kills: ${JSON.stringify(Object.fromEntries(found))}`);
});
