import { describe, expect, test } from "vitest";
import type { CommandId, SessionKey } from "../../../src/kernel/ids.ts";
import type { NewCommand } from "../../../src/store/commands.ts";
import { makeRig, type Rig } from "./rig.ts";

// Taking waiting messages into a running turn (DESIGN, Commands: absorb). The scripted turn says when it takes them.

const STEER = { mode: "steer" } as const;

async function withTurn(rig: Rig, fields: Partial<NewCommand> = {}): Promise<CommandId> {
  await rig.start();
  const turn = await rig.accept(fields);
  await rig.quiet();
  return turn;
}

function take(rig: Rig, turn: CommandId, step: number) {
  const command = rig.row(turn);
  return rig.queue.absorb(command, step, rig.queue.absorbable(command, ["steer"]), () => {});
}

describe("what a running turn may take in", () => {
  test.each<[string, Partial<NewCommand>, boolean]>([
    ["the same route and actor", {}, true],
    ["another actor", { actor: "other", sender: "other" }, false],
    ["another chat", { route: { channel: "web", account: "default", chat: "b", thread: undefined } }, false],
    ["another topic", { route: { channel: "web", account: "default", chat: "a", thread: "7" } }, false],
    ["a mode of its own", { mode: "followup" }, false],
  ])("%s", async (_, fields, taken) => {
    await using rig = await makeRig();
    const route = { channel: "web", account: "default", chat: "a", thread: undefined };
    const session = "one" as SessionKey;
    const turn = await withTurn(rig, { ...STEER, session, route });
    const id = await rig.accept({ ...STEER, session, route, ...fields });
    expect((await take(rig, turn, 2)).map((command) => command.id)).toEqual(taken ? [id] : []);
    expect(rig.state(id)).toBe(taken ? "absorbed" : "queued");
  });

  test("one that may not be taken holds back the later ones of its sender, so that the order stays", async () => {
    await using rig = await makeRig();
    const turn = await withTurn(rig, STEER);
    const first = await rig.accept(STEER);
    const held = await rig.accept({ mode: "followup" });
    const behind = await rig.accept(STEER);
    expect((await take(rig, turn, 2)).map((command) => command.id)).toEqual([first]);
    expect([held, behind].map(rig.state)).toEqual(["queued", "queued"]);
  });

  test("a turn that was cancelled in the same commit takes nothing (fence)", async () => {
    await using rig = await makeRig();
    const turn = await withTurn(rig, STEER);
    const id = await rig.accept(STEER);
    const command = rig.row(turn);
    const ids = rig.queue.absorbable(command, ["steer"]);
    const cancelling = rig.queue.cancel(turn, { reason: "stopped" });
    expect(await rig.queue.absorb(command, 2, ids, () => {})).toEqual([]);
    await cancelling;
    expect(rig.state(id)).not.toBe("absorbed");
  });
});

describe("what becomes of it", () => {
  test("an answer after a completed call ends it with the turn, and its waiters hear of it", async () => {
    await using rig = await makeRig();
    const turn = await withTurn(rig, STEER);
    await rig.works.get(turn)!.step("model");
    const id = await rig.accept(STEER);
    await take(rig, turn, 2);
    rig.works.get(turn)!.finish("done");
    await rig.quiet();
    expect([turn, id].map(rig.state)).toEqual(["done", "done"]);
    expect(rig.claims).toEqual([turn]);
  });

  test("a turn that fails before any call held it gives it back to its old place, and it runs next", async () => {
    await using rig = await makeRig();
    const turn = await withTurn(rig, STEER);
    const id = await rig.accept(STEER);
    await take(rig, turn, 1);
    rig.works.get(turn)!.finish("failed");
    await rig.quiet();
    expect([turn, id].map(rig.state)).toEqual(["failed", "running"]);
    expect(rig.row(id)).toMatchObject({ strikes: 0, absorbedBy: undefined });
  });

  test("a cancel of the turn gives it back too; a cancel of its own ends it and leaves the turn", async () => {
    await using rig = await makeRig();
    const turn = await withTurn(rig, STEER);
    const [back, gone] = [await rig.accept(STEER), await rig.accept(STEER)];
    await take(rig, turn, 1);
    await rig.queue.cancel(gone, { reason: "stopped" });
    expect(rig.state(turn)).toBe("running");
    await rig.queue.cancel(turn, { reason: "stopped" });
    await rig.quiet();
    expect([turn, back, gone].map(rig.state)).toEqual(["cancelled", "running", "cancelled"]);
  });

  test("after the host died it takes the strike instead of its turn, returns, and is not taken in again (G8)", async () => {
    await using rig = await makeRig();
    const turn = await withTurn(rig, STEER);
    const id = await rig.accept(STEER);
    await take(rig, turn, 1);
    rig.kill();
    await using next = await makeRig({ home: rig.host.home, clock: rig.clock });
    await next.start();
    await next.quiet();
    expect(next.row(turn)).toMatchObject({ state: "running", strikes: 0 });
    expect(next.row(id)).toMatchObject({ state: "queued", strikes: 1, absorbedBy: undefined });
    expect(next.queue.absorbable(next.row(turn), ["steer"])).toEqual([]);
  });

  test("what a completed call held stays with its turn over a death of the host", async () => {
    await using rig = await makeRig();
    const turn = await withTurn(rig, STEER);
    const id = await rig.accept(STEER);
    await take(rig, turn, 1);
    await rig.works.get(turn)!.step("tool");
    rig.kill();
    await using next = await makeRig({ home: rig.host.home, clock: rig.clock });
    await next.start();
    await next.quiet();
    expect([turn, id].map(next.state)).toEqual(["running", "absorbed"]);
    next.works.get(turn)!.finish("done");
    await next.quiet();
    expect([turn, id].map(next.state)).toEqual(["done", "done"]);
  });

  test("a planned stop takes no strike and leaves it with its turn", async () => {
    await using rig = await makeRig();
    const turn = await withTurn(rig, STEER);
    const id = await rig.accept(STEER);
    await take(rig, turn, 1);
    await rig.store.write("plan-stop", (tx) => tx.meta.planStop(rig.store.generation));
    rig.kill();
    await using next = await makeRig({ home: rig.host.home, clock: rig.clock });
    await next.start();
    await next.quiet();
    expect(next.row(turn)).toMatchObject({ state: "running", strikes: 0 });
    expect(next.row(id)).toMatchObject({ state: "absorbed", strikes: 0 });
  });

  test("a turn that fails after a completed call held it takes it along", async () => {
    await using rig = await makeRig();
    const turn = await withTurn(rig, STEER);
    const id = await rig.accept(STEER);
    await take(rig, turn, 1);
    await rig.works.get(turn)!.step("tool");
    rig.works.get(turn)!.finish("failed");
    await rig.quiet();
    expect([turn, id].map(rig.state as never)).toEqual(["failed", "failed"]);
    expect(rig.row(id).absorbedBy).toBe(turn);
  });
});
