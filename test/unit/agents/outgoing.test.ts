import Database from "better-sqlite3";
import { expect, test } from "vitest";
import type { PartState } from "../../../src/store/outbox.ts";
import {
  AMBIGUOUS,
  later,
  makeSending,
  REFUSED,
  type Script,
  SENT,
  type SendingOptions,
  type SendResult,
} from "./sending-rig.ts";

// What becomes of one part, and what order parts keep, while the host lives.

interface Row {
  readonly does: string;
  readonly options: SendingOptions;
  readonly class?: "answer" | "notice" | "failure";
  readonly states: readonly PartState[];
  readonly told: number;
}

const then = (...results: readonly SendResult[]): Script => {
  return (_, count) => results[Math.min(count, results.length) - 1] ?? SENT;
};

/** The header of src/store/outbox.ts, line by line: the state after the first try, and after all that follows within an hour. */
const ROWS: readonly Row[] = [
  { does: "confirmed → sent", options: {}, states: ["sent", "sent"], told: 0 },
  {
    does: "certainly not sent → ready",
    options: { script: then(later(5_000), SENT) },
    states: ["ready", "sent"],
    told: 0,
  },
  {
    ...{ does: "outcome unknown → ready once, marked", options: { script: then(AMBIGUOUS, SENT) } },
    ...{ states: ["sent", "sent"], told: 0 },
  },
  {
    ...{ does: "outcome unknown twice → unknown", options: { script: then(AMBIGUOUS) } },
    ...{ states: ["unknown", "unknown"], told: 1 },
  },
  {
    ...{
      does: "outcome unknown under hold → unknown at once",
      options: { script: then(AMBIGUOUS), ambiguous: "hold" },
    },
    ...{ states: ["unknown", "unknown"], told: 1 },
  },
  {
    ...{ does: "outcome unknown of a notice → held", options: { script: then(AMBIGUOUS) }, class: "notice" },
    ...{ states: ["held", "held"], told: 1 },
  },
  {
    ...{
      does: "outcome unknown of a failure → as of an answer",
      options: { script: then(AMBIGUOUS, SENT) },
      class: "failure",
    },
    ...{ states: ["sent", "sent"], told: 0 },
  },
  { does: "refused → failed", options: { script: then(REFUSED, SENT) }, states: ["failed", "failed"], told: 1 },
];

test.each(ROWS)("sending, $does (G4, Q1.5)", async ({ options, class: kind, states, told }) => {
  await using rig = await makeSending(options);
  const [id] = await rig.place("ann", "hello", { class: kind ?? "answer" });
  const first = rig.part(id).state;
  await rig.pass(3_600_000);
  expect([first, rig.part(id).state]).toEqual(states);
  expect(rig.toldOwner()).toHaveLength(told);
  for (const text of rig.toldOwner()) expect(text).toContain(`\`/resend ${id}\``);
  expect(rig.sends.length).toBeLessThanOrEqual(2 + told);
});

test("what is sent again is marked, and counted before it goes (G4)", async () => {
  await using rig = await makeSending({ script: then(AMBIGUOUS, SENT) });
  const [id] = await rig.place("ann", "hello");
  expect(rig.texts()).toEqual(["hello", "hello*"]);
  expect(rig.part(id)).toMatchObject({ state: "sent", again: true, attempts: 2 });
});

test.each([
  { afterMs: 600_000, tries: 2 },
  { afterMs: 600_001, tries: 1 },
])(
  "an answer of unknown outcome $afterMs ms after it was written is tried $tries times (10 min)",
  async ({ afterMs, tries }) => {
    const answer = Promise.withResolvers<SendResult>();
    await using rig = await makeSending({ script: (_, count) => (count === 1 ? answer.promise : SENT) });
    const [id] = await rig.place("ann", "hello");
    await rig.pass(afterMs);
    answer.resolve(AMBIGUOUS);
    await rig.pass(60_000);
    expect(rig.texts("ann")).toHaveLength(tries);
    expect(rig.part(id).state).toBe(tries === 2 ? "sent" : "unknown");
  },
);

