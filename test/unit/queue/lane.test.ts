import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvalidInput } from "../../../src/kernel/errors.ts";
import type { SessionKey } from "../../../src/kernel/ids.ts";
import {
  type Capacity,
  type Claimant,
  checkLane,
  type LaneSizes,
  laneSize,
  makeCapacity,
  OWNER,
} from "../../../src/queue/lane.ts";
import { LANES, makeRig } from "./rig.ts";

/** Takes as many slots as there are for such commands, each of another actor unless one is named. */
function fill(capacity: Capacity, lane: string, actor?: string): number {
  let taken = 0;
  for (; capacity.mayStart({ lane, actor: actor ?? `someone ${taken}` }); taken += 1) {
    capacity.take({ lane, actor: actor ?? `someone ${taken}` });
  }
  return taken;
}

const sized = (some: Partial<LaneSizes> = {}) => makeCapacity(() => ({ ...LANES, ...some }));

describe("the slots of a lane (DESIGN Commands, Capacity)", () => {
  test.each(["main", "subagent", "cron", "cron-nested", "background"] as const)(
    "%s runs as many as its size",
    (lane) => {
      expect(fill(sized({ mainReserved: 0 }), lane)).toBe(LANES[lane]);
    },
  );

  test("a nested lane runs one, and all of them together as many as their total", () => {
    const capacity = sized({ nestedTotal: 3 });
    expect([..."abcde"].map((name) => fill(capacity, `nested:${name}`, OWNER))).toEqual([1, 1, 1, 0, 0]);
    capacity.give({ lane: "nested:b", actor: OWNER });
    expect(fill(capacity, "nested:b", OWNER)).toBe(1);
  });

  test("all lanes together run as many as the total, of which the others leave mainReserved for main", () => {
    const capacity = sized({ total: 10, mainReserved: 3, main: 9 });
    expect(fill(capacity, "subagent", OWNER)).toBe(7);
    expect(fill(capacity, "cron", OWNER)).toBe(0);
    expect(fill(capacity, "main", OWNER)).toBe(3);
    expect(capacity.runningTotal()).toBe(10);
  });

  test.each([
    { main: 8, mainReserved: 1, others: 7 },
    { main: 8, mainReserved: 3, others: 5 },
    { main: 2, mainReserved: 5, others: 1 },
    { main: 1, mainReserved: 1, others: 1 },
  ])(
    "of $main slots of main with $mainReserved reserved, others than the owner get $others",
    ({ others, ...sizes }) => {
      const capacity = sized(sizes);
      expect(fill(capacity, "main")).toBe(others);
      expect(fill(capacity, "main", OWNER)).toBe(sizes.main - others);
    },
  );

  test("what the owner runs does not use up what others may run", () => {
    const capacity = sized({ main: 4, mainReserved: 2 });
    expect(fill(capacity, "main", OWNER)).toBe(4);
    for (let given = 0; given < 2; given += 1) capacity.give({ lane: "main", actor: OWNER });
    expect(fill(capacity, "main")).toBe(2);
  });

  test.each([
    { size: 1, half: 1 },
    { size: 2, half: 1 },
    { size: 5, half: 3 },
    { size: 8, half: 4 },
  ])("one actor other than the owner gets at most half a lane of $size, rounded up: $half", ({ size, half }) => {
    expect(fill(sized({ subagent: size }), "subagent", "ann")).toBe(half);
    expect(fill(sized({ subagent: size }), "subagent", OWNER)).toBe(size);
  });

  test("a size that is changed counts at once, and what runs beyond it is let end", () => {
    const sizes = { ...LANES, cron: 4 };
    const capacity = makeCapacity(() => sizes);
    expect(fill(capacity, "cron", OWNER)).toBe(4);
    sizes.cron = 2;
    capacity.give({ lane: "cron", actor: OWNER });
    expect(capacity.mayStart({ lane: "cron", actor: OWNER })).toBe(false);
    sizes.cron = 6;
    expect(fill(capacity, "cron", OWNER)).toBe(3);
  });

  test("no sequence of takes and gives leaves a count, breaks a limit, or lets a lane look fuller than it is", () => {
    const claimant: fc.Arbitrary<Claimant> = fc.record({
      lane: fc.constantFrom("main", "subagent", "cron", "background", "nested:a", "nested:b", "nested:c"),
      actor: fc.constantFrom(OWNER, "ann", "bob"),
    });
    const size = fc.integer({ min: 1, max: 4 });
    const sizes = fc
      .record({
        main: size,
        subagent: size,
        cron: size,
        nestedTotal: size,
        total: fc.integer({ min: 3, max: 7 }),
        mainReserved: fc.nat(2),
      })
      .map((some) => ({ ...LANES, ...some }));
    const sequence = fc.array(claimant, { maxLength: 60, size: "max" });
    fc.assert(fc.property(sizes, sequence, takeAndGive));
  });
});

