import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CommandId, SessionKey } from "../../../src/kernel/ids.ts";
import { compare, insertOrdered, orderKey, removeOrdered } from "../../../src/queue/order.ts";
import type { FakeClock } from "../../support/clock.ts";
import { openTestStore, type TestStore } from "../../support/store.ts";
import { claimAll, type Item, type Model, release } from "./reference.ts";
import { LANES, makeRig, runs } from "./rig.ts";

describe("the key of a command", () => {
  test("is constant: a later command never gets in front by waiting", () => {
    expect(orderKey(1_000, 0, 60_000)).toBe(1_000);
    expect(orderKey(1_000, 1, 60_000)).toBe(-59_000);
    expect(orderKey(1_000, -1, 60_000)).toBe(61_000);
  });

  test("lets nobody wait longer than the ageing bound for each step of priority; beyond it age wins", () => {
    const instant = fc.nat(10_000_000);
    fc.assert(
      fc.property(instant, instant, fc.integer({ min: -1, max: 1 }), fc.integer({ min: -1, max: 1 }), (a, b, p, q) => {
        const bound = 60_000 * Math.max(0, q - p);
        if (b - a > bound) expect(orderKey(a, p, 60_000)).toBeLessThan(orderKey(b, q, 60_000));
      }),
    );
  });

  test("ties go by id", () => {
    expect(compare({ id: 2, orderKey: 5 }, { id: 3, orderKey: 5 })).toBeLessThan(0);
    expect(compare({ id: 9, orderKey: 4 }, { id: 3, orderKey: 5 })).toBeLessThan(0);
  });
});

test("a list that is kept in order equals the sorted list, whatever is put in and taken out", () => {
  const item = fc.nat(30).map((id) => ({ id, orderKey: id % 4 }));
  fc.assert(
    fc.property(fc.array(item), (toggled) => {
      const kept: { id: number; orderKey: number }[] = [];
      const ids = new Set<number>();
      for (const one of toggled) {
        const wasThere = removeOrdered(kept, one);
        expect(wasThere).toBe(ids.delete(one.id));
        if (!wasThere) insertOrdered(kept, one);
        if (!wasThere) ids.add(one.id);
      }
      expect(kept).toEqual([...ids].map((id) => ({ id, orderKey: id % 4 })).toSorted(compare));
    }),
  );
});

