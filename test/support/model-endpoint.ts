// Owns: a hand-written model endpoint for what no well-behaved server does, the events of both wires, and reading a backend's events to their end.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { Backend, BackendEvent, BackendFailure, ModelRequest } from "../../src/turns/backends/port.ts";

export interface SeenRequest {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, unknown>;
}

export interface ModelEndpoint {
  readonly baseUrl: string;
  readonly seen: readonly SeenRequest[];
  /** Connections made so far. */
  connections(): number;
  /** Resolves when the client has closed the connection of an answer that had not ended. */
  readonly clientGone: Promise<void>;
  stop(): Promise<void>;
}

/** Answers each request with `answer`; what that throws breaks the connection. */
export async function startModelEndpoint(
  answer: (response: ServerResponse, request: SeenRequest) => void | Promise<void>,
): Promise<ModelEndpoint> {
  const seen: SeenRequest[] = [];
  const gone = Promise.withResolvers<void>();
  let connections = 0;
  const server = createServer(async (incoming, response) => {
    response.on("close", () => response.writableEnded || gone.resolve());
    try {
      const body: Record<string, unknown> = JSON.parse(await text(incoming));
      const request = { path: incoming.url ?? "", headers: incoming.headers, body };
      seen.push(request);
      await answer(response, request);
    } catch {
      response.destroy();
    }
  });
  server.on("connection", () => connections++);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    seen,
    connections: () => connections,
    clientGone: gone.promise,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** One event of OpenAI's stream. */
export function chunk(delta: object, finishReason: string | null = null): string {
  return `data: ${JSON.stringify({ id: "1", choices: [{ index: 0, delta, finish_reason: finishReason }] })}\n\n`;
}

export const DONE = "data: [DONE]\n\n";

/** One event of the Messages API's stream. */
export function messageEvent(type: string, fields: object = {}): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

export const MESSAGE_START = messageEvent("message_start", {
  message: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    content: [],
    model: "m1",
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 11, output_tokens: 1 },
  },
});

/** A block of text, in the pieces given. */
export function textBlock(index: number, ...pieces: string[]): string {
  return block(
    index,
    { type: "text", text: "" },
    pieces.map((text) => ({ type: "text_delta", text })),
  );
}

/** A tool call whose input comes in the pieces given. */
export function toolBlock(index: number, id: string, ...pieces: string[]): string {
  return block(
    index,
    { type: "tool_use", id, name: "read", input: {} },
    pieces.map((piece) => ({ type: "input_json_delta", partial_json: piece })),
  );
}

function block(index: number, start: object, deltas: readonly object[]): string {
  return [
    messageEvent("content_block_start", { index, content_block: start }),
    ...deltas.map((delta) => messageEvent("content_block_delta", { index, delta })),
    messageEvent("content_block_stop", { index }),
  ].join("");
}

/** The last but one event: the reason, without the end. */
export function messageDelta(reason: string | null): string {
  return messageEvent("message_delta", {
    delta: { stop_reason: reason, stop_sequence: null },
    usage: { output_tokens: 7 },
  });
}

export const MESSAGE_STOP = messageEvent("message_stop");

export function sendStream(response: ServerResponse, ...pieces: (string | Uint8Array)[]): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const piece of pieces) response.write(piece);
}

export function prompt(words: string, over: Partial<ModelRequest> = {}): ModelRequest {
  return { messages: [{ role: "user", text: words }], tools: [], sampling: {}, ...over };
}

export interface Heard {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { id: string; name: string; input: string }[];
  readonly end: Extract<BackendEvent, { type: "finish" | "failure" }>;
}

/** Reads a call to its end and checks the contract: exactly one finish or failure, and nothing behind it. */
export async function hear(backend: Backend, request: ModelRequest, signal?: AbortSignal): Promise<Heard> {
  const events: BackendEvent[] = [];
  for await (const event of backend.complete(request, signal ?? new AbortController().signal)) events.push(event);
  const end = events.at(-1);
  const ends = events.filter((event) => event.type === "finish" || event.type === "failure");
  if (ends.length !== 1 || (end?.type !== "finish" && end?.type !== "failure")) {
    throw new Error(`expected one end, at the end: ${JSON.stringify(events.slice(-5))}`);
  }
  return {
    text: events.map((event) => (event.type === "text" ? event.delta : "")).join(""),
    reasoning: events.map((event) => (event.type === "reasoning" ? event.delta : "")).join(""),
    calls: events.flatMap((event) => (event.type === "tool-call" ? [event.call] : [])),
    end,
  };
}

/** The failure of a call that must fail. */
export function failureOf(heard: Heard): BackendFailure {
  if (heard.end.type !== "failure") throw new Error(`expected a failure, got ${JSON.stringify(heard.end)}`);
  return heard.end.failure;
}
