import { expect, test } from "vitest";
import type { Peer } from "../../../src/store/peers.ts";
import type { Tx } from "../../../src/store/store.ts";
import { openTestStore } from "../../support/store.ts";

// The verbs of peers against the header of src/store/peers.ts.

const KEY = { channel: "telegram", account: "default", sender: "5" };
const ask = (tx: Tx, code = "code", now = 1) => tx.peers.ask(KEY, { name: "Ann", code, expiresAt: now + 100 }, now);
const BEFORE: Readonly<Record<string, (tx: Tx) => void>> = {
  none: () => {},
  pending: (tx) => ask(tx),
  approved: (tx) => {
    ask(tx);
    tx.peers.approve(KEY, "code", 2);
  },
  denied: (tx) => {
    ask(tx);
    tx.peers.deny(KEY, 2);
  },
};

test.each([
  { verb: "ask", from: ["none", "pending", "denied"], to: "pending", run: (tx: Tx) => ask(tx, "new", 3) },
  { verb: "approve", from: ["pending"], to: "approved", run: (tx: Tx) => tx.peers.approve(KEY, "code", 3) },
  { verb: "deny", from: ["pending", "approved"], to: "denied", run: (tx: Tx) => tx.peers.deny(KEY, 3) },
])("peers: $verb moves $from to $to and is a normal false for every other state", async ({ from, to, run }) => {
  for (const [state, prepare] of Object.entries(BEFORE)) {
    await using host = await openTestStore();
    const changed = await host.store.write("verb", (tx) => {
      prepare(tx);
      return run(tx);
    });
    const after: Peer["state"] | undefined = host.store.read.peers.get(KEY)?.state;
    const before = state === "none" ? undefined : state;
    expect([state, changed, after]).toEqual([state, from.includes(state), from.includes(state) ? to : before]);
  }
});

test("peers: a code that is another one, over, or decided upon lets nobody in (ID-2)", async () => {
  await using host = await openTestStore();
  await host.store.write("codes", (tx) => {
    ask(tx);
    expect(tx.peers.approve(KEY, "other", 2)).toBe(false);
    expect(tx.peers.approve(KEY, "code", 101)).toBe(false);
    expect(tx.peers.approve(KEY, "code", 100)).toBe(true);
  });
  expect(host.store.read.peers.get(KEY)).toMatchObject({ state: "approved", code: undefined });
});

test("peers: wrong tries void the codes of their channel only, and a new request begins at none (ID-2)", async () => {
  await using host = await openTestStore();
  const other = { ...KEY, channel: "discord" };
  await host.store.write("wrong", (tx) => {
    ask(tx);
    tx.peers.ask(other, { name: "Bob", code: "b", expiresAt: 100 }, 1);
    for (let n = 0; n < 5; n++) tx.peers.missed("telegram", 5, 10);
  });
  const { peers } = host.store.read;
  expect([peers.get(KEY)?.code, peers.get(other)?.code]).toEqual([undefined, "b"]);
  expect([peers.misses("telegram", 9), peers.misses("telegram", 10), peers.misses("discord", 0)]).toEqual([5, 0, 0]);
  await host.store.write("again", (tx) => ask(tx, "fresh", 20));
  expect(peers.get(KEY)).toMatchObject({ code: "fresh", wrong: 0 });
  expect(await host.store.write("forget", (tx) => tx.peers.forgetMissesBefore(11))).toBe(5);
});
