import { expect, test } from "vitest";
import type { CommandId, PartId, SessionKey } from "../../../src/kernel/ids.ts";
import type { Command } from "../../../src/store/commands.ts";
import {
  AMBIGUOUS,
  later,
  makeSending,
  nextLife,
  pushRoute,
  REFUSED,
  type Script,
  SENT,
  type SendingRig,
  type SendResult,
} from "./sending-rig.ts";

// Parts that are edits of the message in which their answer grew.

const UNEDITED: SendResult = { kind: "unedited", reason: "gone" };

/** A command whose turn is running. */
async function running(rig: SendingRig, chat = "ann"): Promise<Command> {
  const session = `agent:main:push:default:${chat}` as SessionKey;
  const command = await rig.store.write("begin", (tx) => {
    const id = tx.nextSeq() as CommandId;
    tx.commands.insert(
      id,
      {
        ...{ lane: "main", priority: 1, orderKey: 1, session, route: pushRoute(chat), sender: "s", actor: "a" },
        ...{ role: "user", source: "chat", kind: "message", text: "asked", extra: undefined },
        acceptedAt: rig.clock.now(),
      },
      "queued",
    );
    return tx.commands.claim(id, tx.generation, rig.clock.now());
  });
  return command!;
}

/** Ends it with this answer, as the finish transaction does. */
async function finish(rig: SendingRig, command: Command, text: string): Promise<PartId[]> {
  const placed = await rig.store.write("finish", (tx) => {
    tx.commands.finish(command, "done", rig.clock.now(), "{}");
    return rig.delivery.answer(tx, command, { class: "answer", text });
  });
  rig.delivery.send(placed);
  await rig.quiet();
  return [...placed.parts];
}

/** An answer that grew in the message 77. */
async function grown(rig: SendingRig, text: string): Promise<PartId[]> {
  const command = await running(rig);
  expect(await rig.store.write("preview", (tx) => tx.commands.preview(command, "77"))).toBe(true);
  return finish(rig, command, text);
}

/** Texts of the calls, with what each was to edit. */
const calls = (rig: SendingRig) => rig.sends.map(({ part }) => [part.text, part.editRef]);

/** The given results one after the other, then all are sent. */
const inTurn =
  (...results: SendResult[]): Script =>
  (_, count) =>
    results[count - 1] ?? SENT;

test("the first part of an answer edits the message in which it grew; the others come after it, in order", async () => {
  await using rig = await makeSending();
  await grown(rig, "one|two|three");
  expect(calls(rig)).toEqual([
    ["one", "77"],
    ["two", undefined],
    ["three", undefined],
  ]);
});

test.each(["resend", "hold", "edit"] as const)(
  "an edit of unknown outcome is made again until it is known, unmarked and untold, under %s (G4)",
  async (ambiguous) => {
    await using rig = await makeSending({ ambiguous, script: inTurn(AMBIGUOUS, AMBIGUOUS, AMBIGUOUS) });
    const [id] = await grown(rig, "one|two");
    await rig.pass(30_000);
    expect(rig.texts()).toEqual(["one", "one", "one", "one", "two"]);
    expect(rig.sends.slice(0, 4).every(({ part }) => part.editRef === "77")).toBe(true);
    expect(rig.part(id)).toMatchObject({ state: "sent", again: false });
    expect(rig.toldOwner()).toEqual([]);
  },
);

test("between two tries of an edit the waits grow (Q1.5)", async () => {
  await using rig = await makeSending({ script: inTurn(AMBIGUOUS, AMBIGUOUS, AMBIGUOUS, AMBIGUOUS) });
  await grown(rig, "one");
  await rig.pass(60_000);
  const waits = rig.sends.slice(1).map(({ atMono }, index) => atMono - rig.sends[index]!.atMono);
  expect(waits).toHaveLength(4);
  expect(waits).toEqual(waits.toSorted((a, b) => a - b));
  expect(waits[0]).toBeGreaterThanOrEqual(1_000);
  expect(waits[3]).toBeGreaterThanOrEqual(8_000);
});

