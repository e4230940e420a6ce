import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Stop } from "../../../src/kernel/clock.ts";
import { Aborted } from "../../../src/kernel/errors.ts";
import { type Caller, type Grants, makeGrants } from "../../../src/turns/grants.ts";

const NEVER = new AbortController().signal;
const person = (id: number, orderKey = id): Caller => ({ id, orderKey, forPerson: true });
const child = (id: number, orderKey = id): Caller => ({ id, orderKey, forPerson: false });

/** The order in which these get the only grant, asked for in the given order while another has it; each gives it back at once. */
async function served(callers: readonly Caller[]): Promise<number[]> {
  const grants = makeGrants(1);
  const release = await grants.take(person(0), NEVER);
  const order: number[] = [];
  const all = callers.map(async (caller) => {
    const give = await grants.take(caller, NEVER);
    order.push(caller.id);
    give();
  });
  release();
  await Promise.all(all);
  return order;
}

describe("the grants of a backend (DESIGN Commands, Capacity)", () => {
  test("as many calls as its size run at once; the next waits until one has ended", async () => {
    const grants = makeGrants(2);
    const first = await grants.take(person(1), NEVER);
    expect(grants.isFree()).toBe(true);
    await grants.take(person(2), NEVER);
    expect(grants.isFree()).toBe(false);
    let third = false;
    const waits = grants.take(person(3), NEVER).then(() => {
      third = true;
    });
    await Promise.resolve();
    expect(third).toBe(false);
    first();
    await waits;
    expect(grants.isFree()).toBe(false);
  });

  test("those that wait go by the key of their command, not by when they asked", async () => {
    expect(await served([person(7, 300), person(8, 100), person(9, 200)])).toEqual([8, 9, 7]);
  });

  test("of equal keys the smaller number goes first", async () => {
    expect(await served([person(9, 100), person(7, 100), person(8, 100)])).toEqual([7, 8, 9]);
  });

  test("a person's call goes before that of spawned work, however old that is", async () => {
    expect(await served([child(1, 1), person(9, 900), child(2, 2), person(8, 800)])).toEqual([8, 9, 1, 2]);
  });

  test("a call that is stopped while it waits takes nothing, and the one behind it goes", async () => {
    const grants = makeGrants(1);
    const release = await grants.take(person(1), NEVER);
    const stopped = new AbortController();
    const second = grants.take(person(2), stopped.signal);
    const third = grants.take(person(3), NEVER);
    stopped.abort("cancelled");
    await expect(second).rejects.toThrow(Aborted);
    release();
    (await third)();
    expect(grants.isFree()).toBe(true);
  });

  test("a call that is stopped already takes nothing", async () => {
    const grants = makeGrants(1);
    await expect(grants.take(person(1), AbortSignal.abort())).rejects.toThrow(Aborted);
    expect(grants.isFree()).toBe(true);
  });

  test("a grant that is given back twice counts once", async () => {
    const grants = makeGrants(1);
    const release = await grants.take(person(1), NEVER);
    release();
    await grants.take(person(2), NEVER);
    release();
    expect(grants.isFree()).toBe(false);
  });

  test("a stop after the grant leaves it with its call until that gives it back", async () => {
    const grants = makeGrants(1);
    const release = await grants.take(person(1), NEVER);
    const stop = new AbortController();
    const second = grants.take(person(2), stop.signal);
    release();
    stop.abort();
    const give = await second;
    expect(grants.isFree()).toBe(false);
    give();
    expect(grants.isFree()).toBe(true);
  });
});

type Step =
  | { readonly do: "take"; readonly orderKey: number; readonly forPerson: boolean }
  | { readonly do: "release" | "abort"; readonly nth: number };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant("take" as const), orderKey: fc.nat(5), forPerson: fc.boolean() }),
    fc.record({ do: fc.constantFrom("release" as const, "abort" as const), nth: fc.nat(30) }),
  ),
  { maxLength: 60 },
);

/** The rule in its plainest form: a list that is sorted at each look. */
function makeReference(size: number) {
  const running = new Set<number>();
  let waiting: Caller[] = [];
  const fill = () => {
    waiting.sort((a, b) => Number(b.forPerson) - Number(a.forPerson) || a.orderKey - b.orderKey || a.id - b.id);
    while (running.size < size) {
      const next = waiting.shift();
      if (next === undefined) return;
      running.add(next.id);
    }
  };
  return {
    running,
    take(caller: Caller) {
      waiting.push(caller);
      fill();
    },
    release(id: number) {
      running.delete(id);
      fill();
    },
    abort(id: number) {
      waiting = waiting.filter((caller) => caller.id !== id);
    },
  };
}

/** The grants under test with what they have granted so far. */
function observe(grants: Grants) {
  const held = new Map<number, Stop>();
  const stops = new Map<number, AbortController>();
  return {
    held,
    take(caller: Caller) {
      const stop = new AbortController();
      stops.set(caller.id, stop);
      grants.take(caller, stop.signal).then(
        (release) => held.set(caller.id, release),
        () => {},
      );
    },
    release(id: number) {
      held.get(id)?.();
      held.delete(id);
    },
    abort: (id: number) => stops.get(id)?.abort(),
  };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Does the step on both sides; answers the highest number given so far. */
function doStep(step: Step, ids: number, wanted: ReturnType<typeof makeReference>, seen: ReturnType<typeof observe>) {
  const both = [seen, wanted];
  if (step.do === "take") {
    for (const one of both) one.take({ ...step, id: ids + 1 });
    return ids + 1;
  }
  const among = step.do === "abort" ? Array.from({ length: ids }, (_, i) => i + 1) : [...wanted.running];
  const id = among[step.nth % Math.max(1, among.length)] ?? 0;
  for (const one of both) one[step.do](id);
  return ids;
}

test("in any schedule those run that the rule names, never more than the size, and none is lost (Q2.1)", async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 3 }), steps, async (size, schedule) => {
      const grants = makeGrants(size);
      const seen = observe(grants);
      const wanted = makeReference(size);
      let ids = 0;
      for (const step of schedule) {
        ids = doStep(step, ids, wanted, seen);
        await settled();
        expect(new Set(seen.held.keys())).toEqual(wanted.running);
        expect(grants.isFree()).toBe(wanted.running.size < size);
      }
      while (seen.held.size > 0) {
        for (const id of [...seen.held.keys()]) seen.release(id);
        await settled();
      }
      expect(grants.isFree()).toBe(true);
    }),
    { numRuns: 300 },
  );
});
