import { describe, expect, test } from "vitest";
import type { CommandId } from "../../../src/kernel/ids.ts";
import { recover } from "../../../src/queue/recover.ts";
import { makeRig, nextLife, type Rig, SETTINGS } from "./rig.ts";

describe("recovery (G7)", () => {
  test("takes every orphan back at boot, at once and without a timer", async () => {
    await using rig = await makeRig();
    await rig.start();
    const running = [await rig.accept({ sender: "ann" }), await rig.accept({ sender: "bob" })];
    const queued = await rig.accept({ sender: "ann" });
    await rig.quiet();
    await using next = await nextLife(rig);
    expect([...running, queued].map(next.state)).toEqual(["running", "running", "queued"]);
    expect(running.map((id) => next.row(id).claim)).toEqual([2, 2]);
    expect(next.clock.waiting()).toBe(0);
  });

  test("says what it did", async () => {
    await using rig = await makeRig({ settings: { maxAgeMs: 10_000 } });
    await rig.start();
    const stale = await rig.accept({ sender: "ann", acceptedAt: rig.clock.now() - 10_001 });
    await rig.accept({ sender: "bob" });
    await rig.accept({ sender: "bob" });
    await rig.quiet();
    rig.kill();
    await using next = await makeRig({ home: rig.host.home, clock: rig.clock, settings: { maxAgeMs: 10_000 } });
    // The stale one was running: what is given up is not counted as taken back.
    expect(await next.start()).toEqual({ requeued: 1, dead: [stale] });
  });

  test("run again finds nothing to do, and starting twice doubles nothing", async () => {
    await using rig = await makeRig();
    await rig.start();
    const running = await rig.accept();
    const queued = await rig.accept();
    await rig.quiet();
    await using next = await nextLife(rig);
    const request = await next.accept({ kind: "completion", sender: "ann" });
    await next.quiet();
    const again = await next.store.write("recover", (tx) => {
      const runner = { gaveUp: () => expect.unreachable() } as never;
      return recover(tx, { runner, plannedStop: false, now: next.clock.now(), maxAgeMs: SETTINGS.maxAgeMs });
    });
    expect(again).toEqual({ requeued: 0, dead: [] });
    const waits = await next.accept({ kind: "completion", sender: "ann" });
    // A second start answers with the first one's recovery.
    expect(await next.start()).toEqual({ requeued: 1, dead: [] });
    await next.quiet();
    expect([running, queued, request, waits].map(next.state)).toEqual(["running", "queued", "running", "queued"]);
    expect(next.row(running)).toMatchObject({ claim: 2, strikes: 1 });
    expect(next.queue.size()).toBe(2);
    for (const id of [running, queued]) {
      next.works.get(id)!.finish();
      await next.quiet();
    }
    expect(next.claims).toEqual([running, request, queued]);
  });

  test("leaves an open ask as it is, with its session; when it is cancelled the session goes on", async () => {
    await using rig = await makeRig();
    const asking = await rig.accept();
    rig.host.opened.db.prepare("update commands set state = 'waiting', open = 1 where id = ?").run(asking);
    const behind = await rig.accept();
    await using next = await nextLife(rig);
    expect([asking, behind].map(next.state)).toEqual(["waiting", "queued"]);
    expect(await next.queue.cancel(asking, { reason: "stopped" })).toBe("cancelled");
    await next.quiet();
    expect(next.state(behind)).toBe("running");
  });

  test("never runs a stateless request again: its client is gone (contract, OpenAI door)", async () => {
    await using rig = await makeRig();
    await rig.start();
    const running = await rig.accept({ kind: "completion", sender: "ann" });
    const queued = await rig.accept({ kind: "completion", sender: "ann" });
    await rig.quiet();
    await using next = await nextLife(rig);
    for (const id of [running, queued]) {
      expect(next.row(id)).toMatchObject({ state: "cancelled", outcome: expect.stringContaining("client-gone") });
      expect(next.told(id)).toEqual([]);
    }
    expect(next.claims).toEqual([]);
  });
});

