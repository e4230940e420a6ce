// Owns: calling the verbs of the running host, each once. Looks the host up for every call, since it may have restarted
// on another port. Never opens the database.
import { z } from "zod";
import { messageOf } from "../../kernel/errors.ts";
import type { Shell } from "../shell.ts";
import { AnswerLost, HostRefused } from "./errors.ts";
import { findHost, findToken } from "./find.ts";
import { readChunks, readText, send } from "./http.ts";
import { type SseEvent, sseEvents } from "./sse.ts";

export interface CallOptions {
  /** How long the answer may take, in ms. */
  readonly limitMs?: number;
  readonly signal?: AbortSignal;
}

export interface Client {
  /**
   * One call of a verb; the answer in the form of `reply`.
   * @throws NotRunning, AnswerLost (it may have had its effect), HostRefused with the host's own message
   */
  call<Reply>(verb: string, input: object, reply: z.ZodType<Reply>, options?: CallOptions): Promise<Reply>;
  /**
   * The events of a chat after row `after`, until the connection ends or the signal aborts. Throws like `call`.
   */
  events(chat: { channel: string; chat: string }, after: number, signal: AbortSignal): AsyncGenerator<SseEvent>;
}

/** Longer than any verb takes on a healthy host. */
const CALL_LIMIT_MS = 30_000;
/** The head of a stream comes at once or not at all; after it the stream may be silent. */
const OPEN_LIMIT_MS = 15_000;

const errorReply = z.object({
  error: z.object({ code: z.string(), message: z.string(), hint: z.string().optional() }),
});

export function makeClient(shell: Pick<Shell, "paths" | "env" | "ids" | "clock">): Client {
  const { clock } = shell;

  async function target(path: string): Promise<{ url: URL; token: string }> {
    const host = findHost(shell);
    return { url: new URL(path, host.address), token: await findToken(shell, host.settings) };
  }

  async function withLimit<T>(ms: number, outer: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>) {
    const limit = new AbortController();
    const stop = clock.after(ms, () => limit.abort(tooSlow(ms)));
    const signal = outer === undefined ? limit.signal : AbortSignal.any([outer, limit.signal]);
    try {
      return await work(signal);
    } finally {
      stop();
    }
  }

  return {
    call: (verb, input, reply, { limitMs = CALL_LIMIT_MS, signal: outer } = {}) =>
      withLimit(limitMs, outer, async (signal) => {
        const { url, token } = await target(`/api/${verb}`);
        const response = await send({ url, method: "POST", token, body: JSON.stringify(input), signal });
        const text = await readText(response, url, signal);
        if (response.statusCode !== 200 && response.statusCode !== 202) throw refusal(response.statusCode ?? 0, text);
        return parseReply(verb, text, reply);
      }),

    async *events(chat, after, signal) {
      const { url, token } = await target("/api/events");
      url.search = new URLSearchParams({ ...chat, after: String(after) }).toString();
      const headers = { accept: "text/event-stream", "last-event-id": String(after) };
      const opening = new AbortController();
      const both = AbortSignal.any([signal, opening.signal]);
      const stop = clock.after(OPEN_LIMIT_MS, () => opening.abort(tooSlow(OPEN_LIMIT_MS)));
      const response = await send({ url, method: "GET", token, headers, signal: both }).finally(stop);
      if (response.statusCode !== 200) throw refusal(response.statusCode ?? 0, await readText(response, url, signal));
      yield* sseEvents(readChunks(response, url, signal));
    },
  };
}

function tooSlow(ms: number): AnswerLost {
  return new AnswerLost(`the host did not answer within ${ms / 1_000} s`, {
    hint: "It may or may not have acted on this. `laneway doctor` looks what is wrong with it.",
  });
}

function refusal(status: number, text: string): HostRefused {
  const parsed = errorReply.safeParse(jsonOr(text));
  const error = parsed.success
    ? parsed.data.error
    : { code: "unknown", message: `the host answered with status ${status}` };
  if (status !== 401) return new HostRefused(status, error);
  const hint = "Set LANEWAY_TOKEN to the token that the host was started with.";
  return new HostRefused(status, { ...error, message: "the host does not accept this token", hint });
}

function parseReply<Reply>(verb: string, text: string, reply: z.ZodType<Reply>): Reply {
  const parsed = reply.safeParse(jsonOr(text));
  if (parsed.success) return parsed.data;
  throw new HostRefused(200, {
    code: "unexpected_reply",
    message: `the host's answer to ${verb} has another form than expected: ${messageOf(z.prettifyError(parsed.error))}`,
    hint: "Host and command line seem to be of different versions: restart the host.",
  });
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
