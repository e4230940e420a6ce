// Owns: one streamed call at the AI SDK's model interface (`doStream`), turned into events by the port's contract.
// It never retries, and it trusts neither the stream to end nor the provider to notice an abort.
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { Aborted } from "../../kernel/errors.ts";
import { classifyFailure, describe, type Endpoint } from "./classify.ts";
import { endOf } from "./finish.ts";
import type { BackendEvent, BackendFailure, ToolCall } from "./port.ts";
import type { Wire } from "./wire.ts";

/** An answer of this size is a runaway: it fails, whatever it says (fault "backend sends 10 MB"). */
const MAX_ANSWER_CHARS = 10_000_000;

export interface V4Call {
  readonly model: LanguageModelV4;
  /** Made when the call runs, so that whatever it throws is a failure of the call. */
  readonly options: (signal: AbortSignal) => Promise<LanguageModelV4CallOptions>;
  readonly endpoint: Endpoint;
  /** Makes the wire that watches the body of the call with this signal. */
  readonly wireOf: (signal: AbortSignal) => Wire;
}

/** Runs the call. Never throws; ends with exactly one `finish` or `failure` (the contract of `Backend.complete`). */
export async function* streamCall(call: V4Call, signal: AbortSignal): AsyncGenerator<BackendEvent, void> {
  const own = new AbortController();
  const interruption = interruptible(signal, () => own.abort(signal.reason));
  const wire = call.wireOf(own.signal);
  let reader: ReadableStreamDefaultReader<LanguageModelV4StreamPart> | undefined;
  let finished = false;
  try {
    const options = await interruption.race(() => call.options(own.signal));
    const { stream } = await interruption.race(() => call.model.doStream({ ...options, abortSignal: own.signal }));
    const open = stream.getReader();
    reader = open;
    const answer = makeAnswer(options, call.endpoint, wire);
    while (!finished) {
      const { done, value } = await interruption.race(() => open.read());
      for (const event of done ? [failed(cut(wire, call.endpoint))] : answer.take(value)) {
        // Between two events the consumer may have aborted: then nothing is a finish any more.
        if (signal.aborted) throw new Aborted(signal.reason);
        finished = event.type === "finish";
        yield event;
        if (event.type === "failure") return;
      }
    }
  } catch (thrown) {
    yield failed(failureOf(thrown, signal, wire, call.endpoint));
  } finally {
    interruption.stop();
    // Closes the connection unless the answer is complete, also where the provider has failed before it gave a stream.
    if (!finished) own.abort("over");
    // Neither awaited nor reported: the other side may hang in it.
    reader?.cancel().catch(() => {});
  }
}

function failed(failure: BackendFailure): BackendEvent {
  return { type: "failure", failure };
}

function failureOf(thrown: unknown, signal: AbortSignal, wire: Wire, endpoint: Endpoint): BackendFailure {
  if (signal.aborted) return describe("aborted", "the call was stopped", endpoint);
  if (wire.flooded()) return tooLarge(endpoint);
  return isNameless(thrown) && wire.head() !== "" ? notTheProtocol(wire, endpoint) : classifyFailure(thrown, endpoint);
}

/** The provider throws an error that says nothing when the first event of a stream is none of its protocol. */
function isNameless(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === "Error" && thrown.cause === undefined;
}

/** A stream whose first event is unknown: an error in another form, or another protocol. */
function notTheProtocol(wire: Wire, endpoint: Endpoint): BackendFailure {
  const event = parseJson(/^data: ?(.+)$/m.exec(wire.head())?.[1] ?? "");
  if (typeof event === "object" && event !== null && "error" in event) return classifyFailure(event, endpoint);
  return describe("server", "the server answered with something that is no model stream; check baseUrl", endpoint);
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function tooLarge(endpoint: Endpoint): BackendFailure {
  return describe(
    "invalid",
    `the answer of the model ${endpoint.model} was over ${MAX_ANSWER_CHARS / 1e6} MB and was given up`,
    endpoint,
  );
}

/** The stream closed without a finish part. What came instead of a stream, if anything, says why. */
function cut(wire: Wire, endpoint: Endpoint): BackendFailure {
  const head = wire.head().trim();
  if (head === "" || /^(?:data|event|id|retry)?:/m.test(head))
    return describe("network", "the answer was cut off", endpoint);
  const error = parseJson(head);
  if (error !== undefined) return classifyFailure(error, endpoint);
  const what = head.startsWith("<") ? "a web page" : "something that is no model stream";
  return describe("server", `the server answered with ${what}; check baseUrl`, endpoint);
}

interface Answer {
  take(part: LanguageModelV4StreamPart): readonly BackendEvent[];
}

/** A sign of life for the idle timer: a model that writes a long tool input is not silent. */
const STILL_WRITING: BackendEvent = { type: "reasoning", delta: "" };

function makeAnswer(options: LanguageModelV4CallOptions, endpoint: Endpoint, wire: Wire): Answer {
  // Held back until the finish: a cut stream can contain calls that look complete.
  const calls: ToolCall[] = [];
  let chars = 0;

  function grow(delta: string, event: BackendEvent): readonly BackendEvent[] {
    wire.heard();
    chars += delta.length;
    if (chars >= MAX_ANSWER_CHARS) return [failed(tooLarge(endpoint))];
    return delta === "" ? [] : [event];
  }

  function end(part: Extract<LanguageModelV4StreamPart, { type: "finish" }>): readonly BackendEvent[] {
    const how = endOf(part, { calls, chars, options });
    if ("finish" in how) return [...how.calls.map((call) => ({ type: "tool-call" as const, call })), how.finish];
    return [failed(how.class === "network" ? cut(wire, endpoint) : describe(how.class, how.message, endpoint))];
  }

  function take(part: LanguageModelV4StreamPart): readonly BackendEvent[] {
    switch (part.type) {
      case "text-delta":
        return grow(part.delta, { type: "text", delta: part.delta });
      case "reasoning-delta":
        return grow(part.delta, { type: "reasoning", delta: part.delta });
      case "tool-input-delta":
        return grow(part.delta, STILL_WRITING);
      case "tool-call":
        calls.push({ id: part.toolCallId, name: part.toolName, input: part.input });
        return [];
      case "error":
        return [failed(isMissingFinish(part.error) ? cut(wire, endpoint) : classifyFailure(part.error, endpoint))];
      case "finish":
        return end(part);
      case "response-metadata":
        wire.heard();
        return [];
      default:
        return [];
    }
  }

  return { take };
}

/** As an error part, the provider uses this error for one thing only: a stream that closed without a finish reason. */
function isMissingFinish(error: unknown): boolean {
  return error instanceof Error && error.name === "AI_InvalidResponseDataError";
}

interface Interruption {
  /** Starts work and waits for it, but no longer than until the abort; then it rejects with Aborted. */
  race<T>(start: () => PromiseLike<T>): Promise<T>;
  stop(): void;
}

/** One listener a call and one waiter at a time: a race against one long promise would keep every part in memory. */
function interruptible(signal: AbortSignal, onAbort: () => void): Interruption {
  let interrupt = () => {};
  const fire = () => {
    onAbort();
    interrupt();
  };
  signal.addEventListener("abort", fire, { once: true });
  return {
    race<T>(start: () => PromiseLike<T>): Promise<T> {
      return new Promise<T>((resolve, reject) => {
        interrupt = () => reject(new Aborted(signal.reason));
        if (signal.aborted) interrupt();
        else start().then(resolve, reject);
      });
    },
    stop: () => signal.removeEventListener("abort", fire),
  };
}