describe("the order of claims", () => {
  let host: TestStore<FakeClock>;
  beforeAll(async () => {
    host = await openTestStore();
    host.opened.db.pragma("synchronous = OFF");
  });
  afterAll(() => host[Symbol.asyncDispose]());

  const small = fc.integer({ min: 1, max: 4 });
  const sizes = fc
    .record({
      main: small,
      subagent: small,
      cron: small,
      nestedTotal: small,
      total: fc.integer({ min: 3, max: 8 }),
      mainReserved: fc.nat(2),
    })
    .map((some) => ({ ...LANES, ...some }));
  const entry = fc.record({
    lane: fc.constantFrom("main", "main", "main", "subagent", "cron", "nested:a", "nested:b", "background"),
    session: fc.nat(9).map((number) => `s${number}` as SessionKey),
    sender: fc.constantFrom("owner", "ann", "bob", "eve"),
    source: fc.constantFrom("chat", "chat", "announce"),
    priority: fc.integer({ min: -1, max: 1 }),
    /** Before now: the rows are of an earlier life. */
    ageMs: fc.nat(100_000),
    isOpen: fc.constantFrom(false, false, false, true),
  });
  const entries = fc.array(entry, { maxLength: 40, size: "max" });

  test("is that of the reference over all lanes, sessions, senders and sizes, whichever command ends next", async () => {
    const property = fc.asyncProperty(sizes, entries, fc.infiniteStream(fc.nat()), async (lanes, list, choice) => {
      const rig = await makeRig({ host, settings: { lanes } });
      const items: Item[] = [];
      const model: Model = { items, sizes: lanes, now: rig.clock.now(), held: [], alone: undefined, claims: [] };
      await rig.store.write("rows", (tx) => {
        host.opened.db.exec("delete from outbox; delete from steps; delete from commands");
        const opened = new Set<string>();
        for (const { ageMs, isOpen, ...fields } of list) {
          const acceptedAt = rig.clock.now() - ageMs;
          const { lane, session, sender, source, priority } = fields;
          const { id } = rig.queue.insert(tx, rig.message({ ...fields, actor: sender, acceptedAt }));
          const open = isOpen && !opened.has(session);
          if (open) opened.add(session);
          if (open) host.opened.db.prepare("update commands set open = 1 where id = ?").run(id);
          items.push({
            ...{ id, lane, session, sender, actor: sender, source, kind: "message", acceptedAt, notBefore: 0 },
            ...{ key: acceptedAt - priority * LANES.agingMs, state: "queued", open, strikes: 0 },
            ...{ strikeKind: undefined, deathStep: 0, steps: [] },
          });
        }
      });
      await rig.start();
      for (;;) {
        await rig.quiet();
        claimAll(model);
        expect(rig.claims).toEqual(model.claims);
        const ended = model.held[Number(choice.next().value) % Math.max(1, model.held.length)];
        if (ended === undefined) break;
        rig.works.get(ended.id as CommandId)!.finish();
        ended.state = "done";
        release(model, ended);
      }
      expect(items.filter(({ state }) => state !== "done")).toEqual([]);
      expect(rig.queue.size()).toBe(0);
    });
    await fc.assert(property, { numRuns: runs(150) });
  }, 120_000);
});

describe("messages of one sender on one route", () => {
  test("go in the order of their acceptance, also when the wall clock was set back between them", async () => {
    await using rig = await makeRig();
    await rig.start();
    const ids = [await rig.accept(), await rig.accept()];
    rig.clock.jump(-3_600_000);
    ids.push(await rig.accept(), await rig.accept());
    for (const id of ids) {
      await rig.quiet();
      expect(rig.running()).toEqual([id]);
      rig.works.get(id)!.finish();
    }
  });

  test("wait behind one in back-off; those of others in the session, and the sender's own in other chats, do not", async () => {
    await using rig = await makeRig();
    await rig.start();
    const group = "agent:main:test:default:group" as SessionKey;
    const blocked = await rig.accept({ sender: "ann", session: group }, rig.clock.now() + 30_000);
    const held = await rig.accept({ sender: "ann", session: group });
    const other = await rig.accept({ sender: "bob", session: group });
    const elsewhere = await rig.accept({ sender: "ann" });
    await rig.quiet();
    expect(rig.running()).toEqual([other, elsewhere]);
    rig.works.get(other)!.finish();
    await rig.pass(29_999);
    expect([blocked, held].map(rig.state)).toEqual(["queued", "queued"]);
    await rig.pass(1);
    expect([blocked, held].map(rig.state)).toEqual(["running", "queued"]);
  });

  test.each(["announce", "background", "heartbeat", "review"])(
    "a blocked %s command holds back nobody",
    async (source) => {
      await using rig = await makeRig();
      await rig.start();
      const blocked = await rig.accept({ source }, rig.clock.now() + 30_000);
      const later = await rig.accept();
      await rig.quiet();
      expect([blocked, later].map(rig.state)).toEqual(["queued", "running"]);
    },
  );

  test("a person's message does not wait for the same person's work in a full lane", async () => {
    await using rig = await makeRig({ settings: { lanes: { ...LANES, cron: 1 } } });
    await rig.start();
    await rig.accept({ lane: "cron", source: "cron", session: "elsewhere" as SessionKey });
    const job = await rig.accept({ lane: "cron", source: "cron" });
    const asked = await rig.accept();
    await rig.quiet();
    expect([job, asked].map(rig.state)).toEqual(["queued", "running"]);
  });
});
