// Proves: what the host sends is read field by field, and what is not understood is left out rather than shown wrong.
import { expect, test } from "vitest";
import { readEvent, readHistory, readItem } from "../../../src/dashboard/wire.js";
import { wordsOf } from "../../../src/dashboard/words.js";

test("items without a usable seq or kind are left out, the others kept", () => {
  const good = { seq: 2, kind: "part", command: 1, text: "a", at: "t", state: "sent", class: "failure" };
  const items = [
    { seq: "1", kind: "person", command: 1 },
    good,
    null,
    { seq: 3, kind: "picture" },
    { seq: 4, kind: "person" },
  ];
  expect(readHistory({ items, more: true })).toEqual({ items: [good], more: true });
  expect(readHistory("nonsense")).toEqual({ items: [], more: false });
});

test("a part may have no command, and an unknown class is an answer", () => {
  expect(readItem({ seq: 1, kind: "part", text: "x", class: "poem" })).toMatchObject({
    command: undefined,
    class: "answer",
  });
});

test("events of a newer host are ignored", () => {
  expect(readEvent("weather", { command: 1 })).toBeUndefined();
  expect(readEvent("delta", { text: "no command" })).toBeUndefined();
  expect(readEvent("state", { command: 1, state: "queued", position: 2 })).toEqual({
    type: "state",
    command: 1,
    state: "queued",
    position: 2,
  });
});

test("every state of a command has words, and an unknown one is shown as it is", () => {
  const states = ["queued", "running", "waiting", "absorbed", "failed", "dead", "cancelled"];
  for (const state of states) expect(wordsOf(state, undefined)).toMatch(/^[A-Z]/);
  expect([wordsOf("queued", 0), wordsOf("queued", 3)]).toEqual(["Queued, next in line", "Queued, 3 ahead"]);
  expect([wordsOf("done", undefined), wordsOf("resting", undefined)]).toEqual(["", "resting"]);
});