test("that a part goes is on the disk before a byte leaves (G4)", async () => {
  const seen: unknown[] = [];
  await using rig = await makeSending({
    script: () => {
      const other = new Database(rig.host.home.paths.db, { readonly: true });
      seen.push(other.prepare("select state from outbox where text = 'hello'").pluck().get());
      other.close();
      return SENT;
    },
  });
  await rig.place("ann", "hello");
  expect(seen).toEqual(["sending"]);
});

test("parts of a chat go one after the other in order, chats side by side (G5)", async () => {
  const held: PromiseWithResolvers<SendResult>[] = [];
  await using rig = await makeSending({
    script: () => {
      const one = Promise.withResolvers<SendResult>();
      held.push(one);
      return one.promise;
    },
  });
  await rig.place("ann", "a1|a2");
  await rig.place("bob", "b1");
  await rig.place("ann", "a3");
  expect(rig.texts()).toEqual(["a1", "b1"]);
  for (let next = 0; next < held.length; next++) {
    held[next]?.resolve(SENT);
    await rig.quiet();
  }
  expect(rig.texts("ann")).toEqual(["a1", "a2", "a3"]);
});

test("a part in retry goes before the later ones of its chat and holds no other chat (G5)", async () => {
  await using rig = await makeSending({
    script: ({ part }, count) => (part.text === "a1" && count === 1 ? later(5_000) : SENT),
  });
  await rig.place("ann", "a1|a2");
  await rig.place("bob", "b1");
  await rig.pass(4_999);
  expect(rig.texts()).toEqual(["a1", "b1"]);
  await rig.pass(1);
  expect(rig.texts("ann")).toEqual(["a1", "a1", "a2"]);
});

test.each([
  { result: REFUSED, class: "answer", state: "failed" },
  { result: AMBIGUOUS, class: "notice", state: "held" },
  { result: AMBIGUOUS, class: "answer", state: "unknown" },
] as const)("what is $state is passed over by the later ones of its chat", async ({ result, class: kind, state }) => {
  await using rig = await makeSending({ script: ({ part }) => (part.text === "first" ? result : SENT) });
  const [first] = await rig.place("ann", "first", { class: kind });
  const [second] = await rig.place("ann", "second");
  expect([rig.part(first).state, rig.part(second).state]).toEqual([state, "sent"]);
});

test("a platform that is not reached is tried less and less often, and at once when it is reached again (Q1.5)", async () => {
  await using rig = await makeSending({ script: (_, count) => (count < 9 ? later(1_000) : SENT) });
  await rig.place("ann", "hello");
  await rig.pass(150_000);
  const gaps = rig.sends.slice(1).map((send, i) => send.atMono - (rig.sends[i]?.atMono ?? 0));
  expect(gaps).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000]);
  rig.sender.retryNow("push:default");
  await rig.quiet();
  expect(rig.sends).toHaveLength(9);
});

test("a platform that says 'later' without a wait is asked once a second at most", async () => {
  await using rig = await makeSending({ script: () => later(0, true) });
  await rig.place("ann", "hello");
  await rig.pass(10_000);
  expect(rig.sends.length).toBeLessThanOrEqual(11);
});

test.each([
  { class: "answer", ms: 86_400_000 },
  { class: "failure", ms: 86_400_000 },
  { class: "notice", ms: 3_600_000 },
] as const)(
  "a part of class $class is given up when it is older than $ms ms, and no call is made for it",
  async ({ class: kind, ms }) => {
    for (const [ageMs, state] of [
      [ms, "sent"],
      [ms + 1, "failed"],
    ] as const) {
      await using rig = await makeSending();
      const [id] = await rig.place("ann", "hello", { class: kind, handOver: false });
      await rig.clock.advance(ageMs);
      rig.sender.offer({ chatKey: rig.part(id).chatKey, parts: [id!] });
      await rig.quiet();
      expect(rig.part(id).state).toBe(state);
      expect(rig.texts("ann")).toEqual(state === "sent" ? ["hello"] : []);
      expect(rig.toldOwner()).toHaveLength(state === "failed" && kind !== "notice" ? 1 : 0);
    }
  },
);
