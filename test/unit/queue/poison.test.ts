import { describe, expect, test } from "vitest";
import type { CommandId } from "../../../src/kernel/ids.ts";
import { strike } from "../../../src/queue/recover.ts";
import type { Command, StepKind } from "../../../src/store/commands.ts";
import type { Step } from "../../../src/store/steps.ts";
import { makeRig, nextLife, type Rig } from "./rig.ts";

// The poison bound (G8): what kills the host three times without a finished step is given up, and nothing else ever is.

const senders = (count: number) => Array.from({ length: count }, (_, i) => `someone ${i}`);

async function acceptFrom(rig: Rig, from: readonly string[]): Promise<CommandId[]> {
  const ids: CommandId[] = [];
  for (const sender of from) ids.push(await rig.accept({ sender }));
  await rig.quiet();
  return ids;
}

async function die(rig: Rig, times: number): Promise<Rig> {
  let now = rig;
  for (let i = 0; i < times; i += 1) now = await nextLife(now);
  return now;
}

describe("a command that kills the host", () => {
  test("is dead at the third death, its person is told once, and the host goes on with the rest", async () => {
    await using rig = await makeRig();
    await rig.start();
    const [poison] = await acceptFrom(rig, ["ann"]);
    const [behind] = await acceptFrom(rig, ["ann"]);
    let now = await die(rig, 2);
    expect(now.row(poison!)).toMatchObject({ state: "running", strikes: 2 });
    now = await die(now, 1);
    expect(now.row(poison!)).toMatchObject({ state: "dead", outcome: expect.stringContaining("poison") });
    expect(now.state(behind!)).toBe("running");
    now = await die(now, 1);
    await using last = now;
    expect(last.told(poison!)).toEqual(["poison"]);
  });

  test("condemns none of those that ran beside it, however slow they are", async () => {
    await using rig = await makeRig();
    await rig.start();
    const ids = await acceptFrom(rig, senders(5));
    const poison = ids[2]!;
    const bystanders = ids.filter((id) => id !== poison);
    let now = await die(rig, 2);
    // Nobody has finished a step, so all five are suspects: one at a time now. The poison kills, the others finish.
    for (let turns = 0; bystanders.some((id) => now.state(id) !== "done"); turns += 1) {
      expect(turns).toBeLessThan(20);
      const [alone, ...others] = now.running();
      expect(others).toEqual([]);
      if (alone === poison) now = await die(now, 1);
      else now.works.get(alone!)!.finish();
      await now.quiet();
    }
    await using last = now;
    expect([poison, ...bystanders].map(last.state)).toEqual(["dead", "done", "done", "done", "done"]);
    expect(bystanders.flatMap(last.told)).toEqual(["done", "done", "done", "done"]);
  });

  test("is caught when it kills at a later step, after steps that went well", async () => {
    await using rig = await makeRig();
    await rig.start();
    const [id] = await acceptFrom(rig, ["ann"]);
    for (let step = 0; step < 3; step += 1) await rig.works.get(id!)!.step("model");
    // Progress since the last death forgives the first one; after that there is none.
    let now = await die(rig, 1);
    expect(now.row(id!)).toMatchObject({ state: "running", strikes: 0 });
    now = await die(now, 2);
    expect(now.row(id!)).toMatchObject({ state: "running", strikes: 2 });
    await using last = await die(now, 1);
    expect(last.state(id!)).toBe("dead");
  });

  test("by a tool is caught although its model calls go well each time", async () => {
    await using rig = await makeRig();
    await rig.start();
    const [id] = await acceptFrom(rig, ["ann"]);
    let now = rig;
    for (let death = 0; death < 3; death += 1) {
      expect(now.state(id!)).toBe("running");
      await now.works.get(id!)!.step("tool");
      now = await die(now, 1);
    }
    await using last = now;
    expect(last.row(id!)).toMatchObject({ state: "dead", open: false });
  });
});

