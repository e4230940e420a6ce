import { describe, expect, test } from "vitest";
import type { CommandId } from "../../../src/kernel/ids.ts";
import type { Runner } from "../../../src/queue/runner.ts";
import { makeRig, nextLife, type Rig, type RigOptions, type Work } from "./rig.ts";

// Every way out of the work on a command: the slot is free, the session goes on, the person hears of it once (Q2.1, G1, G6).

const bug = () => new Error("a bug");
const throws = () => {
  throw bug();
};

interface Exit {
  readonly how: string;
  readonly options?: RigOptions;
  readonly act: (work: Work) => void;
  readonly state: "done" | "failed";
  readonly told: readonly string[];
}

const EXITS: readonly Exit[] = [
  { how: "it answers", act: (work) => work.finish(), state: "done", told: ["done"] },
  { how: "every backend failed", act: (work) => work.finish("failed"), state: "failed", told: ["failed"] },
  { how: "it rejects", act: (work) => work.reject(bug()), state: "failed", told: ["internal"] },
  { how: "it rejects with nothing", act: (work) => work.reject(undefined), state: "failed", told: ["internal"] },
  {
    how: "its end cannot be written",
    act: (work) => work.end({ state: "done", outcome: { reason: "answered" }, write: throws }),
    state: "failed",
    told: ["internal"],
  },
  {
    how: "it rejects and what to say of it throws",
    options: { runner: { crashed: throws } },
    act: (work) => work.reject(bug()),
    state: "failed",
    told: [],
  },
  {
    how: "it rejects and what to say of it cannot be written",
    options: { runner: { crashed: () => ({ state: "failed", outcome: { reason: "internal" }, write: throws }) } },
    act: (work) => work.reject(bug()),
    state: "failed",
    told: [],
  },
];

describe.each(EXITS)("when $how", ({ options = {}, act, state, told }) => {
  test(`it ends ${state}, its slot is free at once and its session goes on`, async () => {
    await using rig = await makeRig(options);
    await rig.start();
    const id = await rig.accept();
    const next = await rig.accept();
    await rig.quiet();
    act(rig.works.get(id)!);
    await rig.quiet();
    expect(rig.state(id)).toBe(state);
    expect(rig.told(id)).toEqual(told);
    expect(rig.row(id).outcome).toContain(state === "done" ? "answered" : rig.row(id).outcome);
    expect(rig.running()).toEqual([next]);
    expect(rig.queue.lanes().find(({ lane }) => lane === "main")?.running).toBe(1);
    expect(rig.failures).toEqual([]);
  });
});

describe("work that cannot even begin", () => {
  const broken = (runner: Partial<Runner>): RigOptions => ({ runner });

  test.each([
    ["its claim throws", broken({ begin: throws }), ["internal"]],
    ["it throws before its first promise", broken({ run: throws }), ["internal"]],
    ["what to say of it throws too", broken({ begin: throws, crashed: throws }), []],
  ] as const)("ends failed when %s, and is not tried again and again", async (_, options, told) => {
    await using rig = await makeRig(options);
    await rig.start();
    const ids = [await rig.accept(), await rig.accept()];
    await rig.quiet();
    expect(ids.map(rig.state)).toEqual(["failed", "failed"]);
    expect(ids.map(rig.told)).toEqual([told, told]);
    expect(ids.map((id) => rig.row(id).claim)).toEqual([1, 1]);
    expect(rig.clock.waiting()).toBe(0);
    expect(rig.failures).toEqual([]);
  });

  test("says so to observers", async () => {
    await using rig = await makeRig(broken({ begin: throws }));
    await rig.start();
    const id = await rig.accept();
    await rig.quiet();
    const states = rig.host.seen.flatMap((event) => (event.type === "command" && event.id === id ? [event.state] : []));
    expect(states).toEqual(["queued", "running", "failed"]);
  });
});

