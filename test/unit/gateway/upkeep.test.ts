import { expect, test } from "vitest";
import { startUpkeep } from "../../../src/gateway/upkeep.ts";
import { fakeClock } from "../../support/clock.ts";
import { openTestStore } from "../../support/store.ts";

const DAY_MS = 86_400_000;

test("each day what is old enough is forgotten: keys, wrong codes, unreadable events; and nothing younger (Q17.3)", async () => {
  const clock = fakeClock();
  await using host = await openTestStore({ clock });
  const { store } = host;
  const event = (key: string) => ({ channel: "telegram", account: "42", key });
  await store.write("rows", (tx) => {
    tx.inbox.insert(event("old"), "hash", null, clock.now());
    tx.peers.missed("telegram", 5, clock.now());
    tx.rejected.add(event("bad"), "{}", "unreadable", clock.now());
  });
  const works: Promise<unknown>[] = [];
  const stop = startUpkeep({ store, clock, background: (_, work) => void works.push(work) });
  const left = async () => {
    await Promise.all(works);
    const count = (sql: string) => Number(host.opened.db.prepare(sql).pluck().get());
    return {
      keys: store.read.inbox.find(event("old")) === null,
      misses: store.read.peers.misses("telegram", 0),
      rejected: count("select count(*) from rejected"),
    };
  };
  expect(await left()).toEqual({ keys: true, misses: 1, rejected: 1 });
  await clock.advance(2 * DAY_MS);
  expect(await left()).toEqual({ keys: true, misses: 0, rejected: 1 });
  await clock.advance(6 * DAY_MS);
  expect(await left()).toEqual({ keys: false, misses: 0, rejected: 1 });
  await clock.advance(84 * DAY_MS);
  expect(await left()).toEqual({ keys: false, misses: 0, rejected: 0 });
  stop();
  expect(clock.waiting()).toBe(0);
});
