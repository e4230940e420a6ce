import { expect, test } from "vitest";
import { Aborted, FencedOff } from "../../../src/kernel/errors.ts";
import {
  AMBIGUOUS,
  later,
  makeSending,
  pushRoute,
  REFUSED,
  SENT,
  type SendingRig,
  type SendResult,
} from "./sending-rig.ts";

// What the sender does when the platform, the disk or the channel itself misbehaves.

/** A disk without room, played by SQLite's own limit of pages; the filler makes sure that the next row needs one. */
async function fillDisk(rig: SendingRig): Promise<void> {
  const { db } = rig.host.opened;
  db.pragma(`max_page_count = ${Number(db.pragma("page_count", { simple: true }))}`);
  const detail = { filler: "x".repeat(100_000) };
  const filler = rig.store.write("filler", (tx) => tx.audit.add({ actor: "t", action: "t", target: "", detail }, 0));
  await expect(filler).rejects.toThrow();
  expect(rig.store.paused()).toBe(true);
}

const clearDisk = (rig: SendingRig) => rig.host.opened.db.pragma("max_page_count = 1000000");

test("a window of the whole account holds all its chats, without one call inside it (G4)", async () => {
  await using rig = await makeSending({ script: (_, count) => (count === 1 ? later(30_000, true) : SENT) });
  await rig.place("ann", "a1");
  await rig.place("bob", "b1");
  await rig.pass(29_999);
  rig.sender.retryNow("push:default");
  await rig.quiet();
  expect(rig.texts()).toEqual(["a1"]);
  await rig.pass(1);
  expect(rig.texts("ann").concat(rig.texts("bob"))).toEqual(["a1", "a1", "b1"]);
});

test("a wait that is no whole number of milliseconds is waited for, and the part goes before later ones (G5)", async () => {
  await using rig = await makeSending({ script: (_, count) => (count === 1 ? later(1_500.25) : SENT) });
  const [first] = await rig.place("ann", "one");
  await rig.place("ann", "two");
  expect(rig.part(first)).toMatchObject({ state: "ready", attempts: 1 });
  await rig.pass(2_000);
  expect(rig.texts()).toEqual(["one", "one", "two"]);
  expect(rig.logged.map(({ event }) => event)).not.toContain("outbox.broken");
});

test("a part that is about to go when the window opens is not begun inside it (G4)", async () => {
  const turn = Promise.withResolvers<void>();
  let calls = 0;
  await using rig = await makeSending({
    send: async ({ text }, _signal, begin) => {
      if (text === "b1") await turn.promise;
      const unbegun = await begin().then(
        () => false,
        () => true,
      );
      if (unbegun) return later(1_000);
      calls += 1;
      return calls === 1 ? later(30_000, true) : SENT;
    },
  });
  const [bob] = await rig.place("bob", "b1");
  await rig.place("ann", "a1");
  turn.resolve();
  await rig.pass(29_000);
  expect(calls).toBe(1);
  expect(rig.part(bob).state).toBe("ready");
  await rig.pass(2_000);
  expect(rig.part(bob).state).toBe("sent");
});

test("a wall clock that is set back or forward neither holds nor hurries what waits", async () => {
  await using rig = await makeSending({ script: (_, count) => (count === 1 ? later(30_000, true) : SENT) });
  await rig.place("ann", "a1");
  rig.clock.jump(3_600_000);
  await rig.pass(29_000);
  expect(rig.sends).toHaveLength(1);
  rig.clock.jump(-7_200_000);
  await rig.pass(1_000);
  expect(rig.sends).toHaveLength(2);
});

test.each([
  { what: "refused", result: REFUSED, states: ["failed"] },
  { what: "of unknown outcome", result: AMBIGUOUS, states: ["held"] },
])(
  "a notice to the owner that is $what is listed and causes no further notice (DESIGN Deliver)",
  async ({ result, states }) => {
    await using rig = await makeSending({ script: () => result });
    await rig.place("owner", "a notice", { class: "notice" });
    await rig.pass(60_000);
    expect(rig.toldOwner()).toEqual(["a notice"]);
    expect(rig.store.read.outbox.recent(9).map((part) => part.state)).toEqual(states);
  },
);

test("an answer in the owner's own chat that fails is told there once, and that notice's own failure is not", async () => {
  await using rig = await makeSending({ script: () => REFUSED });
  const [id] = await rig.place("owner", "the answer");
  await rig.pass(60_000);
  expect(rig.toldOwner()).toEqual([expect.stringContaining(`\`/resend ${id}\``)]);
  expect(rig.texts()).toHaveLength(2);
});

