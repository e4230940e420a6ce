import fc from "fast-check";
import { expect, test } from "vitest";
import { makePace, type Turn } from "../../../src/channels/pacing.ts";
import { type FakeClock, fakeClock } from "../../support/clock.ts";

const ACCOUNT = [{ calls: 30, perMs: 1_000 }];
const CHAT = [{ calls: 3, perMs: 3_000 }];
const GROUP = [...CHAT, { calls: 20, perMs: 60_000 }];
const never = new AbortController().signal;

/** Asks for turns and writes down when they were given. */
function recorder(clock: FakeClock = fakeClock()) {
  const pace = makePace({ clock, account: ACCOUNT });
  const given: { name: string; at: number }[] = [];
  const ask = async (name: string, turn: Turn, signal = never) => {
    await pace.turn(turn, signal);
    given.push({ name, at: clock.mono() });
  };
  return { clock, ask, given };
}

const toChat = (chat: string, urgency: Turn["urgency"] = "send"): Turn => ({ chat, limits: CHAT, urgency });

/** The most starts within any window of this length. */
function most(instants: readonly number[], perMs: number): number {
  return Math.max(0, ...instants.map((from) => instants.filter((at) => at >= from && at < from + perMs).length));
}

test("a short burst goes at once, then one a second on average, in order; another chat does not wait (Q7.3)", async () => {
  const { clock, ask, given } = recorder();
  const all = [0, 1, 2, 3, 4, 5].map((index) => ask(`a${index}`, toChat("a")));
  await ask("b", toChat("b"));
  await clock.advance(0);
  expect(given.map(({ name }) => name).sort()).toEqual(["a0", "a1", "a2", "b"]);
  expect(clock.mono()).toBe(0);
  await clock.advance(3_000);
  await Promise.all(all);
  expect(given.filter(({ name }) => name !== "b").map(({ at }) => at)).toEqual([0, 0, 0, 3_000, 3_000, 3_000]);
});

test("a message goes before the drafts that waited longer", async () => {
  const { clock, ask, given } = recorder();
  const first = ["x", "y", "z"].map((name) => ask(name, toChat("a")));
  await clock.advance(0);
  const drafts = [ask("draft 1", toChat("a", "draft")), ask("draft 2", toChat("a", "draft"))];
  const send = ask("message", toChat("a"));
  await clock.advance(3_000);
  await Promise.all([...first, ...drafts, send]);
  expect(given.map(({ name }) => name)).toEqual(["x", "y", "z", "message", "draft 1", "draft 2"]);
});

test("whoever stops waiting leaves no gap and takes no turn", async () => {
  const { clock, ask, given } = recorder();
  const first = ["x", "y", "z"].map((name) => ask(name, toChat("a")));
  await clock.advance(0);
  const stop = new AbortController();
  const leaving = ask("leaving", toChat("a"), stop.signal);
  const staying = ask("staying", toChat("a"));
  stop.abort();
  await expect(leaving).rejects.toThrow();
  await clock.advance(3_000);
  await Promise.all([...first, staying]);
  expect(given.map(({ name }) => name)).toEqual(["x", "y", "z", "staying"]);
});

test("no limit is ever exceeded and everyone gets a turn in the end (property)", async () => {
  const asks = fc.array(
    fc.record({
      chat: fc.constantFrom("1", "2", "3", "-4", "-5"),
      urgency: fc.constantFrom<Turn["urgency"]>("send", "draft"),
      afterMs: fc.nat(400),
    }),
    { minLength: 1, maxLength: 120 },
  );
  await fc.assert(
    fc.asyncProperty(asks, async (list) => {
      const { clock, ask, given } = recorder();
      const turns: Promise<void>[] = [];
      for (const { chat, urgency, afterMs } of list) {
        await clock.advance(afterMs);
        turns.push(ask(chat, { chat, urgency, limits: chat.startsWith("-") ? GROUP : CHAT }));
      }
      await clock.advance(600_000);
      await Promise.all(turns);
      expect(given).toHaveLength(list.length);
      expect(
        most(
          given.map(({ at }) => at),
          1_000,
        ),
      ).toBeLessThanOrEqual(30);
      for (const chat of ["1", "2", "3", "-4", "-5"]) {
        const instants = given.filter(({ name }) => name === chat).map(({ at }) => at);
        expect(most(instants, 3_000)).toBeLessThanOrEqual(3);
        if (chat.startsWith("-")) expect(most(instants, 60_000)).toBeLessThanOrEqual(20);
      }
    }),
    { numRuns: 25 },
  );
});

test("the account's limit holds over many chats", async () => {
  const { clock, ask, given } = recorder();
  const turns = Array.from({ length: 700 }, (_, index) => ask(String(index), toChat(String(index))));
  await clock.advance(30_000);
  await Promise.all(turns);
  expect(
    most(
      given.map(({ at }) => at),
      1_000,
    ),
  ).toBe(30);
});
