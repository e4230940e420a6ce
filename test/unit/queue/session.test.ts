import { describe, expect, test } from "vitest";
import type { SessionKey } from "../../../src/kernel/ids.ts";
import { makeRig, nextLife } from "./rig.ts";

// The session gate (DESIGN Commands, Claim): a condition of the claim, backed by the unique index.

const GROUP = "agent:main:test:default:group" as SessionKey;

test("of one session one command runs at a time, whatever lanes and senders they have, and no slot is held while waiting", async () => {
  await using rig = await makeRig();
  await rig.start();
  const ids = [
    await rig.accept({ session: GROUP, sender: "ann" }),
    await rig.accept({ session: GROUP, sender: "bob" }),
    await rig.accept({ session: GROUP, sender: "ann", lane: "cron", source: "cron" }),
  ];
  await rig.quiet();
  expect(ids.map(rig.state)).toEqual(["running", "queued", "queued"]);
  expect(rig.queue.lanes().reduce((sum, lane) => sum + lane.running, 0)).toBe(1);
  rig.works.get(ids[0]!)!.finish();
  await rig.quiet();
  expect(ids.map(rig.state)).toEqual(["done", "running", "queued"]);
});

describe("an index in memory that is wrong", () => {
  test("cannot start a second command of a session: the database refuses, and the command waits until it may go", async () => {
    await using rig = await makeRig();
    await rig.start();
    // A second queue on the same rows knows nothing of what the first one runs.
    await using blind = await makeRig({ host: rig.host });
    await blind.start();
    const first = await rig.accept({ session: GROUP });
    await rig.quiet();
    const second = await blind.accept({ session: GROUP });
    await blind.quiet();
    expect([first, second].map(rig.state)).toEqual(["running", "queued"]);
    expect(blind.logged.filter((line) => line.event === "command.claim-failed")).toHaveLength(1);
    expect(blind.claims).toEqual([]);
    expect(blind.queue.lanes().every((lane) => lane.running === 0)).toBe(true);

    for (let tries = 0; tries < 5; tries += 1) await rig.pass(1_000);
    expect(rig.state(second)).toBe("queued");
    // One try a second, not one a turn of the loop.
    expect(blind.logged.filter((line) => line.event === "command.claim-failed")).toHaveLength(6);
    rig.works.get(first)!.finish();
    await rig.quiet();
    await rig.pass(1_000);
    expect(rig.state(second)).toBe("running");
  });
});

describe("a half-done turn", () => {
  test("has its session after a crash, although others of the session would go before it", async () => {
    await using rig = await makeRig();
    await rig.start();
    const halfDone = await rig.accept({ session: GROUP, sender: "ann", priority: 0 });
    await rig.quiet();
    await rig.works.get(halfDone)!.step();
    const urgent = await rig.accept({ session: GROUP, sender: "bob", priority: 1 });
    await using next = await nextLife(rig);
    expect([halfDone, urgent].map(next.state)).toEqual(["running", "queued"]);
    expect(next.row(halfDone)).toMatchObject({ open: true, claim: 2 });
    next.works.get(halfDone)!.finish();
    await next.quiet();
    expect([halfDone, urgent].map(next.state)).toEqual(["done", "running"]);
    expect(next.row(halfDone).open).toBe(false);
  });

  test("keeps it while it waits for its slot or its back-off: the database refuses any other claim", async () => {
    await using rig = await makeRig();
    const halfDone = await rig.accept({ session: GROUP }, rig.clock.now() + 60_000);
    rig.host.opened.db.prepare("update commands set open = 1 where id = ?").run(halfDone);
    const other = await rig.accept({ session: GROUP, sender: "bob" });
    await using next = await nextLife(rig);
    expect([halfDone, other].map(next.state)).toEqual(["queued", "queued"]);
    const claim = next.store.write("claim", (tx) => tx.commands.claim(other, next.store.generation, 1));
    await expect(claim).rejects.toMatchObject({ code: "SQLITE_CONSTRAINT_UNIQUE" });
    await next.pass(60_000);
    expect([halfDone, other].map(next.state)).toEqual(["running", "queued"]);
  });

  test("lets its session go when it is cancelled", async () => {
    await using rig = await makeRig();
    const halfDone = await rig.accept({ session: GROUP }, rig.clock.now() + 60_000);
    rig.host.opened.db.prepare("update commands set open = 1 where id = ?").run(halfDone);
    const other = await rig.accept({ session: GROUP, sender: "bob" });
    await using next = await nextLife(rig);
    expect(await next.queue.cancel(halfDone, { reason: "stopped" })).toBe("cancelled");
    await next.quiet();
    expect(next.state(other)).toBe("running");
  });
});