test("no chat in which the owner may be told causes notices, when he has several", async () => {
  await using rig = await makeSending({ script: () => REFUSED, owners: ["owner", "second"] });
  await rig.place("second", "a notice", { class: "notice" });
  await rig.pass(60_000);
  expect(rig.toldOwner()).toEqual([]);
});

test("a result is recorded also when its owner cannot be told of it", async () => {
  await using rig = await makeSending({ script: () => REFUSED });
  rig.host.opened.db.exec(
    "create temp trigger untold before insert on outbox when new.command is null begin select raise(abort, 'planted'); end",
  );
  const [id] = await rig.place("ann", "hello");
  expect(rig.part(id).state).toBe("failed");
});

test("a part that its owner drops while it waits is not sent, and the next one goes", async () => {
  await using rig = await makeSending({
    script: ({ part }, count) => (part.text === "a1" && count === 1 ? later(20_000) : SENT),
  });
  const [first] = await rig.place("ann", "a1|a2");
  await rig.store.write("drop", (tx) => tx.outbox.drop(first!));
  await rig.pass(20_000);
  expect(rig.texts()).toEqual(["a1", "a2"]);
  expect(rig.part(first)).toMatchObject({ state: "failed", reason: "dropped" });
});

test("a part that its owner sends again goes before later ones that wait (G5)", async () => {
  await using rig = await makeSending({
    script: ({ part }, count) => (count === 1 ? REFUSED : part.text === "second" && count < 4 ? later(5_000) : SENT),
  });
  const [first] = await rig.place("ann", "first");
  const [second] = await rig.place("ann", "second");
  expect(rig.part(second).state).toBe("ready");
  await rig.store.write("resend", (tx) => tx.outbox.resend(first!, rig.clock.now()));
  rig.sender.offer({ chatKey: rig.part(first).chatKey, parts: [first!] });
  await rig.pass(20_000);
  expect(rig.texts("ann").slice(-2)).toEqual(["first", "second"]);
});

test("on a full disk nothing is begun; when there is room it goes once (G14)", async () => {
  await using rig = await makeSending();
  const [id] = await rig.place("ann", "hello", { handOver: false });
  await fillDisk(rig);
  rig.sender.offer({ chatKey: rig.part(id).chatKey, parts: [id!] });
  await rig.pass(60_000);
  expect(rig.texts()).toEqual([]);
  clearDisk(rig);
  await rig.pass(30_000);
  expect(rig.texts()).toEqual(["hello"]);
  expect(rig.part(id).state).toBe("sent");
});

test("a result that comes while the disk is full is recorded when there is room, and nothing is sent twice (G14)", async () => {
  const answer = Promise.withResolvers<SendResult>();
  await using rig = await makeSending({ script: () => answer.promise });
  const [id] = await rig.place("ann", "hello");
  await fillDisk(rig);
  answer.resolve(SENT);
  await rig.pass(60_000);
  expect(rig.part(id).state).toBe("sending");
  clearDisk(rig);
  await rig.pass(30_000);
  expect(rig.part(id).state).toBe("sent");
  expect(rig.texts()).toEqual(["hello"]);
});

test("a part that grows too old while the disk is full is given up when there is room, without noise meanwhile", async () => {
  await using rig = await makeSending();
  const [id] = await rig.place("ann", "hello", { class: "notice", handOver: false });
  await rig.clock.advance(3_600_001);
  await fillDisk(rig);
  rig.sender.offer({ chatKey: rig.part(id).chatKey, parts: [id!] });
  await rig.pass(60_000);
  expect(rig.logged.filter((line) => line.event === "outbox.broken")).toEqual([]);
  clearDisk(rig);
  await rig.pass(30_000);
  expect(rig.part(id).state).toBe("failed");
});

test.each([
  { when: "before it asked whether the part may go", begins: false, error: new Error("broken"), sent: "sent" },
  { when: "with the error of a stop that nobody asked for", begins: false, error: new Aborted(), sent: "sent" },
  { when: "after it began", begins: true, error: new Error("broken"), sent: "sent" },
])(
  "a channel that rejects $when holds its chat up for a moment only, and does not spin",
  async ({ begins, error, sent }) => {
    let tries = 0;
    await using rig = await makeSending({
      send: async (_part, _signal, begin) => {
        tries += 1;
        if (begins || tries > 2) await begin();
        if (tries <= 2) throw error;
        return SENT;
      },
    });
    const [first, second] = await rig.place("ann", "a1|a2");
    await rig.pass(10_000);
    expect([rig.part(first).state, rig.part(second).state]).toEqual([begins ? "unknown" : sent, "sent"]);
    expect(tries).toBeLessThanOrEqual(5);
  },
);