const results: [string, SendResult, { state: string; calls: [string, string | undefined][]; told: number }][] = [
  ["sent", SENT, { state: "sent", calls: [["one", "77"]], told: 0 }],
  ["refused", REFUSED, { state: "failed", calls: [["one", "77"]], told: 1 }],
  [
    "later",
    later(2_000),
    {
      ...{ state: "sent", told: 0 },
      calls: [
        ["one", "77"],
        ["one", "77"],
      ],
    },
  ],
  [
    "unedited",
    UNEDITED,
    {
      ...{ state: "sent", told: 0 },
      calls: [
        ["one", "77"],
        ["one", undefined],
      ],
    },
  ],
];
test.each(results)("an edit that is %s", async (_what, result, expected) => {
  await using rig = await makeSending({
    script: (send, count) => (send.part.chat === "ann" && count === 1 ? result : SENT),
  });
  const [id] = await grown(rig, "one");
  await rig.pass(10_000);
  expect(rig.part(id).state).toBe(expected.state);
  expect(rig.sends.filter(({ part }) => part.chat === "ann").map(({ part }) => [part.text, part.editRef])).toEqual(
    expected.calls,
  );
  expect(rig.toldOwner()).toHaveLength(expected.told);
});

test("what went as a new message since its preview was gone follows the policy like any other (G4)", async () => {
  await using rig = await makeSending({ script: inTurn(UNEDITED, AMBIGUOUS) });
  const [id] = await grown(rig, "one");
  await rig.pass(10_000);
  expect(rig.texts()).toEqual(["one", "one", "one*"]);
  expect(rig.part(id)).toMatchObject({ state: "sent", editRef: undefined, again: true });
});

test("a channel that says `unedited` of what is no edit is asked once a second at most", async () => {
  await using rig = await makeSending({ script: () => UNEDITED });
  await rig.place("ann", "one");
  await rig.pass(5_000);
  expect(rig.sends.length).toBeLessThanOrEqual(6);
});

test.each(["resend", "hold", "edit"] as const)(
  "an edit that was being made when the host died is made again at boot, unmarked and untold, under %s (G4)",
  async (ambiguous) => {
    await using first = await makeSending({ ambiguous, script: () => new Promise<never>(() => {}) });
    const [id] = await grown(first, "one|two");
    await first.pass(3_600_000);
    await using next = await nextLife(first, { ambiguous });
    expect(calls(next)).toEqual([
      ["one", "77"],
      ["two", undefined],
    ]);
    expect(next.part(id)).toMatchObject({ state: "sent", again: false });
    expect(next.toldOwner()).toEqual([]);
  },
);

test("under edit what has no message to edit is left for its owner, never shown twice (G5)", async () => {
  await using rig = await makeSending({ ambiguous: "edit", script: inTurn(AMBIGUOUS) });
  const [id] = await rig.place("ann", "one");
  await rig.pass(60_000);
  expect(rig.part(id).state).toBe("unknown");
  expect(rig.texts("ann")).toEqual(["one"]);
  expect(rig.toldOwner()).toHaveLength(1);
});

test("a preview whose id comes after the end of its turn, but before the answer goes, is taken over by it", async () => {
  let ref: Promise<unknown> = Promise.resolve();
  await using rig = await makeSending({
    previewEnds: async ({ command }) => {
      ref = rig.store.write("preview", (tx) => tx.outbox.takeOver(command!, "77"));
      await ref;
    },
  });
  await finish(rig, await running(rig), "one|two");
  expect(calls(rig)).toEqual([
    ["one", "77"],
    ["two", undefined],
  ]);
});

test("the id of a preview is kept only for the claim that runs, and taken over only by a part that was not begun (G6)", async () => {
  await using rig = await makeSending();
  const command = await running(rig);
  const earlier = { ...command, claim: (command.claim - 1) as Command["claim"] };
  const kept = (of: Command) => rig.store.write("preview", (tx) => tx.commands.preview(of, "77"));
  const takenOver = () => rig.store.write("preview", (tx) => tx.outbox.takeOver(command.id, "77"));
  expect(await kept(earlier)).toBe(false);
  expect(await takenOver()).toBe(false);
  const [id] = await finish(rig, command, "one");
  expect(rig.part(id).state).toBe("sent");
  expect(await kept(command)).toBe(false);
  expect(await takenOver()).toBe(false);
});
