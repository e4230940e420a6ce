import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { afterEach, expect, describe as group, test } from "vitest";
import { makeOpenAiBackend, type OpenAiSettings } from "../../src/turns/backends/openai.ts";
import type { Backend, ModelMessage } from "../../src/turns/backends/port.ts";
import {
  chunk,
  DONE,
  failureOf,
  hear,
  type ModelEndpoint,
  prompt,
  type SeenRequest,
  sendStream,
  startModelEndpoint,
} from "../support/model-endpoint.ts";

// The backend against an endpoint that misbehaves on the wire in every way that its peers in the field do.

let endpoint: ModelEndpoint | undefined;

afterEach(async () => {
  await endpoint?.stop();
});

async function serve(
  answer: (response: ServerResponse, request: SeenRequest) => void | Promise<void>,
  over: Partial<OpenAiSettings> = {},
): Promise<{ backend: Backend; endpoint: ModelEndpoint }> {
  endpoint = await startModelEndpoint(answer);
  const backend = await makeOpenAiBackend({ name: "raw", model: "m1", baseUrl: endpoint.baseUrl, ...over });
  return { backend, endpoint };
}

/** A backend whose every answer has this body, in these pieces. */
async function overBody(
  pieces: readonly Uint8Array[],
  onEnd: (how: "read to the end" | "cancelled") => void = () => {},
): Promise<Backend> {
  const rest = [...pieces];
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = rest.shift();
      if (piece !== undefined) return controller.enqueue(piece);
      onEnd("read to the end");
      controller.close();
    },
    cancel: () => onEnd("cancelled"),
  });
  return await makeOpenAiBackend({
    name: "b",
    model: "m",
    baseUrl: "http://x/v1",
    fetch: async () => new Response(body),
  });
}

const callDelta = (id: string, input: string, index = 0) => ({
  tool_calls: [{ index, id, function: { name: "read", arguments: input } }],
});
const tools = [{ name: "read", description: "", schema: { type: "object" } }];

group("an answer that is none", () => {
  test.each([
    ["a web page with status 200", "text/html", "<!doctype html><html>Sign in</html>", "server", "a web page"],
    ["plain words", "text/plain", "upstream said no", "server", "no model stream"],
    [
      "bytes that are no text",
      "text/event-stream",
      Buffer.from([0, 1, 255, 254, 10, 10, 192, 0]),
      "server",
      "no model stream",
    ],
    [
      "an error as JSON with status 200",
      "application/json",
      '{"error":{"message":"m","code":"insufficient_quota"}}',
      "quota",
      "",
    ],
    ["an error as a bare text", "application/json", '{"error":"model crashed"}', "server", "model crashed"],
    ["nothing", "text/event-stream", "", "network", "cut off"],
    ["half of a first event", "text/event-stream", 'data: {"choices":[{"del', "network", "cut off"],
    ["an event that is no JSON", "text/event-stream", "data: {oops}\n\n", "server", ""],
    ["an event of another protocol", "text/event-stream", 'data: {"type":"ping"}\n\n', "server", ""],
    ["an error without a form", "text/event-stream", 'data: {"error":"boom"}\n\n', "server", "boom"],
  ])("%s", async (_, contentType, body, expected, words) => {
    const { backend } = await serve((response) => {
      response.writeHead(200, { "content-type": contentType }).end(body);
    });
    const failure = failureOf(await hear(backend, prompt("x")));
    expect(failure.class).toBe(expected);
    expect(failure.message).toContain(words);
  });

  test("status 204", async () => {
    const { backend } = await serve((response) => void response.writeHead(204).end());
    expect(failureOf(await hear(backend, prompt("x"))).class).toBe("server");
  });

  test("a server that is not there", async () => {
    const { backend, endpoint } = await serve(() => {});
    await endpoint.stop();
    const failure = failureOf(await hear(backend, prompt("x")));
    expect(failure).toEqual({ class: "network", message: `nothing listens at ${new URL(endpoint.baseUrl).origin}` });
  });

  test("an error status with a page, and a date to come back at", async () => {
    const { backend } = await serve((response) => {
      response.writeHead(503, { "retry-after": new Date(Date.now() + 60_000).toUTCString() }).end("<html>busy</html>");
    });
    const failure = failureOf(await hear(backend, prompt("x")));
    expect(failure).toMatchObject({ class: "overloaded", status: 503 });
    expect(failure.retryAfterMs).toBeGreaterThan(50_000);
    expect(failure.retryAfterMs).toBeLessThan(70_000);
  });

  test("an error body that never ends does not hide the status", async () => {
    const { backend } = await serve((response) => {
      response.writeHead(500).write("x".repeat(200_000));
    });
    expect(failureOf(await hear(backend, prompt("x")))).toMatchObject({ class: "server", status: 500 });
  });
});

