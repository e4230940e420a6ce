import { expect, test } from "vitest";
import { makeBackend } from "../../../../src/turns/backends/make.ts";
import type { BackendEvent, ModelMessage, ModelRequest } from "../../../../src/turns/backends/port.ts";

const read = { name: "read", description: "", schema: { type: "object" } };
const list = { name: "list", description: "", schema: { type: "object" } };

function request(messages: readonly ModelMessage[], over: Partial<ModelRequest> = {}): ModelRequest {
  return { messages, tools: [read, list], sampling: {}, ...over };
}

async function complete(wanted: ModelRequest, signal = new AbortController().signal): Promise<BackendEvent[]> {
  const backend = await makeBackend("demo", { kind: "offline" });
  return await Array.fromAsync(backend.complete(wanted, signal));
}

const said = (text: string): ModelMessage => ({ role: "user", text });
const textOf = (events: readonly BackendEvent[]) =>
  events.map((event) => (event.type === "text" ? event.delta : "")).join("");
const noTokens = { inputTokens: 0, outputTokens: 0 };

test("says that no model is connected, what was said, and how to connect one", async () => {
  const events = await complete(request([said("Hello,\n  how are\tyou?")]));
  const text = textOf(events);
  expect(text).toContain("No model is connected");
  expect(text).toContain("You wrote: Hello, how are you?");
  expect(text).toMatch(/OPENAI_API_KEY.*Ollama.*backends:.*laneway\.yaml/);
  expect(text).toMatch(/`read PATH`.*`list \[PATH\]`/);
  expect(events.filter((event) => event.type === "text").length).toBeGreaterThan(2);
  expect(events.at(-1)).toEqual({ type: "finish", reason: "stop", usage: noTokens });
});

test("says of an image that it cannot see it", async () => {
  const images = [{ file: "2026/cat.png", mediaType: "image/png" }];
  const text = textOf(await complete(request([{ role: "user", text: "", images }])));
  expect(text).toContain("You wrote: [image cat.png: this model cannot see images]");
});

test.each([
  ["read notes/a b.txt", "read", { path: "notes/a b.txt" }],
  ["read notes.txt  \nand then something", "read", { path: "notes.txt" }],
  ["list src", "list", { path: "src" }],
  ["list", "list", { path: "." }],
])("%j calls the tool", async (text, name, input) => {
  const call = { id: "offline-2", name, input: JSON.stringify(input) };
  expect(await complete(request([{ role: "system", text: "be nice" }, said(text)]))).toEqual([
    { type: "tool-call", call },
    { type: "finish", reason: "tool-calls", usage: noTokens },
  ]);
});

test.each([
  ["without a path, read", "read", {}],
  ["for words that only begin like it", "reading is fun", {}],
  ["in a later line", "please\nread a.txt", {}],
  ["when the agent has no such tool", "read a.txt", { tools: [list] }],
  ["when the request forbids tools", "read a.txt", { sampling: { toolChoice: "none" as const } }],
])("calls no tool %s", async (_, text, over) => {
  const events = await complete(request([said(text)], over));
  expect(events.at(-1)).toMatchObject({ type: "finish", reason: "stop" });
  expect(textOf(events)).toContain("No model is connected");
});

test("answers a tool's result with its text, fenced so that nothing in it ends the fence", async () => {
  const call = { id: "offline-1", name: "read", input: "{}" };
  const result = (text: string, isError: boolean): ModelMessage[] => [
    said("read a.md"),
    { role: "assistant", text: "", calls: [call] },
    { role: "tool", callId: call.id, name: "read", text, isError },
  ];
  expect(textOf(await complete(request(result("a\n```js\n1\n```\n", false))))).toBe(
    "`read` gave:\n\n````\na\n```js\n1\n```\n````",
  );
  expect(textOf(await complete(request(result("There is no file.", true))))).toBe(
    "`read` failed:\n\n```\nThere is no file.\n```",
  );
});

test("the same request gives the same answer, and no piece ends inside a character", async () => {
  for (const text of ["😀".repeat(150), "a😀".repeat(90), "x", "", " \n "]) {
    const wanted = request([said(text)]);
    const events = await complete(wanted);
    expect(await complete(wanted)).toEqual(events);
    for (const event of events) if (event.type === "text") expect(event.delta.isWellFormed()).toBe(true);
  }
});

test("ends with aborted and nothing else once the signal has aborted", async () => {
  const early = await complete(request([said("hi")]), AbortSignal.abort());
  expect(early).toEqual([{ type: "failure", failure: { class: "aborted", message: "the call was stopped" } }]);

  const stop = new AbortController();
  const backend = await makeBackend("demo", { kind: "offline" });
  const events: BackendEvent[] = [];
  for await (const event of backend.complete(request([said("hi")]), stop.signal)) {
    events.push(event);
    stop.abort();
  }
  expect(events.map((event) => event.type)).toEqual(["text", "failure"]);
});