describe("a late end (G6)", () => {
  test("of an earlier claim changes nothing", async () => {
    await using rig = await makeRig();
    await rig.start();
    const id = await rig.accept();
    await rig.quiet();
    const first = rig.works.get(id)!;
    first.end({ state: "handed-back" });
    await rig.quiet();
    expect(rig.row(id)).toMatchObject({ state: "running", claim: 2 });
    const late = rig.store.write("late", (tx) => [
      tx.commands.finish(first.command, "done", 1, "{}"),
      tx.commands.handBack(first.command),
      tx.commands.hold(first.command),
    ]);
    expect(await late).toEqual([false, false, false]);
    expect(rig.state(id)).toBe("running");
  });

  test("of an earlier life changes nothing, although the row runs again", async () => {
    await using rig = await makeRig();
    await rig.start();
    const id = await rig.accept();
    await rig.quiet();
    const { command } = rig.works.get(id)!;
    await using next = await nextLife(rig);
    expect(next.state(id)).toBe("running");
    expect(await next.store.write("late", (tx) => tx.commands.finish(command, "done", 1, "{}"))).toBe(false);
    next.works.get(id)!.finish();
    await next.quiet();
    expect(next.told(id)).toEqual(["done"]);
  });

  test("of a host that another one has replaced writes nothing, and it claims nothing more", async () => {
    await using rig = await makeRig();
    await rig.start();
    const id = await rig.accept({ sender: "ann" });
    await rig.quiet();
    const waits = await rig.accept({ sender: "ann" });
    rig.host.opened.db.prepare("update meta set value = value + 1 where key = 'generation'").run();
    rig.works.get(id)!.finish();
    await rig.quiet();
    expect([id, waits].map(rig.state)).toEqual(["running", "queued"]);
    expect(rig.told(id)).toEqual([]);
    expect(rig.host.fatal.length).toBeGreaterThan(0);
  });
});

describe("while the disk is full (G14)", () => {
  const full = (rig: Rig, isFull: boolean) => rig.host.opened.db.pragma(`query_only = ${isFull ? 1 : 0}`);

  const scene = async (options: RigOptions = {}) => {
    const rig = await makeRig({ settings: { lanes: { ...SIZES_OF_ONE } }, ...options });
    await rig.start();
    const id = await rig.accept();
    const next = await rig.accept({ sender: "ann" });
    await rig.quiet();
    full(rig, true);
    rig.works.get(id)!.finish();
    await rig.quiet();
    return { rig, id, next };
  };

  test("a result is held and its slot stays taken; it is written when there is room, and only then the next goes", async () => {
    const { rig, id, next } = await scene();
    await using _ = rig;
    await rig.pass(60_000);
    expect([id, next].map(rig.state)).toEqual(["running", "queued"]);
    expect(rig.claims).toEqual([id]);
    full(rig, false);
    await rig.pass(10_000);
    expect([id, next].map(rig.state)).toEqual(["done", "running"]);
    expect(rig.told(id)).toEqual(["done"]);
  });

  test("claims wait and go on by themselves afterwards, also when nobody hears the events", async () => {
    const mute = { emit: () => {}, on: () => () => {} };
    await using rig = await makeRig({ events: mute });
    await rig.start();
    full(rig, true);
    await expect(rig.accept()).rejects.toThrow("cannot be written");
    full(rig, false);
    await rig.pass(10_000);
    const ids: CommandId[] = [];
    for (const sender of ["ann", "bob"]) ids.push(await rig.accept({ sender }, rig.clock.now() + 1_000));
    full(rig, true);
    await rig.pass(30_000);
    expect(ids.map(rig.state)).toEqual(["queued", "queued"]);
    full(rig, false);
    await rig.pass(10_000);
    expect(ids.map(rig.state)).toEqual(["running", "running"]);
  });

  test("what came due meanwhile goes in the order of its key", async () => {
    await using rig = await makeRig({ settings: { lanes: { ...SIZES_OF_ONE } } });
    await rig.start();
    const early = await rig.accept({ sender: "ann" }, rig.clock.now() + 3_000);
    const late = await rig.accept({ sender: "bob" }, rig.clock.now() + 1_000);
    full(rig, true);
    await rig.pass(5_000);
    full(rig, false);
    await rig.pass(10_000);
    expect([early, late].map(rig.state)).toEqual(["running", "queued"]);
  });
});

const SIZES_OF_ONE = {
  ...{ main: 1, subagent: 1, cron: 1, "cron-nested": 1, background: 1, nestedTotal: 1, total: 2, mainReserved: 1 },
  agingMs: 60_000,
};