group("an answer that is cut", () => {
  test("a stream that closes without a finish reason is a network failure, however whole it looks", async () => {
    const { backend } = await serve((response) => {
      sendStream(response, chunk({ content: "All done." }), chunk(callDelta("c1", "{}")), DONE);
      response.end();
    });
    const heard = await hear(backend, prompt("x", { tools }));
    expect(failureOf(heard)).toEqual({ class: "network", message: "the answer was cut off" });
    expect(heard.text).toBe("All done.");
    expect(heard.calls).toEqual([]);
  });

  test("a stream that closes inside a late event is cut, although its last bytes look like nothing", async () => {
    const given = Promise.withResolvers<void>();
    const pieces = [chunk({ content: "a" }), 'data: {"choices":[{"delta":{"con', 'tent":"b'].map((piece) =>
      Buffer.from(piece),
    );
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        if (pieces.length === 1) await given.promise;
        const piece = pieces.shift();
        if (piece === undefined) controller.close();
        else controller.enqueue(piece);
      },
    });
    const fetch = async () => new Response(body);
    const backend = await makeOpenAiBackend({ name: "b", model: "m", baseUrl: "http://x/v1", fetch });
    const events = backend.complete(prompt("x"), new AbortController().signal)[Symbol.asyncIterator]();
    expect((await events.next()).value).toEqual({ type: "text", delta: "a" });
    given.resolve();
    expect((await events.next()).value).toMatchObject({ type: "failure", failure: { class: "network" } });
  });

  test("an empty finish reason is none", async () => {
    const { backend } = await serve((response) => {
      sendStream(response, chunk({ content: "a" }, ""));
      response.end();
    });
    expect(failureOf(await hear(backend, prompt("x"))).class).toBe("network");
  });

  test("an error inside the stream ends the call at once, even if the stream goes on", async () => {
    const { backend, endpoint } = await serve((response) => {
      const error = { message: "overloaded", type: "overloaded_error", code: 529 };
      sendStream(response, chunk({ content: "par" }), `data: ${JSON.stringify({ error })}\n\n`);
    });
    const heard = await hear(backend, prompt("x"));
    expect(failureOf(heard)).toMatchObject({ class: "overloaded", status: 529 });
    expect(heard.text).toBe("par");
    await endpoint.clientGone;
  });

  test("a connection that breaks in the middle is a network failure", async () => {
    const { backend } = await serve(async (response) => {
      sendStream(response, chunk({ content: "a" }));
      await once(response, "drain").catch(() => {});
    });
    const stop = new AbortController();
    const events = backend.complete(prompt("x"), stop.signal)[Symbol.asyncIterator]();
    expect((await events.next()).value).toEqual({ type: "text", delta: "a" });
    const next = events.next();
    await endpoint?.stop();
    expect((await next).value).toMatchObject({ type: "failure", failure: { class: "network" } });
    expect((await events.next()).done).toBe(true);
  });
});