describe("work that waited too long (G9)", () => {
  const bootAfter = async (rig: Rig, downMs: number, maxAgeMs = SETTINGS.maxAgeMs) => {
    rig.kill();
    rig.clock.jump(downMs);
    return await nextLife(rig, { settings: { maxAgeMs } });
  };

  test("is not run after a long downtime: it is dead, and its person is told once", async () => {
    await using rig = await makeRig();
    const old = await rig.accept();
    const young = await rig.accept({ sender: "ann", acceptedAt: rig.clock.now() + 1 });
    await using next = await bootAfter(rig, SETTINGS.maxAgeMs + 1);
    expect(next.row(old)).toMatchObject({ state: "dead", outcome: expect.stringContaining("too-old") });
    expect(next.told(old)).toEqual(["too-old"]);
    // Exactly as old as the limit is not older.
    expect(next.state(young)).toBe("running");
    await using third = await nextLife(next);
    expect(third.told(old)).toEqual(["too-old"]);
  });

  test("goes on all the same when it is half done", async () => {
    await using rig = await makeRig();
    await rig.start();
    const id = await rig.accept();
    await rig.quiet();
    await rig.works.get(id)!.step();
    await using next = await bootAfter(rig, 10 * SETTINGS.maxAgeMs);
    expect(next.state(id)).toBe("running");
  });

  test("is run when there is no limit, and nobody ages while the host is up", async () => {
    await using rig = await makeRig();
    await rig.start();
    const id = await rig.accept();
    const behind = await rig.accept();
    await rig.pass(10 * SETTINGS.maxAgeMs);
    rig.works.get(id)!.finish();
    await rig.quiet();
    expect(rig.state(behind)).toBe("running");
    await using next = await bootAfter(rig, 10 * SETTINGS.maxAgeMs, 0);
    expect(next.state(behind)).toBe("running");
  });
});

describe("what comes back to the queue keeps its place", () => {
  const claimFails = async (rig: Rig) => {
    const db = rig.host.opened.db;
    const first = await rig.accept();
    await rig.quiet();
    const ids = [await rig.accept(), await rig.accept(), await rig.accept()];
    db.pragma("query_only = 1");
    rig.works.get(first)!.finish();
    await rig.quiet();
    db.pragma("query_only = 0");
    return ids;
  };

  test("after a claim that the disk refused", async () => {
    await using rig = await makeRig();
    await rig.start();
    const ids = await claimFails(rig);
    await rig.pass(500);
    for (const id of ids) {
      expect(rig.running()).toEqual([id]);
      rig.works.get(id)!.finish();
      await rig.quiet();
    }
  });

  test("after it was handed back: same key, no strike, still half done", async () => {
    await using rig = await makeRig({ isDeaf: () => true });
    await rig.start();
    const id = await rig.accept({ sender: "ann" });
    const later: CommandId[] = [];
    for (let i = 0; i < 3; i += 1) later.push(await rig.accept({ sender: "ann" }));
    await rig.quiet();
    const work = rig.works.get(id)!;
    await work.step();
    const before = rig.row(id);
    work.end({ state: "handed-back" });
    await rig.quiet();
    expect(rig.claims).toEqual([id, id]);
    expect(rig.row(id)).toEqual({ ...before, state: "running", claim: 2, startedAt: expect.any(Number) });
    expect(rig.row(id)).toMatchObject({ open: true, strikes: 0 });
    expect(later.map(rig.state)).toEqual(["queued", "queued", "queued"]);
    // The earlier claim's work is fenced off (G6).
    await expect(work.step()).rejects.toThrow("no longer held");
    expect(rig.store.read.steps.ofCommand(id).filter((step) => step.state === "done")).toHaveLength(1);
  });
});
