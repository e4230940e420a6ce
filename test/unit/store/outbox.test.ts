import { expect, test } from "vitest";
import type { Generation, PartId } from "../../../src/kernel/ids.ts";
import type { PartState, Settled } from "../../../src/store/outbox.ts";
import type { Tx } from "../../../src/store/store.ts";
import { openTestStore } from "../../support/store.ts";

// The verbs of a push channel against the header of src/store/outbox.ts; those of pull doors and of the owner are in rows.

const STATES: readonly PartState[] = ["ready", "sending", "sent", "unknown", "failed", "held"];
const settle = (state: Settled["state"]) => (tx: Tx, id: PartId) =>
  tx.outbox.settle(id, { state, reason: "why" }, tx.generation);

test.each([
  { verb: "take", from: "ready", to: "sending", run: (tx: Tx, id: PartId) => tx.outbox.take(id, tx.generation) },
  { verb: "sent", from: "sending", to: "sent", run: (tx: Tx, id: PartId) => tx.outbox.sent(id, "9", tx.generation, 5) },
  { verb: "expire", from: "ready", to: "failed", run: (tx: Tx, id: PartId) => tx.outbox.expire(id, "old") },
  { verb: "settle as ready", from: "sending", to: "ready", run: settle("ready") },
  { verb: "settle as unknown", from: "sending", to: "unknown", run: settle("unknown") },
  { verb: "settle as held", from: "sending", to: "held", run: settle("held") },
  { verb: "settle as failed", from: "sending", to: "failed", run: settle("failed") },
] as const)(
  "outbox: $verb moves $from to $to and is a normal false for every other state",
  async ({ from, to, run }) => {
    await using host = await openTestStore();
    const force = host.opened.db.prepare("update outbox set state = ? where id = ?");
    const moved = await host.store.write("verbs", (tx) =>
      STATES.map((state, n) => {
        const id = tx.nextSeq() as PartId;
        tx.outbox.insert(
          id,
          { chatKey: `c${n}`, command: undefined, part: 0, class: "notice", text: "" },
          tx.generation,
          1,
        );
        force.run(state, id);
        return { id, state, changed: run(tx, id) };
      }),
    );
    for (const { id, state, changed } of moved) {
      expect([state, changed, host.store.read.outbox.get(id)?.state]).toEqual([
        state,
        state === from,
        state === from ? to : state,
      ]);
    }
  },
);

test("outbox: a host that is not the newest settles nothing of a newer one, and confirms only what it sent itself (G6)", async () => {
  await using host = await openTestStore();
  const id = await host.store.write("part", (tx) => {
    const part = tx.nextSeq() as PartId;
    tx.outbox.insert(part, { chatKey: "c", command: undefined, part: 0, class: "notice", text: "" }, tx.generation, 1);
    tx.outbox.take(part, tx.generation);
    const older = (tx.generation - 1) as Generation;
    expect(tx.outbox.settle(part, { state: "failed", reason: "" }, older)).toBe(false);
    expect(tx.outbox.sent(part, "9", older, 5)).toBe(false);
    expect(tx.outbox.sent(part, "9", (tx.generation + 1) as Generation, 5)).toBe(false);
    return part;
  });
  expect(host.store.read.outbox.get(id)).toMatchObject({ state: "sending", attempts: 1 });
});

test("outbox: that a part may have been sent before is never forgotten again (G4)", async () => {
  await using host = await openTestStore();
  const id = await host.store.write("part", (tx) => {
    const part = tx.nextSeq() as PartId;
    tx.outbox.insert(part, { chatKey: "c", command: undefined, part: 0, class: "answer", text: "" }, tx.generation, 1);
    for (const again of [true, false]) {
      tx.outbox.take(part, tx.generation);
      tx.outbox.settle(part, { state: "ready", reason: "r", again, notBefore: 7 }, tx.generation);
    }
    return part;
  });
  expect(host.store.read.outbox.get(id)).toMatchObject({ again: true, attempts: 2, notBefore: 7, reason: "r" });
  expect([...host.store.read.outbox.undelivered()].map((part) => part.id)).toEqual([id]);
});