group("the end of an answer", () => {
  test("a server that keeps the connection open after [DONE] does not hold the answer up, and nothing after it counts", async () => {
    const { backend } = await serve((response) => {
      sendStream(response, chunk({ content: "a" }, "stop"), DONE, chunk({ content: "b" }));
    });
    const heard = await hear(backend, prompt("x"));
    expect(heard).toMatchObject({ text: "a", end: { type: "finish", reason: "stop" } });
  });

  test("[DONE] and characters are found when the network cuts them in pieces", async () => {
    const bytes = Buffer.from(chunk({ content: "grün 😀" }) + chunk({}, "stop") + DONE + chunk({ content: "b" }));
    const backend = await overBody(Array.from(bytes, (byte) => Uint8Array.of(byte)));
    expect(await hear(backend, prompt("x"))).toMatchObject({ text: "grün 😀", end: { type: "finish" } });
  });

  test("a text that speaks of [DONE] ends nothing", async () => {
    const content = "write data: [DONE]\ndata: [DONE]\n\n at the end";
    const { backend } = await serve((response) => {
      sendStream(response, chunk({ content }), chunk({}, "stop"), DONE);
      response.end();
    });
    expect((await hear(backend, prompt("x"))).text).toBe(content);
  });

  test("the last bytes after [DONE] are taken, so that the connection can serve the next call", async () => {
    const ended = Promise.withResolvers<string>();
    const pieces = [chunk({ content: "a" }, "stop"), DONE, ": bye\n\n"].map((piece) => Buffer.from(piece));
    const backend = await overBody(pieces, ended.resolve);
    expect((await hear(backend, prompt("x"))).end.type).toBe("finish");
    expect(await ended.promise).toBe("read to the end");
  });

  test.each([
    ["stop with tool calls, as Ollama says it", "stop", "{}", { type: "finish", reason: "tool-calls" }],
    [
      "tool_calls with a malformed input, passed on as text",
      "tool_calls",
      '{"path": oops',
      { type: "finish", reason: "tool-calls" },
    ],
    ["length inside a tool call", "length", '{"path":"a', { type: "failure", failure: { class: "invalid" } }],
    ["an unknown reason with tool calls", "whatever", "{}", { type: "failure", failure: { class: "server" } }],
    ["content_filter", "content_filter", "{}", { type: "failure", failure: { class: "refusal" } }],
    ["error", "error", "{}", { type: "failure", failure: { class: "server" } }],
  ])("%s", async (_, reason, input, expected) => {
    const { backend } = await serve((response) => {
      sendStream(response, chunk(callDelta("c1", input)), chunk({}, reason), DONE);
      response.end();
    });
    const heard = await hear(backend, prompt("x", { tools }));
    expect(heard.end).toMatchObject(expected);
    expect(heard.calls).toEqual(expected.type === "finish" ? [{ id: "c1", name: "read", input }] : []);
  });

  test("at the output limit the calls that are whole are given, the one that is cut is not", async () => {
    const { backend } = await serve((response) => {
      sendStream(response, chunk(callDelta("c1", "{}")), chunk(callDelta("c2", '{"pa', 1)), chunk({}, "length"), DONE);
      response.end();
    });
    const heard = await hear(backend, prompt("x", { tools }));
    expect(heard.end).toMatchObject({ type: "finish", reason: "length" });
    expect(heard.calls.map((call) => call.id)).toEqual(["c1"]);
  });

  test("an unknown reason ends a text, and so does a refusal that the model wrote", async () => {
    const { backend } = await serve((response, { body }) => {
      const refusal = JSON.stringify(body["messages"]).includes("refuse");
      sendStream(response, refusal ? chunk({ refusal: "I will not." }, "stop") : chunk({ content: "a" }, "eos"), DONE);
      response.end();
    });
    expect(await hear(backend, prompt("x"))).toMatchObject({ text: "a", end: { reason: "stop" } });
    expect(await hear(backend, prompt("refuse"))).toMatchObject({ text: "I will not.", end: { reason: "stop" } });
  });

  test("without reported usage it is estimated, so that no budget is switched off", async () => {
    const { backend } = await serve((response) => {
      sendStream(response, chunk({ content: "12345678" }, "stop"), DONE);
      response.end();
    });
    const { end } = await hear(backend, prompt("y".repeat(4_000)));
    expect(end).toMatchObject({ type: "finish", usage: { outputTokens: 2 } });
    expect(end.type === "finish" && end.usage.inputTokens).toBeGreaterThanOrEqual(1_000);
  });

  test("a long tool input gives signs of life while it is written", async () => {
    const { backend } = await serve((response) => {
      sendStream(
        response,
        chunk(callDelta("c1", '{"a":')),
        chunk({ tool_calls: [{ index: 0, function: { arguments: "1" } }] }),
      );
    });
    const stop = new AbortController();
    const events = backend.complete(prompt("x", { tools }), stop.signal)[Symbol.asyncIterator]();
    expect((await events.next()).value).toEqual({ type: "reasoning", delta: "" });
    expect((await events.next()).value).toEqual({ type: "reasoning", delta: "" });
    stop.abort();
    expect((await events.next()).value).toMatchObject({ type: "failure", failure: { class: "aborted" } });
  });
});