describe("a command is never condemned", () => {
  test("by planned stops", async () => {
    await using rig = await makeRig();
    await rig.start();
    const [id] = await acceptFrom(rig, ["ann"]);
    let now = await die(rig, 1);
    for (let stops = 0; stops < 6; stops += 1) {
      const { store } = now;
      await store.write("plan-stop", (tx) => tx.meta.planStop(store.generation));
      now = await die(now, 1);
      expect(now.row(id!)).toMatchObject({ state: "running", strikes: 1 });
    }
    // A planned stop is over with the next boot: the death after it counts.
    await using last = await die(now, 1);
    expect(last.row(id!).strikes).toBe(2);
  });

  test("while it finishes a step in each life", async () => {
    await using rig = await makeRig();
    await rig.start();
    const [id] = await acceptFrom(rig, ["ann"]);
    let now = rig;
    for (let deaths = 0; deaths < 8; deaths += 1) {
      await now.works.get(id!)!.step("model");
      now = await die(now, 1);
      expect(now.row(id!)).toMatchObject({ state: "running", strikes: 0 });
    }
    await using last = now;
    expect(last.told(id!)).toEqual([]);
  });

  test("for deaths while it waited in the queue", async () => {
    await using rig = await makeRig();
    await rig.start();
    await acceptFrom(rig, ["ann"]);
    const [waits] = await acceptFrom(rig, ["ann"]);
    await using last = await die(rig, 3);
    expect(last.row(waits!)).toMatchObject({ state: "running", strikes: 0 });
  });
});

describe("a command with two strikes", () => {
  /** Two suspects, and others that have never run. */
  const afterTwoDeaths = async (rig: Rig) => {
    await rig.start();
    const suspects = await acceptFrom(rig, ["ann", "bob"]);
    let now = await die(rig, 1);
    now.kill();
    now = await makeRig({ home: rig.host.home, clock: rig.clock });
    // Smaller keys, and still the suspects go first.
    const acceptedAt = now.clock.now() - 10_000;
    const others = [await now.accept({ sender: "cid", acceptedAt }), await now.accept({ sender: "dan", acceptedAt })];
    await now.start();
    await now.quiet();
    return { now, suspects, others };
  };

  test("goes first and alone, one at a time; a finished step of the kind that was in flight lets the others go", async () => {
    await using rig = await makeRig();
    const { now, suspects, others } = await afterTwoDeaths(rig);
    await using _ = now;
    expect(now.running()).toEqual([suspects[0]]);
    await now.works.get(suspects[0]!)!.step("tool");
    await now.quiet();
    // The strikes are gone; the second suspect waits until nothing else could be to blame.
    expect(now.row(suspects[0]!).strikes).toBe(0);
    expect(now.running()).toEqual([suspects[0]]);
    now.works.get(suspects[0]!)!.finish();
    await now.quiet();
    expect(now.running()).toEqual([suspects[1]]);
    await now.works.get(suspects[1]!)!.step("tool");
    await now.quiet();
    expect(now.running()).toEqual([suspects[1], ...others]);
  });

  test("stays alone while only steps of another kind finish", async () => {
    await using rig = await makeRig();
    await rig.start();
    const [id] = await acceptFrom(rig, ["ann"]);
    await rig.works.get(id!)!.step("tool");
    let now = await die(rig, 1);
    await now.works.get(id!)!.step("tool");
    now = await die(now, 1);
    await using _ = now;
    expect(now.row(id!)).toMatchObject({ strikes: 2, strikeKind: "tool" });
    const [other] = await acceptFrom(now, ["bob"]);
    await now.works.get(id!)!.step("tool");
    await now.quiet();
    expect([id!, other!].map(now.state)).toEqual(["running", "queued"]);
    await now.works.get(id!)!.step("model");
    await now.quiet();
    expect([id!, other!].map(now.state)).toEqual(["running", "running"]);
    expect(now.row(id!).strikes).toBe(0);
  });

  test.each(["finishes", "fails", "throws", "is handed back", "is cancelled", "is cancelled and deaf"])(
    "lets the others go when it %s",
    async (how) => {
      await using rig = await makeRig();
      await rig.start();
      const [id] = await acceptFrom(rig, ["ann"]);
      const dead = await die(rig, 1);
      await using now = await nextLife(dead, { isDeaf: () => how.endsWith("deaf"), settings: { abortGraceMs: 3_000 } });
      const [other] = await acceptFrom(now, ["bob"]);
      expect(now.state(other!)).toBe("queued");
      const work = now.works.get(id!)!;
      if (how === "finishes") work.finish();
      else if (how === "fails") work.finish("failed");
      else if (how === "throws") work.reject(new Error("a bug"));
      else if (how === "is handed back") work.end({ state: "handed-back" });
      else await now.queue.cancel(id!, { reason: "stopped" });
      await now.pass(3_000);
      // A suspect that was handed back goes first again.
      expect(now.state(other!)).toBe(how === "is handed back" ? "queued" : "running");
      if (how === "is handed back") expect(now.running()).toEqual([id]);
    },
  );

  test("does not hold up others while its own session or back-off keeps it from running", async () => {
    await using rig = await makeRig();
    await rig.start();
    const [id] = await acceptFrom(rig, ["ann"]);
    const once = await die(rig, 1);
    once.kill();
    await using now = await makeRig({ home: rig.host.home, clock: rig.clock });
    now.host.opened.db.prepare("update commands set not_before = ? where id = ?").run(now.clock.now() + 60_000, id);
    await now.start();
    const [other] = await acceptFrom(now, ["bob"]);
    expect([id!, other!].map(now.state)).toEqual(["queued", "running"]);
    await now.pass(60_000);
    // Now it could run, so nothing else begins until it has: it waits for what runs to end.
    const [third] = await acceptFrom(now, ["cid"]);
    expect([id!, third!].map(now.state)).toEqual(["queued", "queued"]);
    now.works.get(other!)!.finish();
    await now.quiet();
    expect([id!, third!].map(now.state)).toEqual(["running", "queued"]);
  });
});

