import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { setImmediate } from "node:timers/promises";
import { afterEach, expect, describe as group, test } from "vitest";
import { type AnthropicSettings, makeAnthropicBackend } from "../../src/turns/backends/anthropic.ts";
import type { Backend, ModelMessage } from "../../src/turns/backends/port.ts";
import {
  failureOf,
  hear,
  MESSAGE_START,
  MESSAGE_STOP,
  type ModelEndpoint,
  messageDelta,
  messageEvent,
  prompt,
  type SeenRequest,
  sendStream,
  startModelEndpoint,
  textBlock,
  toolBlock,
} from "../support/model-endpoint.ts";

// The backend against an endpoint that speaks the Messages API, or something like it, badly.

let endpoint: ModelEndpoint | undefined;

afterEach(async () => {
  await endpoint?.stop();
});

const basic = { name: "raw", model: "m1", maxOutputTokens: 100 };

async function serve(
  answer: (response: ServerResponse, request: SeenRequest) => void | Promise<void>,
  over: Partial<AnthropicSettings> = {},
): Promise<{ backend: Backend; endpoint: ModelEndpoint }> {
  endpoint = await startModelEndpoint(answer);
  const backend = await makeAnthropicBackend({ ...basic, baseUrl: endpoint.baseUrl, ...over });
  return { backend, endpoint };
}

/** A backend over whatever this fetch gives. */
function over(fetch: () => Promise<Response>): Promise<Backend> {
  return makeAnthropicBackend({ ...basic, baseUrl: "http://x/v1", fetch });
}

const end = (reason: string) => messageDelta(reason) + MESSAGE_STOP;
const PING = messageEvent("ping");
const tools = [{ name: "read", description: "", schema: { type: "object" } }];
const errorEvent = (error: object) => messageEvent("error", { error });

group("an answer that is none", () => {
  test.each([
    ["a web page with status 200", "text/html", "<!doctype html><html>Sign in</html>", "server", "a web page"],
    ["plain words", "text/plain", "upstream said no", "server", "no model stream"],
    [
      "an error as JSON with status 200",
      "application/json",
      '{"type":"error","error":{"type":"billing_error","message":"m"}}',
      "billing",
      "",
    ],
    ["nothing", "text/event-stream", "", "network", "cut off"],
    ["half of a first event", "text/event-stream", 'data: {"type":"message_st', "network", "cut off"],
    ["pings only", "text/event-stream", PING + PING, "network", "cut off"],
    ["an event that is no JSON", "text/event-stream", "data: {oops}\n\n", "server", "no model stream"],
    [
      "events of OpenAI's protocol",
      "text/event-stream",
      'data: {"choices":[{"delta":{"content":"a"}}]}\n\n',
      "server",
      "check baseUrl",
    ],
    [
      "an error in OpenAI's form",
      "text/event-stream",
      'data: {"error":{"message":"boom","code":"insufficient_quota"}}\n\n',
      "quota",
      "",
    ],
  ])("%s", async (_, contentType, body, expected, words) => {
    const { backend } = await serve((response) => {
      response.writeHead(200, { "content-type": contentType }).end(body);
    });
    const failure = failureOf(await hear(backend, prompt("x")));
    expect(failure.class).toBe(expected);
    expect(failure.message).toContain(words);
  });

  test("a server that is not there", async () => {
    const { backend, endpoint } = await serve(() => {});
    await endpoint.stop();
    const failure = failureOf(await hear(backend, prompt("x")));
    expect(failure).toEqual({ class: "network", message: `nothing listens at ${new URL(endpoint.baseUrl).origin}` });
  });

  test("an error body that never ends does not hide the status", async () => {
    const { backend } = await serve((response) => {
      response.writeHead(500).write("x".repeat(200_000));
    });
    expect(failureOf(await hear(backend, prompt("x")))).toMatchObject({ class: "server", status: 500 });
  });

  test("a rate limit with the wait that it asks for", async () => {
    const { backend } = await serve((response) => {
      const body = JSON.stringify({ type: "error", error: { type: "rate_limit_error", message: "slow" } });
      response.writeHead(429, { "content-type": "application/json", "retry-after": "12" }).end(body);
    });
    expect(failureOf(await hear(backend, prompt("x")))).toEqual({
      class: "rate-limit",
      message: "the server was asked too often (429)",
      status: 429,
      retryAfterMs: 12_000,
    });
  });
});