group("too much (fault: the backend sends 10 MB)", () => {
  const filler = "x".repeat(100_000);

  async function flood(response: ServerResponse, piece: string): Promise<void> {
    response.writeHead(200, { "content-type": "text/event-stream" });
    await pipeline(function* () {
      for (;;) yield piece;
    }, response);
  }

  test.each([
    ["text", chunk({ content: filler })],
    ["reasoning", chunk({ reasoning_content: filler })],
    ["a tool input", chunk({ tool_calls: [{ index: 0, id: "c1", function: { name: "read", arguments: filler } }] })],
    ["one line", filler],
    ["a web page", `<p>${filler}</p>\n`],
    ["comments", `: ${filler}\n\n`],
    ["empty events", `data: {"choices":[],"pad":"${filler}"}\n\n`],
  ])("an endless answer of %s is given up and its connection closed", async (_, piece) => {
    const { backend, endpoint } = await serve((response) => flood(response, piece));
    const failure = failureOf(await hear(backend, prompt("x", { tools })));
    expect(failure.class).toBe("invalid");
    expect(failure.message).toContain("10 MB");
    await endpoint.clientGone;
  });
});

group("abort", () => {
  /** Aborts once the server has the request, and reads on to the end. */
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
    ["during the answer", (response: ServerResponse) => sendStream(response, chunk({ content: "a" }))],
    ["inside an event", (response: ServerResponse) => sendStream(response, 'data: {"choices":[')],
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
    const deaf = () => {
      asked.resolve();
      return new Promise<Response>(() => {});
    };
    const backend = await makeOpenAiBackend({ name: "deaf", model: "m", baseUrl: "http://x/v1", fetch: deaf });
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
    const backend = await makeOpenAiBackend({
      name: "deaf",
      model: "m",
      baseUrl: "http://x/v1",
      fetch: async () => new Response(body),
    });
    expect(await abortAt(pulled.promise, backend)).toBe("aborted");
  });

  test("before the call makes no request", async () => {
    const { backend, endpoint } = await serve(() => {});
    expect(failureOf(await hear(backend, prompt("x"), AbortSignal.abort())).class).toBe("aborted");
    expect(endpoint.seen).toEqual([]);
  });

  test("wins over a finish that has arrived but was not given yet", async () => {
    const { backend } = await serve((response) => {
      sendStream(response, chunk({ content: "a" }), chunk(callDelta("c1", "{}"), "tool_calls"), DONE);
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
    const { backend, endpoint } = await serve((response) => sendStream(response, chunk({ content: "a" })));
    for await (const event of backend.complete(prompt("x"), new AbortController().signal)) {
      expect(event.type).toBe("text");
      break;
    }
    await endpoint.clientGone;
  });
});

