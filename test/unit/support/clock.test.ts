// Proves the fake clock that the other tests stand on.
import { expect, test } from "vitest";
import { Aborted } from "../../../src/kernel/errors.ts";
import { fakeClock } from "../../support/clock.ts";

test("advance moves wall time and monotonic time together", async () => {
  const clock = fakeClock(1000);
  await clock.advance(250);
  expect([clock.now(), clock.mono()]).toEqual([1250, 250]);
});

test("jump moves wall time alone and fires nothing", async () => {
  const clock = fakeClock(1000);
  let fired = 0;
  clock.after(50, () => fired++);
  clock.jump(3_600_000);
  await clock.advance(49);
  expect([fired, clock.now(), clock.mono()]).toEqual([0, 3_601_049, 49]);
  clock.jump(-7_200_000);
  await clock.advance(1);
  expect([fired, clock.mono()]).toEqual([1, 50]);
});

test("due timers fire in the order of their instants, equal ones in the order of their start, each at its instant", async () => {
  const clock = fakeClock(0);
  const seen: string[] = [];
  for (const [name, ms] of [
    ["c", 30],
    ["a", 10],
    ["b1", 20],
    ["b2", 20],
  ] as const) {
    clock.after(ms, () => seen.push(`${name}@${clock.mono()}`));
  }
  await clock.advance(100);
  expect(seen).toEqual(["a@10", "b1@20", "b2@20", "c@30"]);
});

test("a timer that a promise starts between two timers fires at its own instant", async () => {
  const clock = fakeClock(0);
  const seen: string[] = [];
  const { signal } = new AbortController();
  const chain = async () => {
    await clock.sleep(10, signal);
    await clock.sleep(10, signal);
    seen.push(`slept@${clock.mono()}`);
  };
  const done = chain();
  clock.after(25, () => seen.push(`late@${clock.mono()}`));
  await clock.advance(25);
  await done;
  expect(seen).toEqual(["slept@20", "late@25"]);
});

test("a stopped timer never fires, and an aborted sleep leaves no timer", async () => {
  const clock = fakeClock(0);
  const abort = new AbortController();
  const stop = clock.after(10, () => expect.unreachable());
  const sleeping = clock.sleep(10, abort.signal);
  stop();
  abort.abort("enough");
  await expect(sleeping).rejects.toBeInstanceOf(Aborted);
  expect(clock.waiting()).toBe(0);
  await clock.advance(100);
});
