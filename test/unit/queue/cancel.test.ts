import { describe, expect, test } from "vitest";
import { NotFound } from "../../../src/kernel/errors.ts";
import type { CommandId } from "../../../src/kernel/ids.ts";
import { makeRig, nextLife, type Rig } from "./rig.ts";

// Stopping what runs and waits (G18), and that nothing of it comes back.

const STOPPED = { reason: "stopped" } as const;
const mainRuns = (rig: Rig) => rig.queue.lanes().find(({ lane }) => lane === "main")?.running;

describe("a queued command", () => {
  test("is gone at once, never runs, and lets those behind it go", async () => {
    await using rig = await makeRig();
    await rig.start();
    const blocked = await rig.accept({}, rig.clock.now() + 60_000);
    const behind = await rig.accept();
    await rig.quiet();
    expect(await rig.queue.cancel(blocked, STOPPED)).toBe("cancelled");
    await rig.quiet();
    expect([blocked, behind].map(rig.state)).toEqual(["cancelled", "running"]);
    expect(rig.row(blocked).outcome).toBe('{"reason":"stopped"}');
    await rig.pass(60_000);
    expect(rig.claims).toEqual([behind]);
  });

  test("stays cancelled across a restart", async () => {
    await using rig = await makeRig();
    await rig.start();
    const running = await rig.accept();
    const queued = await rig.accept();
    await rig.quiet();
    await Promise.all([running, queued].map((id) => rig.queue.cancel(id, STOPPED)));
    await using next = await nextLife(rig);
    expect([running, queued].map(next.state)).toEqual(["cancelled", "cancelled"]);
    expect(next.claims).toEqual([]);
  });
});

describe("a running command", () => {
  test("is told to stop at once; its late end changes nothing and its slot goes to the next", async () => {
    await using rig = await makeRig({ isDeaf: () => true });
    await rig.start();
    const id = await rig.accept();
    const next = await rig.accept();
    await rig.quiet();
    const work = rig.works.get(id)!;
    await rig.queue.cancel(id, STOPPED);
    expect(work.signal).toMatchObject({ aborted: true, reason: "cancelled" });
    await expect(work.step()).rejects.toThrow("no longer held");
    work.finish();
    await rig.quiet();
    expect([id, next].map(rig.state)).toEqual(["cancelled", "running"]);
    expect(rig.told(id)).toEqual([]);
    expect(mainRuns(rig)).toBe(1);
    expect(rig.clock.waiting()).toBe(0);
  });

  test("that does not listen loses its slot and its session after the grace, and whatever it does then changes nothing", async () => {
    await using rig = await makeRig({ isDeaf: () => true, settings: { abortGraceMs: 5_000 } });
    await rig.start();
    const id = await rig.accept();
    const next = await rig.accept();
    await rig.quiet();
    const work = rig.works.get(id)!;
    await rig.queue.cancel(id, STOPPED);
    await rig.pass(4_999);
    expect(rig.state(next)).toBe("queued");
    await rig.pass(1);
    expect([id, next].map(rig.state)).toEqual(["cancelled", "running"]);
    expect(mainRuns(rig)).toBe(1);
    work.reject(new Error("much later"));
    await rig.quiet();
    expect([id, next].map(rig.state)).toEqual(["cancelled", "running"]);
    expect(mainRuns(rig)).toBe(1);
  });

  test("is told to stop also when the cancel was committed together with its claim", async () => {
    await using rig = await makeRig({ isDeaf: () => true });
    await rig.start();
    const made = await rig.store.write("accept", (tx) => rig.queue.insert(tx, rig.message()));
    const { id } = made;
    // The claim is written in this loop turn, and the cancel after it in the same commit.
    rig.queue.offer(made);
    expect(await rig.queue.cancel(id, STOPPED)).toBe("cancelled");
    await rig.quiet();
    expect(rig.claims).toEqual([]);
    expect(mainRuns(rig)).toBe(0);
    expect(rig.state(id)).toBe("cancelled");
  });

  test("that ended in the same commit keeps the state of whichever was written first", async () => {
    await using rig = await makeRig();
    await rig.start();
    const ids = [await rig.accept({ sender: "ann" }), await rig.accept({ sender: "bob" })] as const;
    await rig.quiet();
    const [first, second] = ids.map((id) => rig.works.get(id)!);
    const cancelled = rig.queue.cancel(ids[0], STOPPED);
    first!.finish();
    second!.finish();
    // The work's end takes a few promise turns to become a write.
    for (let turns = 0; turns < 10; turns += 1) await Promise.resolve();
    const late = rig.queue.cancel(ids[1], STOPPED);
    expect([await cancelled, await late]).toEqual(["cancelled", "done"]);
    await rig.quiet();
    expect(ids.map(rig.state)).toEqual(["cancelled", "done"]);
    expect(ids.map(rig.told)).toEqual([[], ["done"]]);
    expect(mainRuns(rig)).toBe(0);
    expect(rig.clock.waiting()).toBe(0);
  });
});

describe("the answer to a cancel", () => {
  test.each(["queued", "running", "waiting", "absorbed"])(
    "of a command that is %s is `cancelled`, once",
    async (state) => {
      const heard: string[] = [];
      await using rig = await makeRig({ runner: { cancelled: (_, command) => heard.push(command.state) } });
      const id = await rig.accept();
      rig.host.opened.db.prepare("update commands set state = ? where id = ?").run(state, id);
      expect(await rig.queue.cancel(id, STOPPED)).toBe("cancelled");
      expect(await rig.queue.cancel(id, STOPPED)).toBe("cancelled");
      expect(heard).toEqual([state]);
      const events = rig.host.seen.filter((event) => event.type === "command" && event.state === "cancelled");
      expect(events).toHaveLength(1);
    },
  );

  test.each(["done", "failed", "dead"])(
    "of a command that has ended %s is that state, and it keeps it",
    async (state) => {
      await using rig = await makeRig();
      const id = await rig.accept();
      rig.host.opened.db.prepare("update commands set state = ? where id = ?").run(state, id);
      expect(await rig.queue.cancel(id, STOPPED)).toBe(state);
      expect(rig.state(id)).toBe(state);
    },
  );

  test("of a command that is not there is NotFound", async () => {
    await using rig = await makeRig();
    await expect(rig.queue.cancel(7 as CommandId, STOPPED)).rejects.toThrow(NotFound);
  });
});
