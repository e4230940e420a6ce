// Proves: what the person wrote is kept under one key until the host has confirmed it, over reloads and tabs.
import { describe, expect, test } from "vitest";
import { makeOutgoing, STOP, type Store, storageOr, unseen } from "../../../src/dashboard/outgoing.js";
import { fakeClock } from "../../support/clock.ts";

const refusing = () => {
  throw new Error("denied");
};

/** A page over a storage; pages over the same storage are tabs, or the same tab after a reload. */
function page(store: Store, clock = fakeClock()) {
  let count = 0;
  return makeOutgoing({ store, chat: "main", now: clock.now, random: () => `r${++count}-${Math.random()}` });
}

const texts = (list: { text: string }[]) => list.map(({ text }) => text);

test("a message stays with its key over a reload until it is removed", () => {
  const store = storageOr(refusing);
  const key = page(store).add("hello", 0).key;
  const reloaded = page(store);
  expect(reloaded.list()).toMatchObject([{ key, text: "hello", state: "sending" }]);
  reloaded.remove(key);
  expect(page(store).list()).toEqual([]);
});

test("messages are sent in the order of writing, also those of one instant, but a stop goes first", () => {
  const outgoing = page(storageOr(refusing));
  for (let index = 0; index < 40; index += 1) outgoing.add(`m${index}`, 0);
  expect(texts(outgoing.list())).toEqual(Array.from({ length: 40 }, (_, index) => `m${index}`));
  expect(outgoing.next()?.text).toBe("m0");
  outgoing.add(STOP, 0);
  expect(outgoing.next()?.text).toBe(STOP);
});

test("a refused message lets the later ones pass; one that is tried again does not", () => {
  const outgoing = page(storageOr(refusing));
  const first = outgoing.add("first", 0);
  outgoing.add("second", 0);
  outgoing.mark(first.key, "retrying", "full");
  expect(outgoing.next()?.text).toBe("first");
  outgoing.mark(first.key, "refused", "too long");
  expect(outgoing.next()?.text).toBe("second");
});

test("a message from the day before is held until the person says so", () => {
  const clock = fakeClock();
  const store = storageOr(refusing);
  const { key } = page(store, clock).add("old", 0);
  clock.jump(25 * 60 * 60 * 1000);
  const outgoing = page(store, clock);
  expect(outgoing.list()).toMatchObject([{ state: "held" }]);
  expect(outgoing.next()).toBeUndefined();
  outgoing.mark(key, "retrying");
  expect(outgoing.next()?.text).toBe("old");
});

test("a message that the storage refuses is still sent by this page", () => {
  const store = storageOr(refusing);
  const outgoing = page({ ...store, length: 0, setItem: refusing });
  const { key } = outgoing.add("kept in memory", 0);
  expect(texts(outgoing.list())).toEqual(["kept in memory"]);
  outgoing.remove(key);
  expect(outgoing.list()).toEqual([]);
});

test("foreign and broken entries of the storage are left alone", () => {
  const store = storageOr(refusing);
  store.setItem("laneway.out.main.0", "no json");
  store.setItem("laneway.out.other.1", JSON.stringify({ text: "x", at: 1 }));
  store.setItem("theme", "dark");
  expect(page(store).list()).toEqual([]);
  expect(store.length).toBe(3);
});

describe("a message that comes back before its sending is answered", () => {
  const at = "2026-01-01T10:00:00.000Z";
  const item = (seq: number, text: string) =>
    ({ seq, kind: "person", command: seq, text, at, state: "queued" }) as const;

  test("is not shown beside itself", () => {
    const store = storageOr(refusing);
    const outgoing = page(store);
    outgoing.add("again", 5);
    const otherTab = page(store);
    for (const { list } of [outgoing, otherTab]) {
      expect(unseen(list(), [item(6, "again")])).toEqual([]);
      expect(texts(unseen(list(), [item(5, "again")]))).toEqual(["again"]);
    }
  });

  test("is shown all the same while it waits for the person's word", () => {
    const outgoing = page(storageOr(refusing));
    const { key } = outgoing.add("again", 5);
    outgoing.mark(key, "refused");
    expect(texts(unseen(outgoing.list(), [item(6, "again")]))).toEqual(["again"]);
  });

  test("hides only one of two equal ones", () => {
    const outgoing = page(storageOr(refusing));
    for (let count = 0; count < 2; count += 1) outgoing.add("ok", 5);
    expect(texts(unseen(outgoing.list(), [item(6, "ok")]))).toEqual(["ok"]);
  });
});
