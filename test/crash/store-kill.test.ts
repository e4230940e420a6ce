import { expect, test } from "vitest";
import { openTestStore, type TempHome, tempHome } from "../support/store.ts";
import { startStoreProcess } from "../support/store-process.ts";

/** CI runs a share; a campaign runs more. */
const KILLS = process.env["LANEWAY_CAMPAIGN"] === undefined ? 10 : 100;
/** The child writes so many rows in one loop turn, so they are one commit. */
const ROWS_PER_TURN = 5;

interface Life {
  readonly acknowledged: readonly number[];
  /** The rows that were there when the home was opened again. */
  readonly kept: ReadonlySet<number>;
  readonly integrity: readonly string[];
}

/** Lets a child write on the home until it has said so many lines, or kills itself, and looks at what it left. */
async function lifeOf(home: TempHome, lines: number, args: readonly string[]): Promise<Life> {
  await using child = startStoreProcess("write", home, args);
  if (args.length === 1) {
    await child.lines(lines);
    child.kill();
  }
  expect(await child.ended).toEqual({ code: null, signal: "SIGKILL" });
  const acknowledged = child.said.flatMap((line) => /^acknowledged (\d+)$/.exec(line)?.[1] ?? []).map(Number);
  await using host = await openTestStore({ home });
  const kept = new Set(host.store.read.audit.recent(1_000_000).map((row) => Number(row.action)));
  return { acknowledged, kept, integrity: host.store.integrity() };
}

const lost = (life: Life) => life.acknowledged.filter((n) => !life.kept.has(n));

test(`${KILLS} kills at any moment: every acknowledged row is there, no commit is there in part (G1)`, async () => {
  let total = 0;
  for (let kill = 1; kill <= KILLS; kill++) {
    await using home = await tempHome();
    const life = await lifeOf(home, 1 + Math.floor(Math.random() * 300), ["late"]);
    expect(lost(life)).toEqual([]);
    expect(life.integrity).toEqual(["ok"]);
    // In order, without a gap, in whole turns; what was committed but not yet told may be there as well.
    expect(Math.max(0, ...life.kept)).toBe(life.kept.size);
    expect(life.kept.size % ROWS_PER_TURN).toBe(0);
    total += life.acknowledged.length;
  }
  console.log(`${total} rows acknowledged before ${KILLS} kills, none lost`);
});

test("a death right before the commit keeps nothing of it; right after it everything, although nobody was told", async () => {
  await using before = await tempHome();
  const early = await lifeOf(before, 0, ["late", "commit.before:row#8"]);
  expect([early.acknowledged, early.kept.size]).toEqual([[1, 2, 3, 4, 5], ROWS_PER_TURN]);
  await using after = await tempHome();
  const late = await lifeOf(after, 0, ["late", "commit.after:row#8"]);
  expect([late.acknowledged, late.kept.size]).toEqual([[1, 2, 3, 4, 5], 2 * ROWS_PER_TURN]);
});

test("control: a writer that acknowledges before its commit loses rows", async () => {
  await using home = await tempHome();
  const life = await lifeOf(home, 0, ["early", "commit.before:row#8"]);
  expect(lost(life)).toEqual([6, 7, 8, 9, 10]);
});