group("an error inside the stream", () => {
  test.each([
    ["overloaded_error", "overloaded"],
    ["rate_limit_error", "rate-limit"],
    ["api_error", "server"],
    ["authentication_error", "auth"],
    ["timeout_error", "timeout"],
  ])("%s ends the call at once, first or late, even if the stream goes on", async (type, expected) => {
    const error = errorEvent({ type, message: "m" });
    const { backend, endpoint } = await serve((response, { body }) => {
      const isLate = JSON.stringify(body["messages"]).includes("late");
      if (isLate) sendStream(response, MESSAGE_START, textBlock(0, "par"), error, PING);
      else sendStream(response, error, PING);
    });
    expect(failureOf(await hear(backend, prompt("first"))).class).toBe(expected);
    await endpoint.clientGone;
    const late = await hear(backend, prompt("late"));
    expect(failureOf(late).class).toBe(expected);
    expect(late.text).toBe("par");
  });

  test("never shows the key", async () => {
    const key = "correct-horse-battery";
    const { backend } = await serve(
      (response) => {
        sendStream(response, MESSAGE_START, errorEvent({ type: "api_error", message: `bad key ${key}` }));
      },
      { apiKey: key },
    );
    expect(failureOf(await hear(backend, prompt("x"))).message).toBe("the server failed: bad key [hidden]");
  });
});

group("an answer that is cut", () => {
  test.each([
    ["in the text", textBlock(0, "All ", "done.").split("event: content_block_stop", 1).join("")],
    ["after a call that is whole", textBlock(0, "All done.") + toolBlock(1, "c1", "{}")],
    [
      "after the reason, before the end",
      textBlock(0, "All done.") + toolBlock(1, "c1", "{}") + messageDelta("tool_use"),
    ],
    ["inside the last event", `${textBlock(0, "All done.")}${messageDelta("end_turn")}event: message_stop\ndata: {"ty`],
  ])("%s: a network failure, however whole it looks, and no call is given", async (_, body) => {
    const { backend } = await serve((response) => {
      sendStream(response, MESSAGE_START, body);
      response.end();
    });
    const heard = await hear(backend, prompt("x", { tools }));
    expect(failureOf(heard)).toEqual({ class: "network", message: "the answer was cut off" });
    expect(heard.text).toBe("All done.");
    expect(heard.calls).toEqual([]);
  });

  test("an end without a reason is none", async () => {
    const { backend } = await serve((response) => {
      sendStream(response, MESSAGE_START, textBlock(0, "a"), MESSAGE_STOP);
      response.end();
    });
    expect(failureOf(await hear(backend, prompt("x"))).class).toBe("network");
  });

  test("a connection that breaks in the middle is a network failure", async () => {
    const { backend } = await serve(async (response) => {
      sendStream(response, MESSAGE_START, textBlock(0, "a"));
      await once(response, "drain").catch(() => {});
    });
    const events = backend.complete(prompt("x"), new AbortController().signal)[Symbol.asyncIterator]();
    expect((await events.next()).value).toEqual({ type: "text", delta: "a" });
    const next = events.next();
    await endpoint?.stop();
    expect((await next).value).toMatchObject({ type: "failure", failure: { class: "network" } });
    expect((await events.next()).done).toBe(true);
  });
});

