// Owns: the form of a history that the Messages API takes, where it is stricter than other endpoints. Pure.
// A history may come from another backend after a failover, so nothing in it can be relied on.
import { mendHistory } from "./history.ts";
import type { ModelMessage, ToolCall } from "./port.ts";

/** Stands where a conversation would begin with an answer: the API wants a person's message first. */
const BEGINNING = "[The beginning of this conversation is not shown.]";
/** A failed result without a text is refused. */
const NO_TEXT = "[no text]";
const CALL_ID = /^[A-Za-z0-9_-]{1,64}$/;
const MAX_NAME_CHARS = 64;

/**
 * Mends the history, and moreover:
 * - all system messages become the one at the start, as Anthropic does in its own OpenAI-compatible endpoint;
 * - texts of nothing but white space go, and with them messages that hold nothing else;
 * - ids of calls are unique and of allowed characters, and so are names of tools.
 */
export function arrangeForAnthropic(messages: readonly ModelMessage[]): ModelMessage[] {
  const filled = messages.map(withoutBlankText).filter((message) => !isEmpty(message));
  const isSystem = (message: ModelMessage) => message.role === "system";
  const mended = mendHistory([...filled.filter(isSystem), ...filled.filter((message) => !isSystem(message))]);
  return beginWithPerson(renamed(mended));
}

function withoutBlankText(message: ModelMessage): ModelMessage {
  if (message.text.trim() !== "") return message;
  return { ...message, text: message.role === "tool" ? NO_TEXT : "" };
}

function isEmpty(message: ModelMessage): boolean {
  if (message.text !== "") return false;
  switch (message.role) {
    case "user":
      return (message.images ?? []).length === 0;
    case "assistant":
      return message.calls.length === 0;
    default:
      return true;
  }
}

/** In a mended history the results stand right behind their calls and in their order. */
function renamed(messages: readonly ModelMessage[]): ModelMessage[] {
  const used = new Set<string>();
  let waiting: readonly ToolCall[] = [];
  return messages.map((message): ModelMessage => {
    if (message.role === "assistant") {
      waiting = message.calls.map((call) => ({ ...call, id: freeId(call.id, used), name: toolName(call.name) }));
      return { ...message, calls: waiting };
    }
    if (message.role !== "tool") return message;
    const [call, ...others] = waiting;
    waiting = others;
    return call === undefined ? message : { ...message, callId: call.id, name: call.name };
  });
}

function freeId(id: string, used: Set<string>): string {
  let free = id;
  for (let n = used.size + 1; !CALL_ID.test(free) || used.has(free); n += 1) free = `call_${n}`;
  used.add(free);
  return free;
}

function toolName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, MAX_NAME_CHARS) || "_";
}

function beginWithPerson(messages: readonly ModelMessage[]): ModelMessage[] {
  const first = messages.findIndex((message) => message.role !== "system");
  if (messages[first]?.role === "user") return [...messages];
  const at = first === -1 ? messages.length : first;
  return [...messages.slice(0, at), { role: "user", text: BEGINNING }, ...messages.slice(at)];
}