/** Takes a slot for each wish that may start, gives one back now and then, and all at the end. */
function takeAndGive(limits: LaneSizes, wishes: readonly Claimant[]): void {
  const capacity = makeCapacity(() => limits);
  const running: Claimant[] = [];
  for (const [i, wish] of wishes.entries()) {
    if (!capacity.hasRoom(wish)) expect(capacity.mayStart(wish)).toBe(false);
    if (capacity.mayStart(wish)) {
      capacity.take(wish);
      running.push(wish);
    }
    for (const ended of i % 3 === 2 ? running.splice(i % 2, 1) : []) capacity.give(ended);
    checkCounts(capacity, running, limits);
  }
  for (const ended of running.splice(0)) capacity.give(ended);
  checkCounts(capacity, [], limits);
  expect(capacity.lanes().filter((lane) => lane.startsWith("nested:"))).toEqual([]);
}

function checkCounts(capacity: Capacity, running: readonly Claimant[], limits: LaneSizes): void {
  const count = (lane: string) => running.filter((one) => one.lane === lane).length;
  for (const lane of capacity.lanes()) {
    expect(capacity.running(lane)).toBe(count(lane));
    expect(count(lane)).toBeLessThanOrEqual(laneSize(lane, limits));
  }
  expect(capacity.runningTotal()).toBe(running.length);
  expect(running.length).toBeLessThanOrEqual(limits.total);
  expect(running.length - count("main")).toBeLessThanOrEqual(limits.total - limits.mainReserved);
  expect(running.filter(({ lane }) => lane.startsWith("nested:")).length).toBeLessThanOrEqual(limits.nestedTotal);
}

describe("the names of lanes", () => {
  test.each(["main", "subagent", "cron", "cron-nested", "background", "nested:x"])("%s is a lane", (lane) => {
    expect(() => checkLane(lane)).not.toThrow();
  });

  test.each(["", "Main", "nested:", "nested", "total", "mainReserved", "constructor"])("%j is none", (lane) => {
    expect(() => checkLane(lane)).toThrow(InvalidInput);
  });

  test("a command for a lane that is none is refused and leaves no row", async () => {
    await using rig = await makeRig();
    await expect(rig.accept({ lane: "fast" })).rejects.toThrow(InvalidInput);
    expect(rig.store.read.commands.lastId()).toBe(0);
  });
});

describe("a free slot", () => {
  test("goes to the smallest key over all lanes", async () => {
    await using rig = await makeRig({ settings: { lanes: { ...LANES, total: 2, mainReserved: 0 } } });
    await rig.start();
    const first = await rig.accept({ lane: "subagent" });
    await rig.accept({ lane: "cron", sender: "x" });
    const late = await rig.accept({ lane: "main", sender: "a", priority: 0 });
    const early = await rig.accept({ lane: "background", sender: "b", priority: 1 });
    await rig.quiet();
    rig.works.get(first)!.finish();
    await rig.quiet();
    expect([early, late].map(rig.state)).toEqual(["running", "queued"]);
  });

  test("passes over a sender who has half the lane, also within one group's session", async () => {
    await using rig = await makeRig({ settings: { lanes: { ...LANES, main: 2, mainReserved: 0 } } });
    await rig.start();
    await rig.accept({ sender: "ann" });
    const group = "agent:main:test:default:group" as SessionKey;
    const anns = await rig.accept({ sender: "ann", session: group });
    const bobs = await rig.accept({ sender: "bob", session: group });
    await rig.quiet();
    expect([anns, bobs].map(rig.state)).toEqual(["queued", "running"]);
  });

  test("is the owner's at once, although others fill the lane up to their share (Q2.5)", async () => {
    await using rig = await makeRig();
    await rig.start();
    const others = await Promise.all(Array.from({ length: 20 }, (_, i) => rig.accept({ sender: `someone ${i}` })));
    await rig.quiet();
    expect(others.filter((id) => rig.state(id) === "running")).toHaveLength(7);
    const owners = await rig.accept();
    await rig.quiet();
    expect(rig.state(owners)).toBe("running");
  });

  test("of main is there for a person, although background and recovered work fills every other lane (Q2.5)", async () => {
    await using rig = await makeRig({ settings: { lanes: { ...LANES, total: 4 } } });
    await rig.start();
    for (const lane of ["subagent", "cron", "background", "nested:a"]) {
      for (const session of ["a", "b"]) await rig.accept({ lane, session: `${lane} ${session}` as SessionKey });
    }
    await rig.quiet();
    expect(rig.running()).toHaveLength(3);
    const asked = await rig.accept({ sender: "ann" });
    await rig.quiet();
    expect(rig.state(asked)).toBe("running");
  });

  test("is not held by a lane that only has names left: a nested lane is gone when it is empty (Q2.3)", async () => {
    await using rig = await makeRig();
    await rig.start();
    const id = await rig.accept({ lane: "nested:a" });
    await rig.quiet();
    expect(rig.queue.lanes().map(({ lane }) => lane)).toContain("nested:a");
    rig.works.get(id)!.finish();
    await rig.quiet();
    expect(rig.queue.lanes().map(({ lane }) => lane)).not.toContain("nested:a");
  });
});