group("the end of an answer", () => {
  test("pings change nothing, and nothing after the end counts, though the connection stays open", async () => {
    const { backend } = await serve((response) => {
      const more = textBlock(1, "b");
      sendStream(response, PING, MESSAGE_START, PING, textBlock(0, "a"), PING, end("end_turn"), more);
    });
    const heard = await hear(backend, prompt("x"));
    expect(heard.text).toBe("a");
    expect(heard.end).toEqual({ type: "finish", reason: "stop", usage: { inputTokens: 11, outputTokens: 7 } });
  });

  test("is found when the network cuts it in pieces, and without event lines", async () => {
    const stream = MESSAGE_START + textBlock(0, "grün 😀") + end("end_turn");
    for (const text of [stream, stream.replace(/^event: .*\n/gm, ""), stream.replaceAll("\n", "\r\n")]) {
      const rest = Array.from(Buffer.from(text), (byte) => Uint8Array.of(byte));
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          const piece = rest.shift();
          if (piece === undefined) controller.close();
          else controller.enqueue(piece);
        },
      });
      const backend = await over(async () => new Response(body));
      expect(await hear(backend, prompt("x"))).toMatchObject({ text: "grün 😀", end: { type: "finish" } });
    }
  });

  test("a text that speaks of the end ends nothing", async () => {
    const content = 'write event: message_stop\ndata: {"type":"message_stop"}\n\n at the end';
    const { backend } = await serve((response) => {
      sendStream(response, MESSAGE_START, textBlock(0, content), end("end_turn"));
      response.end();
    });
    expect((await hear(backend, prompt("x"))).text).toBe(content);
  });

  test("the last bytes are taken, so that the connection can serve the next call", async () => {
    const answered = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<string>();
    const pieces = [MESSAGE_START, textBlock(0, "a"), end("end_turn")].map((piece) => Buffer.from(piece));
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const piece = pieces.shift();
        if (piece !== undefined) return controller.enqueue(piece);
        await answered.promise;
        ended.resolve("read to the end");
        controller.close();
      },
      cancel: () => ended.resolve("cancelled"),
    });
    const backend = await over(async () => new Response(body));
    expect((await hear(backend, prompt("x"))).end.type).toBe("finish");
    // A cancellation, if there is one, gets to the body first.
    await setImmediate();
    answered.resolve();
    expect(await ended.promise).toBe("read to the end");
  });

  test.each([
    ["tool_use", "{}", { type: "finish", reason: "tool-calls" }],
    ["tool_use", '{"path": oops', { type: "finish", reason: "tool-calls" }],
    ["max_tokens", '{"path":"a', { type: "failure", failure: { class: "invalid" } }],
    ["refusal", "{}", { type: "failure", failure: { class: "refusal" } }],
    ["model_context_window_exceeded", "{}", { type: "failure", failure: { class: "context-overflow" } }],
    ["whatever", "{}", { type: "failure", failure: { class: "server" } }],
  ])("%s with the tool input %s", async (reason, input, expected) => {
    const { backend } = await serve((response) => {
      sendStream(response, MESSAGE_START, toolBlock(0, "c1", ...input), end(reason));
      response.end();
    });
    const heard = await hear(backend, prompt("x", { tools }));
    expect(heard.end).toMatchObject(expected);
    expect(heard.calls).toEqual(expected.type === "finish" ? [{ id: "c1", name: "read", input }] : []);
  });

  test("a call without an input gets an empty object", async () => {
    const { backend } = await serve((response) => {
      sendStream(response, MESSAGE_START, toolBlock(0, "c1"), toolBlock(1, "c2", ""), end("tool_use"));
      response.end();
    });
    const { calls } = await hear(backend, prompt("x", { tools }));
    expect(calls.map((call) => call.input)).toEqual(["{}", "{}"]);
  });

  test("max_tokens ends a text with length", async () => {
    const { backend } = await serve((response) => {
      sendStream(response, MESSAGE_START, textBlock(0, "and so"), end("max_tokens"));
      response.end();
    });
    expect(await hear(backend, prompt("x"))).toMatchObject({ text: "and so", end: { reason: "length" } });
  });

  test("usage of zero is no report and is estimated, so that no budget is switched off", async () => {
    const { backend } = await serve((response) => {
      const start = MESSAGE_START.replace('"input_tokens":11', '"input_tokens":0');
      sendStream(response, start, textBlock(0, "12345678"), end("end_turn").replace(":7}", ":0}"));
      response.end();
    });
    const { end: last } = await hear(backend, prompt("y".repeat(4_000)));
    expect(last).toMatchObject({ type: "finish", usage: { outputTokens: 2 } });
    expect(last.type === "finish" && last.usage.inputTokens).toBeGreaterThanOrEqual(1_000);
  });
});

group("too much (fault: the backend sends 10 MB)", () => {
  const filler = "x".repeat(100_000);
  const delta = (fields: object) => messageEvent("content_block_delta", { index: 0, delta: fields });
  const start = (block: object) =>
    MESSAGE_START + messageEvent("content_block_start", { index: 0, content_block: block });

  test.each([
    ["text", start({ type: "text", text: "" }), delta({ type: "text_delta", text: filler })],
    ["thoughts", start({ type: "thinking", thinking: "" }), delta({ type: "thinking_delta", thinking: filler })],
    [
      "a tool input",
      start({ type: "tool_use", id: "c1", name: "read", input: {} }),
      delta({ type: "input_json_delta", partial_json: filler }),
    ],
    ["pings", "", messageEvent("ping", { pad: filler })],
    ["comments", "", `: ${filler}\n\n`],
  ])("an endless answer of %s is given up and its connection closed", async (_, first, piece) => {
    const { backend, endpoint } = await serve(async (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      await pipeline(function* () {
        yield first;
        for (;;) yield piece;
      }, response);
    });
    const failure = failureOf(await hear(backend, prompt("x", { tools })));
    expect(failure.class).toBe("invalid");
    expect(failure.message).toContain("10 MB");
    await endpoint.clientGone;
  });
});