describe("the rule of strikes, case by case", () => {
  const step = (n: number, kind: StepKind, state: Step["state"]) => ({ n, kind, state }) as Step;
  const M = (n: number, state: Step["state"] = "done") => step(n, "model", state);
  const T = (n: number, state: Step["state"] = "done") => step(n, "tool", state);
  const earlier = (some: Partial<Command> = {}) =>
    ({ strikes: 0, strikeKind: undefined, deathStep: 0, ...some }) as Command;
  const none = { strikes: 0, kind: undefined };

  test.each([
    ["no step at all", earlier(), [], { strikes: 1, kind: "model", deathStep: 0 }],
    ["in the first model call", earlier(), [M(1, "intent")], { strikes: 1, kind: "model", deathStep: 1 }],
    ["in a tool, none finished", earlier(), [M(1), T(2, "intent")], { strikes: 1, kind: "tool", deathStep: 2 }],
    ["in a model call after one that finished", earlier(), [M(1), T(2), M(3, "intent")], { ...none, deathStep: 3 }],
    [
      "in a model call, finished ones only earlier than the last death",
      earlier({ deathStep: 3 }),
      [M(1), T(2), M(3, "unknown"), M(4, "intent")],
      { strikes: 1, kind: "model", deathStep: 4 },
    ],
    [
      "a second time, in another kind of step",
      earlier({ strikes: 1, strikeKind: "model", deathStep: 1 }),
      [M(1, "unknown"), M(2), T(3, "intent")],
      { strikes: 2, kind: "tool", deathStep: 3 },
    ],
    [
      "after progress of its kind: earlier strikes no longer count",
      earlier({ strikes: 2, strikeKind: "tool", deathStep: 2 }),
      [M(1), T(2, "unknown"), T(3), T(4, "intent")],
      { ...none, deathStep: 4 },
    ],
  ] as const)("a death %s", (_, command, steps, expected) => {
    expect(strike(command, steps, false)).toEqual(expected);
  });

  test("a planned stop changes nothing", () => {
    const command = earlier({ strikes: 2, strikeKind: "tool", deathStep: 2 });
    expect(strike(command, [M(1), T(2, "unknown"), M(3), T(4, "intent")], true)).toEqual({
      strikes: 2,
      kind: "tool",
      deathStep: 2,
    });
  });
});
