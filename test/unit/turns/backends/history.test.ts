import fc from "fast-check";
import { expect, test } from "vitest";
import { mendHistory } from "../../../../src/turns/backends/history.ts";
import type { ModelMessage, ToolCall } from "../../../../src/turns/backends/port.ts";

const call = (id: string): ToolCall => ({ id, name: "read", input: "{}" });
const user = (text: string): ModelMessage => ({ role: "user", text });
const system = (text: string): ModelMessage => ({ role: "system", text });
const calls = (...ids: string[]): ModelMessage => ({ role: "assistant", text: "", calls: ids.map(call) });
const result = (callId: string, text = `result of ${callId}`): ModelMessage => ({
  role: "tool",
  callId,
  name: "read",
  text,
  isError: false,
});
const unknown = (callId: string): ModelMessage => ({
  role: "tool",
  callId,
  name: "read",
  text: expect.stringContaining("not known"),
  isError: true,
});

test("a whole history stays as it is", () => {
  const history = [system("s"), user("a"), calls("1", "2"), result("1"), result("2"), user("b"), system("late")];
  expect(mendHistory(history)).toEqual(history);
});

test("a call without a result gets a note that its outcome is not known", () => {
  expect(mendHistory([user("a"), calls("1", "2"), result("2"), user("b")])).toEqual([
    user("a"),
    calls("1", "2"),
    unknown("1"),
    result("2"),
    user("b"),
  ]);
});

test("a result that a message got in front of goes back to its call", () => {
  expect(mendHistory([calls("1"), user("absorbed"), result("1")])).toEqual([calls("1"), result("1"), user("absorbed")]);
});

test("a result whose call is gone gets its call back and stays a tool's text", () => {
  expect(mendHistory([user("a"), result("1")])).toEqual([user("a"), calls("1"), result("1")]);
});

test("a second result for a call is dropped", () => {
  expect(mendHistory([calls("1"), result("1", "first"), result("1", "second")])).toEqual([
    calls("1"),
    result("1", "first"),
  ]);
});

test("calls of two steps with the same id keep their own results", () => {
  const history = [calls("0"), result("0", "first"), calls("0"), result("0", "second")];
  expect(mendHistory(history)).toEqual(history);
  expect(mendHistory([calls("0"), calls("0"), result("0", "second")])).toEqual([
    calls("0"),
    unknown("0"),
    calls("0"),
    result("0", "second"),
  ]);
});

test("system messages at the start become one, and empty answers are dropped", () => {
  const empty: ModelMessage = { role: "assistant", text: "", calls: [] };
  expect(mendHistory([system("a"), system(""), system("b"), empty, user("c")])).toEqual([system("a\n\nb"), user("c")]);
  expect(mendHistory([system("a")])).toEqual([system("a")]);
  expect(mendHistory([])).toEqual([]);
});

test("whatever the history, each call is followed by exactly its results, no person's text is lost, and mending again changes nothing", () => {
  const id = fc.constantFrom("1", "2", "3");
  const message = fc.oneof(
    fc.string().map(user),
    fc.uniqueArray(id, { maxLength: 3 }).map((ids) => calls(...ids)),
    id.map((callId) => result(callId)),
  );
  fc.assert(
    fc.property(fc.array(message, { maxLength: 12 }), (history) => {
      const mended = mendHistory(history);
      const open: string[] = [];
      for (const one of mended) {
        if (one.role === "tool") expect(open.shift()).toBe(one.callId);
        else expect(open).toEqual([]);
        if (one.role === "assistant") open.push(...one.calls.map((each) => each.id));
      }
      expect(open).toEqual([]);
      const users = (all: readonly ModelMessage[]) => all.filter((one) => one.role === "user");
      expect(users(mended)).toEqual(users(history));
      expect(mendHistory(mended)).toEqual(mended);
    }),
  );
});