group("abort", () => {
  async function abortAt(reached: Promise<unknown>, backend: Backend): Promise<string> {
    const stop = new AbortController();
    const heard = hear(backend, prompt("x"), stop.signal);
    await reached;
    stop.abort("enough");
    return failureOf(await heard).class;
  }

  test.each([
    ["before the headers", () => {}],
    ["after the headers", (response: ServerResponse) => response.writeHead(200).flushHeaders()],
    ["after pings", (response: ServerResponse) => sendStream(response, PING, PING)],
    ["during the answer", (response: ServerResponse) => sendStream(response, MESSAGE_START, textBlock(0, "a"))],
    ["before the end", (response: ServerResponse) => sendStream(response, MESSAGE_START, messageDelta("end_turn"))],
    ["inside an event", (response: ServerResponse) => sendStream(response, 'data: {"type":')],
    ["during an error body", (response: ServerResponse) => void response.writeHead(500).write("{")],
  ])("ends a call that hangs %s, and closes its connection", async (_, hang) => {
    const reached = Promise.withResolvers<void>();
    const { backend, endpoint } = await serve((response) => {
      hang(response);
      reached.resolve();
    });
    expect(await abortAt(reached.promise, backend)).toBe("aborted");
    await endpoint.clientGone;
  });

  test("ends a call whose fetch never settles and never hears of the abort", async () => {
    const asked = Promise.withResolvers<void>();
    const backend = await over(() => {
      asked.resolve();
      return new Promise<Response>(() => {});
    });
    expect(await abortAt(asked.promise, backend)).toBe("aborted");
  });

  test("ends a call whose body never hears of the abort, nor of being cancelled", async () => {
    const pulled = Promise.withResolvers<void>();
    const body = new ReadableStream<Uint8Array>({
      pull: () => {
        pulled.resolve();
        return new Promise<void>(() => {});
      },
      cancel: () => new Promise<void>(() => {}),
    });
    const backend = await over(async () => new Response(body));
    expect(await abortAt(pulled.promise, backend)).toBe("aborted");
  });

  test("ends a call whose image is never read", async () => {
    const asked = Promise.withResolvers<void>();
    const { backend, endpoint } = await serve(() => {}, { vision: true });
    const readImage = () => {
      asked.resolve();
      return new Promise<undefined>(() => {});
    };
    const stop = new AbortController();
    const images = [{ file: "a.png", mediaType: "image/png" }];
    const heard = hear(
      backend,
      prompt("x", { messages: [{ role: "user", text: "", images }], readImage }),
      stop.signal,
    );
    await asked.promise;
    stop.abort();
    expect(failureOf(await heard).class).toBe("aborted");
    expect(endpoint.seen).toEqual([]);
  });

  test("before the call makes no request", async () => {
    const { backend, endpoint } = await serve(() => {});
    expect(failureOf(await hear(backend, prompt("x"), AbortSignal.abort())).class).toBe("aborted");
    expect(endpoint.seen).toEqual([]);
  });

  test("wins over a finish that has arrived but was not given yet", async () => {
    const { backend } = await serve((response) => {
      sendStream(response, MESSAGE_START, toolBlock(0, "c1", "{}"), end("tool_use"));
      response.end();
    });
    const stop = new AbortController();
    const types: string[] = [];
    for await (const event of backend.complete(prompt("x", { tools }), stop.signal)) {
      types.push(event.type);
      if (event.type === "tool-call") stop.abort();
    }
    expect(types.slice(-2)).toEqual(["tool-call", "failure"]);
  });

  test("a consumer that leaves the stream closes the connection", async () => {
    const { backend, endpoint } = await serve((response) => {
      sendStream(response, MESSAGE_START, textBlock(0, "a"));
    });
    for await (const event of backend.complete(prompt("x"), new AbortController().signal)) {
      expect(event.type).toBe("text");
      break;
    }
    await endpoint.clientGone;
  });
});

