import { expect, test } from "vitest";
import { messageOfRow, messagesOf, userRow } from "../../../src/turns/transcript.ts";

test("a person's row keeps references to images, and nothing else of them", () => {
  const image = { file: "2026/cat.png", mediaType: "image/png", bytes: Uint8Array.of(1) };
  const row = userRow("look", [image]);
  expect(JSON.parse(row.body)).toEqual({ text: "look", images: [{ file: "2026/cat.png", mediaType: "image/png" }] });
  expect(messagesOf([row])).toEqual([
    { role: "user", text: "look", images: [{ file: "2026/cat.png", mediaType: "image/png" }] },
  ]);
});

test("a row without images is what it was before there were any", () => {
  expect(userRow("hi")).toEqual({ role: "user", body: '{"text":"hi"}' });
  expect(messageOfRow(userRow("hi", []))).toEqual({ role: "user", text: "hi" });
});

test("a reference that is none is refused when the row is read", () => {
  expect(() => messageOfRow({ role: "user", body: '{"text":"x","images":[{"file":1}]}' })).toThrow();
});
