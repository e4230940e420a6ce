// Owns: mending a history so that any endpoint takes it: each tool call followed by exactly its result.
// Pure. Histories break when a host dies between a call and its result, or when a message is absorbed in between.
import type { ModelMessage, ToolCall } from "./port.ts";

type Assistant = Extract<ModelMessage, { role: "assistant" }>;
type Result = Extract<ModelMessage, { role: "tool" }>;

/** What the model reads where a result is missing. A call in flight at a crash is never silently repeated. */
const NO_RESULT = "The result of this call is not known: it may or may not have taken effect.";

/**
 * Gives the same history in an order that endpoints accept:
 * - results directly behind the message that made the calls, in the order of the calls; one that is missing is
 *   replaced by a note; a second one for the same call is dropped;
 * - a result whose call is gone gets its call back, so that the text of a tool never speaks as a person;
 * - system messages at the start become one, because many chat templates allow only one; empty answers are dropped.
 */
export function mendHistory(messages: readonly ModelMessage[]): ModelMessage[] {
  const used = new Set<Result>();
  const mended: ModelMessage[] = [];
  messages.forEach((message, index) => {
    if (message.role === "assistant") {
      if (message.text === "" && message.calls.length === 0) return;
      mended.push(message, ...message.calls.map((call) => takeResult(call, messages, index, used)));
    } else if (message.role !== "tool") {
      mended.push(message);
    } else if (!used.has(message) && !isRepeated(message, messages, index)) {
      used.add(message);
      mended.push(callOf(message), message);
    }
  });
  return joinSystem(mended);
}

/** The first unused result behind the call, up to the next message that makes a call of the same id. */
function takeResult(call: ToolCall, messages: readonly ModelMessage[], from: number, used: Set<Result>): Result {
  for (const message of messages.slice(from + 1)) {
    if (message.role === "assistant" && message.calls.some((other) => other.id === call.id)) break;
    if (message.role === "tool" && message.callId === call.id && !used.has(message)) {
      used.add(message);
      return message;
    }
  }
  return { role: "tool", callId: call.id, name: call.name, text: NO_RESULT, isError: true };
}

function isRepeated(result: Result, messages: readonly ModelMessage[], index: number): boolean {
  return messages.slice(0, index).some((earlier) => {
    if (earlier.role === "tool") return earlier.callId === result.callId;
    return earlier.role === "assistant" && earlier.calls.some((call) => call.id === result.callId);
  });
}

function callOf(result: Result): Assistant {
  return { role: "assistant", text: "", calls: [{ id: result.callId, name: result.name, input: "{}" }] };
}

function joinSystem(messages: readonly ModelMessage[]): ModelMessage[] {
  const firstOther = messages.findIndex((message) => message.role !== "system");
  const count = firstOther === -1 ? messages.length : firstOther;
  const texts = messages.slice(0, count).flatMap((message) => (message.text === "" ? [] : [message.text]));
  const system: ModelMessage[] = texts.length === 0 ? [] : [{ role: "system", text: texts.join("\n\n") }];
  return [...system, ...messages.slice(count)];
}