group("the request", () => {
  const answer = (response: ServerResponse) => {
    sendStream(response, MESSAGE_START, textBlock(0, "ok"), end("end_turn"));
    response.end();
  };
  const schema = { type: "object", properties: { path: { type: "string" } } };

  test("carries the history, the tools and the wishes in the Messages API's form", async () => {
    const { backend, endpoint } = await serve(answer, { apiKey: "k-1234", headers: { "x-team": "blue" } });
    const messages: ModelMessage[] = [
      { role: "system", text: "Be brief." },
      { role: "user", text: "look" },
      { role: "assistant", text: "Looking.", calls: [{ id: "c1", name: "read", input: '{"path":"a"}' }] },
      { role: "tool", callId: "c1", name: "read", text: "gone", isError: true },
      { role: "user", text: "and?" },
    ];
    await hear(backend, {
      messages,
      tools: [{ name: "read", description: "Reads.", schema }],
      sampling: { temperature: 0.2, stop: ["END"], toolChoice: { tool: "read" }, maxOutputTokens: 50 },
    });
    expect(endpoint.seen[0]?.path).toBe("/v1/messages");
    expect(endpoint.seen[0]?.headers).toMatchObject({
      "x-api-key": "k-1234",
      "x-team": "blue",
      "anthropic-version": "2023-06-01",
    });
    expect(endpoint.seen[0]?.headers.authorization).toBeUndefined();
    expect(endpoint.seen[0]?.body).toEqual({
      model: "m1",
      stream: true,
      max_tokens: 50,
      temperature: 0.2,
      stop_sequences: ["END"],
      system: [{ type: "text", text: "Be brief." }],
      messages: [
        { role: "user", content: [{ type: "text", text: "look" }] },
        {
          role: "assistant",
          content: [
            { type: "text", text: "Looking." },
            { type: "tool_use", id: "c1", name: "read", input: { path: "a" } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "c1", content: "gone", is_error: true },
            { type: "text", text: "and?" },
          ],
        },
      ],
      tools: [{ name: "read", description: "Reads.", input_schema: schema, eager_input_streaming: true }],
      tool_choice: { type: "tool", name: "read" },
    });
  });

  test("leaves out what nobody asked for, but for the limit that the API demands", async () => {
    const { backend, endpoint } = await serve(answer);
    await hear(backend, prompt("hi"));
    expect(endpoint.seen[0]?.body).toEqual({
      model: "m1",
      stream: true,
      max_tokens: 100,
      messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
    });
    expect(endpoint.seen[0]?.headers).not.toHaveProperty("x-api-key");
  });

  test("a history with tool calls declares tools, though the request allows none", async () => {
    const { backend, endpoint } = await serve(answer);
    const messages: ModelMessage[] = [
      { role: "user", text: "look" },
      { role: "assistant", text: "", calls: [{ id: "c1", name: "read", input: "{}" }] },
      { role: "tool", callId: "c1", name: "read", text: "x", isError: false },
      { role: "user", text: "sum up" },
    ];
    await hear(backend, prompt("", { messages }));
    expect(endpoint.seen[0]?.body).toMatchObject({ tools: [{ name: "read" }], tool_choice: { type: "none" } });
  });

  test("carries images before the text that speaks of them, for a model that sees", async () => {
    const { backend, endpoint } = await serve(answer, { vision: true });
    const images = [{ file: "2026/cat.png", mediaType: "image/png" }];
    const readImage = async () => Buffer.from("PNG");
    await hear(backend, prompt("", { messages: [{ role: "user", text: "what is it?", images }], readImage }));
    const image = {
      type: "image",
      source: { type: "base64", media_type: "image/png", data: Buffer.from("PNG").toString("base64") },
    };
    const sent = { role: "user", content: [image, { type: "text", text: "what is it?" }] };
    expect(endpoint.seen[0]?.body["messages"]).toEqual([sent]);
    await hear(backend, prompt("", { messages: [{ role: "user", text: " ", images }], readImage }));
    expect(endpoint.seen[1]?.body["messages"]).toEqual([{ role: "user", content: [image] }]);
  });

  test("tells a model that does not see of the image", async () => {
    const { backend, endpoint } = await serve(answer, { vision: false });
    const images = [{ file: "2026/cat.png", mediaType: "image/png" }];
    await hear(backend, prompt("", { messages: [{ role: "user", text: "", images }] }));
    const text = "[image cat.png: this model cannot see images]";
    expect(endpoint.seen[0]?.body["messages"]).toEqual([{ role: "user", content: [{ type: "text", text }] }]);
  });

  test("one that cannot be made is a failure and no throw", async () => {
    const backend = await makeAnthropicBackend({ ...basic, baseUrl: "nonsense" });
    expect(failureOf(await hear(backend, prompt("x"))).class).toBe("invalid");
  });
});
