import { expect, test } from "vitest";
import type { PartId } from "../../../src/kernel/ids.ts";
import { AMBIGUOUS, later, makeSending, nextLife, SENT, type SendingRig } from "./sending-rig.ts";

// What a host finds in the outbox that an earlier one left, and what it makes of it.

const never = () => new Promise<never>(() => {});

/** The place's parts stand in `sending` when the host dies. */
async function dyingWith(
  chats: readonly string[],
  options: Parameters<typeof makeSending>[0] = {},
): Promise<SendingRig> {
  const rig = await makeSending({ ...options, script: never });
  for (const chat of chats) await rig.place(chat, `to ${chat}`);
  return rig;
}

const idOf = (rig: SendingRig, text: string): PartId =>
  rig.store.read.outbox.recent(100).find((part) => part.text === text)!.id;

test("what an earlier host was sending is unknown under hold; the owner is told of all in one notice, at once (G4)", async () => {
  await using first = await dyingWith(["ann", "bob"], { ambiguous: "hold" });
  await using next = await nextLife(first, { ambiguous: "hold" });
  const ids = ["to ann", "to bob"].map((text) => idOf(next, text));
  expect(ids.map((id) => next.part(id).state)).toEqual(["unknown", "unknown"]);
  const [told = "", ...more] = next.toldOwner();
  expect(more).toEqual([]);
  for (const id of ids) expect(told).toContain(`\`/resend ${id}\``);
  expect(next.texts()).toEqual([told]);
});

test("under resend it goes once more, marked, and a second death in it makes it unknown (G4)", async () => {
  await using first = await dyingWith(["ann"]);
  await using second = await nextLife(first, { script: never });
  const id = idOf(second, "to ann");
  expect(second.texts()).toEqual(["to ann*"]);
  expect(second.toldOwner()).toEqual([]);
  await using third = await nextLife(second);
  expect(third.part(id).state).toBe("unknown");
  expect(third.texts("ann")).toEqual([]);
  expect(third.toldOwner()).toHaveLength(1);
});

test("what is older than ten minutes then is not sent again by itself (G4)", async () => {
  await using first = await dyingWith(["ann"]);
  await first.pass(600_001);
  await using next = await nextLife(first);
  expect(next.part(idOf(next, "to ann")).state).toBe("unknown");
  expect(next.texts("ann")).toEqual([]);
});

test("a notice that was being sent is held and listed (DESIGN Deliver)", async () => {
  await using first = await makeSending({ script: never });
  const [id] = await first.place("ann", "a notice", { class: "notice" });
  await using next = await nextLife(first);
  expect(next.part(id).state).toBe("held");
  expect(next.toldOwner()).toEqual([expect.stringContaining(`\`/resend ${id}\``)]);
});

test("what a notice told that a death cut off is told again by the next one (G4)", async () => {
  await using first = await dyingWith(["ann"], { ambiguous: "hold" });
  await using second = await nextLife(first, { ambiguous: "hold", script: never });
  const id = idOf(second, "to ann");
  await using third = await nextLife(second, { ambiguous: "hold", script: never });
  await using fourth = await nextLife(third, { ambiguous: "hold" });
  expect(fourth.toldOwner()).toHaveLength(3);
  for (const told of fourth.toldOwner()) expect(told).toContain(`\`/resend ${id}\``);
  await using fifth = await nextLife(fourth, { ambiguous: "hold" });
  expect(fifth.toldOwner()).toHaveLength(3);
});

test("of many the notice lists ten and says how many more there are", async () => {
  const chats = Array.from({ length: 13 }, (_, n) => `chat${n}`);
  await using first = await dyingWith(chats, { ambiguous: "hold" });
  await using next = await nextLife(first, { ambiguous: "hold" });
  const [told = ""] = next.toldOwner();
  expect(told.match(/\/resend/g)).toHaveLength(10);
  expect(told).toContain("and 3 more");
});

test("parts that were ready go out at the next start, in order, once (G5)", async () => {
  await using first = await makeSending();
  await first.place("ann", "a1|a2", { handOver: false });
  await first.place("bob", "b1", { handOver: false });
  await first.place("ann", "a3", { handOver: false });
  await using next = await nextLife(first);
  expect(next.texts("ann")).toEqual(["a1", "a2", "a3"]);
  expect(next.texts("bob")).toEqual(["b1"]);
  await using third = await nextLife(next);
  expect(third.texts()).toEqual([]);
});

test("the window that the platform asked for holds after a restart, for all chats of the account (G4)", async () => {
  await using first = await makeSending({ script: () => later(1_000_000, true) });
  await first.place("ann", "a1");
  await first.place("bob", "b1");
  await first.pass(400_000);
  await using next = await nextLife(first);
  await next.pass(599_000);
  expect(next.texts()).toEqual([]);
  await next.pass(1_000);
  expect(next.texts().sort()).toEqual(["a1", "b1"]);
});

test("the back-off of a platform that was not reached does not hold up the account after a restart (Q1.8)", async () => {
  await using first = await makeSending({ script: () => later(1_000) });
  await first.place("ann", "a1");
  await first.pass(130_000);
  await using next = await nextLife(first);
  await next.pass(1_000);
  expect(next.texts()).toEqual(["a1"]);
});

test("what was refused for good is not tried again by a restart, and no restart tells of it again (Q1.5)", async () => {
  await using first = await makeSending({
    script: ({ part }) => (part.chat === "ann" ? { kind: "refused", reason: "x" } : SENT),
  });
  const [id] = await first.place("ann", "hello");
  await using next = await nextLife(first);
  expect(next.part(id).state).toBe("failed");
  expect(next.texts()).toEqual([]);
  expect(next.toldOwner()).toHaveLength(1);
});

test("an unknown part is told of once, not at every start (Q6.2)", async () => {
  await using first = await makeSending({ script: ({ part }) => (part.chat === "ann" ? AMBIGUOUS : SENT) });
  await first.place("ann", "hello");
  await using next = await nextLife(first);
  await using third = await nextLife(next);
  expect(third.toldOwner()).toHaveLength(1);
});

test("a stop while the platform is not reached leaves the part ready for the next start (G17)", async () => {
  await using first = await makeSending({ script: () => later(1_000) });
  const [id] = await first.place("ann", "hello");
  await first.sender.stop();
  expect(first.part(id).state).toBe("ready");
  await using next = await nextLife(first);
  await next.pass(2_000);
  expect(next.part(id).state).toBe("sent");
});
