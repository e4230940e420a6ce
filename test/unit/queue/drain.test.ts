import { describe, expect, test } from "vitest";
import { fakeClock } from "../../support/clock.ts";
import { makeRig, nextLife, type Rig } from "./rig.ts";

// The graceful stop (G17). The drain's own bound: what it is given, and two seconds for work to hand itself back.

const HAND_BACK_MS = 2_000;

async function planStop({ store }: Rig): Promise<void> {
  await store.write("plan-stop", (tx) => tx.meta.planStop(store.generation));
}

/** Whether a promise has settled, asked after everything that is ready has happened. */
async function isOver(rig: Rig, promise: Promise<unknown>): Promise<boolean> {
  const overNow = promise.then(() => true);
  await rig.quiet();
  return await Promise.race([overNow, Promise.resolve(false)]);
}

describe("a drain", () => {
  test("starts nothing more, lets running work end, and is over when it has", async () => {
    await using rig = await makeRig();
    await rig.start();
    const running = await rig.accept();
    const queued = await rig.accept();
    await rig.quiet();
    const drained = rig.queue.drain(25_000);
    const late = await rig.accept({ sender: "ann" });
    await rig.pass(10_000);
    expect(await isOver(rig, drained)).toBe(false);
    rig.works.get(running)!.finish();
    await drained;
    expect([running, queued, late].map(rig.state)).toEqual(["done", "queued", "queued"]);
    expect(rig.clock.waiting()).toBe(0);
  });

  test("is over at once when nothing runs, whatever waits in back-off", async () => {
    await using rig = await makeRig();
    await rig.start();
    await rig.accept({}, rig.clock.now() + 60_000);
    await rig.quiet();
    await rig.queue.drain(25_000);
    expect(rig.clock.waiting()).toBe(0);
    await rig.pass(60_000);
    expect(rig.claims).toEqual([]);
  });

  test("stops what runs when its time is over and hands it back without penalty, at its old place, half done as it is", async () => {
    await using rig = await makeRig();
    await rig.start();
    const id = await rig.accept();
    await rig.quiet();
    await rig.works.get(id)!.step();
    const before = rig.row(id);
    const { signal } = rig.works.get(id)!;
    await planStop(rig);
    const drained = rig.queue.drain(25_000);
    await rig.pass(24_999);
    expect(signal.aborted).toBe(false);
    await rig.pass(1);
    expect(signal.reason).toBe("drain");
    await drained;
    expect(rig.row(id)).toEqual({ ...before, state: "queued" });
    await using next = await nextLife(rig);
    expect(next.row(id)).toMatchObject({ state: "running", strikes: 0, open: true, claim: 2 });
  });

  test("is over within its bound when work does not listen, and the next life takes no strike for it", async () => {
    await using rig = await makeRig({ isDeaf: () => true });
    await rig.start();
    const id = await rig.accept();
    await rig.quiet();
    await planStop(rig);
    const drained = rig.queue.drain(25_000);
    await rig.pass(25_000);
    expect(await isOver(rig, drained)).toBe(false);
    await rig.pass(HAND_BACK_MS);
    await drained;
    await using next = await nextLife(rig);
    expect(next.row(id)).toMatchObject({ state: "running", strikes: 0, claim: 2 });
  });

  test("is over within its bound when the disk is full", async () => {
    await using rig = await makeRig();
    await rig.start();
    const id = await rig.accept();
    await rig.quiet();
    rig.host.opened.db.pragma("query_only = 1");
    rig.works.get(id)!.finish();
    const drained = rig.queue.drain(25_000);
    for (let passed = 0; passed < 27; passed += 1) await rig.pass(1_000);
    await drained;
  });

  test("hands work back that rejects because it was told to stop", async () => {
    const onRun: NonNullable<Parameters<typeof makeRig>[0]>["onRun"] = (work) =>
      work.signal.addEventListener("abort", () => work.reject(new Error("aborted")));
    await using rig = await makeRig({ isDeaf: () => true, onRun });
    await rig.start();
    const id = await rig.accept();
    await rig.quiet();
    const drained = rig.queue.drain(1_000);
    await rig.pass(1_000);
    await drained;
    expect(rig.state(id)).toBe("queued");
    expect(rig.told(id)).toEqual([]);
  });

  test("hands back a command whose claim is being written when time is over, without running it", async () => {
    const clock = fakeClock();
    // The drain's limit passes before the loop turn in which the claim is committed.
    const after: typeof clock.after = (ms, fire) => {
      if (ms > 0) return clock.after(ms, fire);
      queueMicrotask(fire);
      return () => {};
    };
    await using rig = await makeRig({ clock: { ...clock, after }, isDeaf: () => true });
    await rig.start();
    const made = await rig.store.write("accept", (tx) => rig.queue.insert(tx, rig.message()));
    const { id } = made;
    rig.queue.offer(made);
    await rig.queue.drain(0);
    expect(rig.row(id)).toMatchObject({ state: "queued", strikes: 0, claim: 1 });
    expect(rig.claims).toEqual([]);
  });

  test("leaves the work of a cancelled command fenced off, and no timer that would keep the process", async () => {
    await using rig = await makeRig({ settings: { abortGraceMs: 60_000 } });
    await rig.start();
    const id = await rig.accept();
    await rig.quiet();
    rig.works.get(id)!.finish();
    const drained = rig.queue.drain(1_000);
    const cancelled = rig.queue.cancel(id, { reason: "stopped" });
    await drained;
    await cancelled;
    expect(rig.clock.waiting()).toBe(0);
  });
});

test("nothing is claimed before recovery is over (G7)", async () => {
  await using rig = await makeRig();
  const id = await rig.accept();
  await rig.quiet();
  expect(rig.state(id)).toBe("queued");
  await rig.start();
  await rig.quiet();
  expect(rig.state(id)).toBe("running");
});