group("the request", () => {
  const answer = (response: ServerResponse) => {
    sendStream(response, chunk({ content: "ok" }, "stop"), DONE);
    response.end();
  };

  test("carries the history, the tools and the wishes in OpenAI's form", async () => {
    const { backend, endpoint } = await serve(answer, {
      apiKey: "k-1234",
      maxOutputTokens: 50,
      headers: { "x-team": "blue" },
    });
    const messages: ModelMessage[] = [
      { role: "system", text: "Be brief." },
      { role: "user", text: "look" },
      { role: "assistant", text: "Looking.", calls: [{ id: "c1", name: "read", input: '{"path":"a"}' }] },
      { role: "tool", callId: "c1", name: "read", text: "content", isError: false },
    ];
    const schema = { type: "object", properties: { path: { type: "string" } } };
    await hear(backend, {
      messages,
      tools: [{ name: "read", description: "Reads.", schema }],
      sampling: {
        temperature: 0.2,
        topP: 0.9,
        stop: ["END"],
        seed: 7,
        presencePenalty: 0.1,
        frequencyPenalty: 0.3,
        toolChoice: { tool: "read" },
        responseFormat: { type: "json", name: "thing", schema },
      },
    });
    expect(endpoint.seen[0]?.path).toBe("/v1/chat/completions");
    expect(endpoint.seen[0]?.headers).toMatchObject({ authorization: "Bearer k-1234", "x-team": "blue" });
    expect(endpoint.seen[0]?.body).toEqual({
      model: "m1",
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 50,
      temperature: 0.2,
      top_p: 0.9,
      stop: ["END"],
      seed: 7,
      presence_penalty: 0.1,
      frequency_penalty: 0.3,
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "look" },
        {
          role: "assistant",
          content: "Looking.",
          tool_calls: [{ id: "c1", type: "function", function: { name: "read", arguments: '{"path":"a"}' } }],
        },
        { role: "tool", tool_call_id: "c1", content: "content" },
      ],
      tools: [{ type: "function", function: { name: "read", description: "Reads.", parameters: schema } }],
      tool_choice: { type: "function", function: { name: "read" } },
      response_format: { type: "json_schema", json_schema: { name: "thing", strict: false, schema } },
    });
  });

  test("carries images before the text that speaks of them, for a model that sees", async () => {
    const { backend, endpoint } = await serve(answer, { vision: true });
    const images = [{ file: "2026/cat.png", mediaType: "image/png" }];
    const readImage = async () => Buffer.from("PNG");
    await hear(backend, prompt("", { messages: [{ role: "user", text: "what is it?", images }], readImage }));
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${btoa("PNG")}` } };
    const sent = { role: "user", content: [image, { type: "text", text: "what is it?" }] };
    expect(endpoint.seen[0]?.body["messages"]).toEqual([sent]);
  });

  test("tells a model that does not see of the image, as a text", async () => {
    const { backend, endpoint } = await serve(answer);
    const images = [{ file: "2026/cat.png", mediaType: "image/png" }];
    await hear(backend, prompt("", { messages: [{ role: "user", text: "look", images }] }));
    const content = "look\n[image cat.png: this model cannot see images]";
    expect(endpoint.seen[0]?.body["messages"]).toEqual([{ role: "user", content }]);
  });

  test("an image counts as what it costs where usage is estimated, not as its bytes", async () => {
    const { backend } = await serve(answer, { vision: true });
    const images = [{ file: "a.png", mediaType: "image/png" }];
    const readImage = async () => Buffer.alloc(1_000_000, 1);
    const { end } = await hear(backend, prompt("", { messages: [{ role: "user", text: "x", images }], readImage }));
    expect(end.type === "finish" && end.usage.inputTokens).toBeGreaterThanOrEqual(1_600);
    expect(end.type === "finish" && end.usage.inputTokens).toBeLessThan(2_000);
  });

  test("leaves out what nobody asked for", async () => {
    const { backend, endpoint } = await serve(answer);
    await hear(backend, prompt("hi"));
    expect(endpoint.seen[0]?.body).toEqual({
      model: "m1",
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: "user", content: "hi" }],
    });
    expect(endpoint.seen[0]?.headers.authorization).toBeUndefined();
  });

  test("a broken history is sent in a form that servers take, whatever the model once wrote as input", async () => {
    const { backend, endpoint } = await serve(answer);
    // Deep enough that it can be read and not written again.
    const nested = `${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`;
    const inputs = ["", "{oops", '"text"', "[1]", '{"__proto__":{"a":1}}', nested];
    const calls = inputs.map((input, index) => ({ id: `c${index}`, name: "read", input }));
    await hear(
      backend,
      prompt("x", {
        messages: [
          { role: "assistant", text: "", calls },
          { role: "user", text: "go on" },
        ],
      }),
    );
    const sent = JSON.stringify(endpoint.seen[0]?.body["messages"]);
    const [assistant] = JSON.parse(sent);
    const sentInputs = assistant.tool_calls.map((call: { function: { arguments: string } }) => call.function.arguments);
    expect(sentInputs).toEqual([
      "{}",
      '{"unreadable":"{oops"}',
      '{"unreadable":"\\"text\\""}',
      '{"unreadable":"[1]"}',
      '{"__proto__":{"a":1}}',
      JSON.stringify({ unreadable: nested }),
    ]);
    expect(sent.match(/"role":"tool"/g)).toHaveLength(inputs.length);
  });

  test("OpenAI itself is told the output limit by the name that its newer models take", async () => {
    const bodies: string[] = [];
    const backend = await makeOpenAiBackend({
      name: "o",
      model: "m",
      baseUrl: "https://api.openai.com/v1",
      maxOutputTokens: 9,
      fetch: async (_, init) => {
        bodies.push(String(init?.body));
        return new Response(chunk({ content: "ok" }, "stop") + DONE);
      },
    });
    expect((await hear(backend, prompt("x"))).end.type).toBe("finish");
    expect(JSON.parse(bodies[0] ?? "")).toMatchObject({ max_completion_tokens: 9 });
    expect(bodies[0]).not.toContain("max_tokens");
  });

  test("one that cannot be made is a failure and no throw", async () => {
    const backend = await makeOpenAiBackend({ name: "o", model: "m", baseUrl: "nonsense" });
    expect(failureOf(await hear(backend, prompt("x"))).class).toBe("invalid");
  });
});
