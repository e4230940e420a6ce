import fc from "fast-check";
import { expect, test } from "vitest";
import { arrangeForAnthropic } from "../../../../src/turns/backends/anthropic-history.ts";
import type { ModelMessage } from "../../../../src/turns/backends/port.ts";

const user = (text: string): ModelMessage => ({ role: "user", text });
const system = (text: string): ModelMessage => ({ role: "system", text });
const answer = (text: string, ...calls: { id: string; name: string }[]): ModelMessage => ({
  role: "assistant",
  text,
  calls: calls.map((call) => ({ ...call, input: "{}" })),
});
const result = (callId: string, text: string, isError = false): ModelMessage => ({
  role: "tool",
  callId,
  name: "read",
  text,
  isError,
});

test("a usual history stays as it is", () => {
  const history = [system("s"), user("a"), answer("b", { id: "toolu_1", name: "read" }), result("toolu_1", "c")];
  expect(arrangeForAnthropic(history)).toEqual(history);
});

test("later system messages join the one at the start, since the API has one place for them", () => {
  expect(arrangeForAnthropic([system("s"), user("a"), system("t"), user("b")])).toEqual([
    system("s\n\nt"),
    user("a"),
    user("b"),
  ]);
});

test("texts of white space go, since the API refuses empty text blocks; what else a message holds stays", () => {
  const images = [{ file: "a.png", mediaType: "image/png" }];
  const picture: ModelMessage = { role: "user", text: " \n", images };
  const call = { id: "c", name: "read" };
  expect(
    arrangeForAnthropic([
      system(" "),
      user("a"),
      user("\t"),
      answer(" "),
      answer("\n", call),
      result("c", ""),
      picture,
    ]),
  ).toEqual([user("a"), answer("", call), result("c", "[no text]"), { role: "user", text: "", images }]);
});

test("the first message is a person's, whatever the window left over", () => {
  const [first, ...rest] = arrangeForAnthropic([system("s"), answer("b"), user("c")]);
  expect(first).toEqual(system("s"));
  expect(rest.map((message) => message.role)).toEqual(["user", "assistant", "user"]);
  expect(arrangeForAnthropic([]).map((message) => message.role)).toEqual(["user"]);
  expect(arrangeForAnthropic([system("s")]).map((message) => message.role)).toEqual(["system", "user"]);
});

test("ids of calls become unique and of allowed characters, and each result keeps to its call", () => {
  const call = { id: "functions.read:0", name: "functions.read" };
  const arranged = arrangeForAnthropic([
    user("a"),
    answer("", call, { ...call, id: "ok" }),
    result("ok", "second"),
    result("functions.read:0", "first"),
    answer("", { ...call, id: "ok" }),
    result("ok", "third"),
  ]);
  const calls = arranged.flatMap((message) => (message.role === "assistant" ? message.calls : []));
  const results = arranged.flatMap((message) => (message.role === "tool" ? [message] : []));
  expect(calls.map(({ id }) => id)).toEqual(["call_1", "ok", "call_3"]);
  expect(results.map(({ callId, text }) => [callId, text])).toEqual([
    ["call_1", "first"],
    ["ok", "second"],
    ["call_3", "third"],
  ]);
  expect(new Set(calls.map(({ name }) => name))).toEqual(new Set(["functions_read"]));
});

const anyId = fc.constantFrom("a", "b", "x.y:0", "", "call_1", "call_2", "ü");
const anyText = fc.constantFrom("", " ", "words");
const anyMessage: fc.Arbitrary<ModelMessage> = fc.oneof(
  anyText.map(system),
  anyText.map(user),
  fc
    .tuple(anyText, fc.array(anyId, { maxLength: 3 }))
    .map(([text, ids]) => answer(text, ...ids.map((id) => ({ id, name: id })))),
  fc.tuple(anyId, anyText, fc.boolean()).map(([id, text, isError]) => result(id, text, isError)),
);

test("whatever the history, the API's rules hold, and arranging it again changes nothing", () => {
  fc.assert(
    fc.property(fc.array(anyMessage, { maxLength: 12 }), (history) => {
      const arranged = arrangeForAnthropic(history);
      const [, ...rest] = arranged[0]?.role === "system" ? arranged : [undefined, ...arranged];
      expect(rest[0]?.role).toBe("user");
      expect(rest.every((message) => message?.role !== "system")).toBe(true);
      const ids = rest.flatMap((message) =>
        message?.role === "assistant" ? message.calls.map((call) => call.id) : [],
      );
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids.every((id) => /^[\w-]+$/.test(id))).toBe(true);
      for (const [at, message] of rest.entries()) {
        if (message?.role === "user" || message?.role === "tool") expect(message.text.trim()).not.toBe("");
        if (message?.role !== "assistant") continue;
        expect(message.text !== "" || message.calls.length > 0).toBe(true);
        const results = rest.slice(at + 1, at + 1 + message.calls.length);
        expect(results.map((one) => (one?.role === "tool" ? one.callId : ""))).toEqual(
          message.calls.map(({ id }) => id),
        );
      }
      expect(arrangeForAnthropic(arranged)).toEqual(arranged);
    }),
  );
});
