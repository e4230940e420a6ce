import { LLMock } from "@copilotkit/aimock";
import { afterEach, beforeEach, expect, test } from "vitest";
import { backendSchema } from "../../src/settings/schema.ts";
import { makeBackend } from "../../src/turns/backends/make.ts";
import type { Backend } from "../../src/turns/backends/port.ts";
import { failureOf, hear, prompt } from "../support/model-endpoint.ts";

// The backend against an independent implementation of OpenAI's endpoint. What that cannot do is in openai-wire.test.ts.

const read = {
  name: "read",
  description: "Reads a file.",
  schema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
};
const KEY = "test-key-of-the-peer";

let mock: LLMock;
let backend: Backend;

beforeEach(async () => {
  mock = new LLMock({ port: 0, chunkSize: 4, auth: { apiKeys: [KEY] } });
  await mock.start();
  backend = await connect({ apiKey: KEY });
});

function connect(over: object): Promise<Backend> {
  return makeBackend(
    "peer",
    backendSchema.parse({ kind: "openai", model: "gpt-4o", baseUrl: `${mock.url}/v1`, ...over }),
  );
}

afterEach(async () => {
  await mock.stop();
});

test("streams a text and reports the usage that the server counted", async () => {
  mock.onMessage("hello", { content: "Hello there, person!", usage: { prompt_tokens: 11, completion_tokens: 7 } });
  const heard = await hear(backend, prompt("hello"));
  expect(heard.text).toBe("Hello there, person!");
  expect(heard.end).toEqual({ type: "finish", reason: "stop", usage: { inputTokens: 11, outputTokens: 7 } });
});

test("a key that the server does not take is an auth failure", async () => {
  const wrong = await connect({ apiKey: "wrong" });
  expect(failureOf(await hear(wrong, prompt("hello")))).toMatchObject({
    class: "auth",
    message: "the key was refused (401)",
  });
});

test("passes reasoning on apart from the text", async () => {
  mock.onMessage("think", { content: "42", reasoning: "six times seven" });
  const heard = await hear(backend, prompt("think"));
  expect(heard).toMatchObject({ text: "42", reasoning: "six times seven", end: { reason: "stop" } });
});

test("gives tool calls with their input as text, and takes their results", async () => {
  mock.onMessage("look", {
    content: "Looking.",
    toolCalls: [
      { id: "call_a", name: "read", arguments: '{"path":"a.txt"}' },
      { id: "call_b", name: "read", arguments: '{"path":"b.txt"}' },
    ],
  });
  const heard = await hear(backend, prompt("look", { tools: [read] }));
  expect(heard.text).toBe("Looking.");
  expect(heard.calls).toEqual([
    { id: "call_a", name: "read", input: '{"path":"a.txt"}' },
    { id: "call_b", name: "read", input: '{"path":"b.txt"}' },
  ]);
  expect(heard.end).toMatchObject({ type: "finish", reason: "tool-calls" });

  mock.clearFixtures();
  mock.on({ toolCallId: "call_b", toolResultContains: "second" }, { content: "Both read." });
  const answer = await hear(backend, {
    messages: [
      { role: "user", text: "look" },
      { role: "assistant", text: heard.text, calls: heard.calls },
      { role: "tool", callId: "call_a", name: "read", text: "first", isError: false },
      { role: "tool", callId: "call_b", name: "read", text: "second", isError: false },
    ],
    tools: [read],
    sampling: {},
  });
  expect(answer.text).toBe("Both read.");
});

test("an answer at the output limit finishes with length", async () => {
  mock.onMessage("long", { content: "and so on", finishReason: "length" });
  expect((await hear(backend, prompt("long"))).end).toMatchObject({ type: "finish", reason: "length" });
});

test.each([
  ["context-overflow", 400, { message: "too long", code: "context_length_exceeded" }],
  ["invalid", 400, { message: "bad", type: "invalid_request_error" }],
  ["auth", 401, { message: `Incorrect API key provided: ${KEY}`, code: "invalid_api_key" }],
  ["auth", 403, { message: "no", type: "permission_error" }],
  ["rate-limit", 429, { message: "slow", code: "rate_limit_exceeded" }],
  ["quota", 429, { message: "used up", code: "insufficient_quota" }],
  ["server", 500, { message: `oops ${KEY}`, type: "server_error" }],
  ["overloaded", 503, { message: "busy" }],
  ["overloaded", 529, { message: "busy", type: "overloaded_error" }],
])("fails as %s on HTTP %i with %j, after one request (Q5.1)", async (expected, status, error) => {
  mock.nextRequestError(status, error);
  const failure = failureOf(await hear(backend, prompt("x")));
  expect(failure).toMatchObject({ class: expected, status });
  expect(failure.message).not.toContain(KEY);
  expect(mock.getRequests()).toHaveLength(1);
});

test("keeps the wait that the server asks for", async () => {
  mock.onMessage("x", { error: { message: "slow" }, status: 429, retryAfter: 7 });
  expect(failureOf(await hear(backend, prompt("x")))).toMatchObject({ class: "rate-limit", retryAfterMs: 7_000 });
});

test("names the model that the server does not know", async () => {
  mock.nextRequestError(404, { message: "no such model", code: "model_not_found" });
  expect(failureOf(await hear(backend, prompt("x"))).message).toContain("does not know the model gpt-4o");
});

test("an answer that breaks off after some chunks is a network failure, with its text before it", async () => {
  mock.onMessage("cut", { content: "one two three four five six" }, { truncateAfterChunks: 3, latency: 5 });
  const heard = await hear(backend, prompt("cut"));
  expect(failureOf(heard).class).toBe("network");
  expect("one two three four five six".startsWith(heard.text)).toBe(true);
  expect(heard.text).not.toBe("one two three four five six");
});

test("a tool call that breaks off is never given", async () => {
  const call = { id: "call_a", name: "read", arguments: '{"path":"a.txt"}' };
  mock.onMessage("cut", { toolCalls: [call] }, { truncateAfterChunks: 6, latency: 5 });
  const heard = await hear(backend, prompt("cut", { tools: [read] }));
  expect(failureOf(heard).class).toBe("network");
  expect(heard.calls).toEqual([]);
});

test("a connection that drops during the answer is a network failure", async () => {
  mock.onMessage("drop", { content: "x".repeat(400) }, { disconnectAfterMs: 30, latency: 10 });
  expect(failureOf(await hear(backend, prompt("drop"))).class).toBe("network");
});

test("chunks that are no JSON and connections that drop before the answer fail without a throw", async () => {
  mock.onMessage("x", { content: "fine" });
  mock.setChaos({ malformedRate: 1 });
  expect(failureOf(await hear(backend, prompt("x"))).class).toBe("server");
  mock.setChaos({ disconnectRate: 1 });
  expect(failureOf(await hear(backend, prompt("x"))).class).toBe("network");
});

test("an abort ends a call that waits for its first token", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = () => {
    asked.resolve();
    return { content: "never" };
  };
  mock.onMessage("slow", answer, { latency: 120_000 });
  const stop = new AbortController();
  const heard = hear(backend, prompt("slow"), stop.signal);
  await asked.promise;
  stop.abort();
  expect(failureOf(await heard).class).toBe("aborted");
});
