import { expect, test } from "vitest";
import { takeLock } from "../../src/store/lock.ts";
import { openHome, openTestStore, tempHome } from "../support/store.ts";
import { startStoreProcess } from "../support/store-process.ts";

/** CI runs a share; a campaign runs R8 in full. */
const ROUNDS = process.env["LANEWAY_CAMPAIGN"] === undefined ? 10 : 50;

test("a second host ends at once with 75, names the holder and changes nothing (G13)", async () => {
  await using home = await tempHome();
  await using first = startStoreProcess("hold", home);
  await first.line(/^open 1$/);
  await using second = startStoreProcess("hold", home, [`pid ${first.pid}`]);
  expect(await second.ended).toEqual({ code: 75, signal: null });
  expect(second.errors()).toContain(`(pid ${first.pid})`);
  first.hangUp();
  expect(await first.ended).toEqual({ code: 0, signal: null });
  await using next = await openTestStore({ home });
  expect(next.store.generation).toBe(2);
});

test("the home is free as soon as its holder is dead, whatever it was doing (G13)", async () => {
  await using home = await tempHome();
  for (let round = 1; round <= 3; round++) {
    await using holder = startStoreProcess("write", home);
    await holder.lines(20);
    holder.kill();
    await holder.ended;
    const opened = openHome(home);
    expect(opened.generation).toBe(2 * round);
    opened.close();
  }
});

test(`of four hosts that start together exactly one gets the home, in each of ${ROUNDS} rounds (G13, R8)`, async () => {
  await using home = await tempHome();
  await using stack = new AsyncDisposableStack();
  const racers = [1, 2, 3, 4].map(() => stack.use(startStoreProcess("race", home)));
  await Promise.all(racers.map((racer) => racer.line(/^ready$/)));
  for (let round = 1; round <= ROUNDS; round++) {
    const heard = racers.map((racer) => racer.said.length);
    for (const racer of racers) racer.tell("go");
    await Promise.all(racers.map((racer, n) => racer.lines(heard[n]! + 1)));
    const results = racers.map((racer, n) => racer.said[heard[n]!]);
    // A loser that had touched the data would have raised the generation too.
    expect(results.toSorted()).toEqual([`open ${round}`, "refused 75", "refused 75", "refused 75"]);
    for (const racer of racers) racer.tell("close");
    await Promise.all(racers.map((racer, n) => racer.lines(heard[n]! + 2)));
  }
});

test("a start that meets another one half-way waits for that moment instead of giving up", async () => {
  await using home = await tempHome();
  openHome(home).close();
  await using other = startStoreProcess("pass-by", home);
  await other.line(/half-way/);
  takeLock(home.paths.lockDb, () => undefined)();
});

test("control: closing any descriptor of the lock file lets a second host in; the fence still keeps the first from writing (G6, G13)", async () => {
  await using home = await tempHome();
  await using first = startStoreProcess("hold", home);
  await first.line(/^open 1$/);
  first.tell("touch");
  await first.line(/^touch done$/);
  await using second = startStoreProcess("hold", home);
  await second.line(/^open 2$/);
  first.tell("write");
  expect(await first.ended).toEqual({ code: 70, signal: null });
  second.tell("write");
  await second.line(/^write done$/);
  second.hangUp();
  expect(await second.ended).toEqual({ code: 0, signal: null });
  await using next = await openTestStore({ home });
  expect(next.store.read.audit.recent(9)).toHaveLength(1);
});