test.each([
  { result: SENT, state: "sent" },
  { result: REFUSED, state: "failed" },
] as const)(
  "a channel that has a result, $result.kind, without having asked does not send again and again",
  async ({ result, state }) => {
    let tries = 0;
    await using rig = await makeSending({
      send: async () => {
        tries += 1;
        return result;
      },
      owners: [],
    });
    const [id] = await rig.place("ann", "hello");
    await rig.pass(10_000);
    expect([rig.part(id).state, tries]).toEqual([state, 1]);
  },
);

test("a host that has lost its data to another one begins nothing more (G6)", async () => {
  await using rig = await makeSending();
  const [id] = await rig.place("ann", "hello", { handOver: false });
  rig.host.opened.db.prepare("update meta set value = value + 1 where key = 'generation'").run();
  rig.sender.offer({ chatKey: rig.part(id).chatKey, parts: [id!] });
  await rig.pass(60_000);
  expect([rig.texts(), rig.part(id).state]).toEqual([[], "ready"]);
  expect(rig.host.fatal[0]).toBeInstanceOf(FencedOff);
});

test("a stop begins nothing new, lets what is in flight end, and records it (G17)", async () => {
  const answer = Promise.withResolvers<SendResult>();
  await using rig = await makeSending({ script: () => answer.promise });
  const [first, second] = await rig.place("ann", "a1|a2");
  const stopped = rig.sender.stop();
  await rig.pass(4_000);
  answer.resolve(SENT);
  await stopped;
  rig.delivery.send({ chatKey: rig.part(second).chatKey, parts: [second!] });
  await rig.pass(10_000);
  expect([rig.part(first).state, rig.part(second).state, rig.texts()]).toEqual(["sent", "ready", ["a1"]]);
});

test("a stop cuts off what does not end within 5 s; its outcome is unknown then (G17)", async () => {
  await using rig = await makeSending({
    ambiguous: "hold",
    script: ({ signal }) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => resolve(AMBIGUOUS), { once: true });
      }),
  });
  const [id] = await rig.place("ann", "hello");
  const stopped = rig.sender.stop();
  await rig.pass(4_999);
  expect(rig.part(id).state).toBe("sending");
  await rig.pass(1);
  await stopped;
  expect(rig.part(id).state).toBe("unknown");
  expect(rig.delivery.isOwners(pushRoute("owner"))).toBe(true);
});

test("what its owner sends again has its whole time anew, and goes marked if it may have arrived", async () => {
  await using rig = await makeSending({ script: (_, count) => (count === 1 ? AMBIGUOUS : SENT), ambiguous: "hold" });
  const [id] = await rig.place("ann", "the answer");
  await rig.pass(1_000);
  expect(rig.part(id).state).toBe("unknown");
  await rig.pass(3 * 86_400_000);
  await rig.store.write("resend", (tx) => tx.outbox.resend(id!, rig.clock.now()));
  rig.sender.offer({ chatKey: rig.part(id).chatKey, parts: [id!] });
  await rig.pass(1_000);
  expect(rig.part(id)).toMatchObject({ state: "sent", again: true });
});

test("a part that was written earlier and handed over later goes first, as long as the other has not begun (G5)", async () => {
  const turn = Promise.withResolvers<void>();
  const texts: string[] = [];
  await using rig = await makeSending({
    send: async (part, _signal, begin) => {
      if (texts.length === 0) await turn.promise;
      try {
        await begin();
      } catch {
        return later(1);
      }
      texts.push(part.text);
      return SENT;
    },
  });
  const [answer] = await rig.place("ann", "the answer", { handOver: false });
  const [notice] = await rig.place("ann", "a notice", { handOver: false });
  const chatKey = rig.part(answer).chatKey;
  rig.sender.offer({ chatKey, parts: [notice!] });
  await rig.quiet();
  rig.sender.offer({ chatKey, parts: [answer!] });
  turn.resolve();
  await rig.pass(2_000);
  expect(texts).toEqual(["the answer", "a notice"]);
});
