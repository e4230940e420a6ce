// Owns: what the end of an answer means: a finish of the model, or a failure that only looks like one. Pure.
import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { BackendEvent, ErrorClass, ToolCall, Usage } from "./port.ts";

type FinishPart = Extract<LanguageModelV4StreamPart, { type: "finish" }>;
type Finish = Extract<BackendEvent, { type: "finish" }>;

/** A finish with the calls that may be run, or why it is none. */
export type End =
  | { readonly finish: Finish; readonly calls: readonly ToolCall[] }
  | { readonly class: ErrorClass; readonly message: string };

/** What the answer held before its last part. */
export interface Seen {
  readonly calls: readonly ToolCall[];
  readonly chars: number;
  readonly options: LanguageModelV4CallOptions;
}

/** Reasons with which servers say that the answer is not whole. */
const BAD_REASONS: ReadonlyMap<string, ErrorClass> = new Map<string, ErrorClass>([
  ["error", "server"],
  ["abort", "server"],
  ["aborted", "server"],
  ["cancelled", "server"],
  ["network_error", "server"],
  ["timeout", "timeout"],
  ["insufficient_system_resource", "overloaded"],
  ["model_context_window_exceeded", "context-overflow"],
  ["content_filter", "refusal"],
  ["refusal", "refusal"],
  ["safety", "refusal"],
  ["sensitive", "refusal"],
]);

/** A missing or empty reason is a cut: class `network`. */
export function endOf(part: FinishPart, seen: Seen): End {
  const { unified, raw } = part.finishReason;
  if (raw === undefined || raw === "") return { class: "network", message: "the answer was cut off" };
  const bad = BAD_REASONS.get(raw.toLowerCase());
  if (bad !== undefined) return { class: bad, message: `the server ended the answer with "${raw}"` };
  const usage = usageOf(part, seen);
  if (seen.calls.length === 0) {
    return { finish: { type: "finish", reason: unified === "length" ? "length" : "stop", usage }, calls: [] };
  }
  if (unified === "length") return truncated(seen.calls, usage);
  // Ollama and Google end a call of tools with "stop".
  if (unified === "tool-calls" || raw.toLowerCase() === "stop") {
    return { finish: { type: "finish", reason: "tool-calls", usage }, calls: seen.calls };
  }
  // Tools run only after a reason that is known to be no error; an answer of text may end with any word.
  return { class: "server", message: `the server ended a tool call with "${raw}", which is no known reason` };
}

/** At the output limit the last call is cut somewhere. A prefix of a JSON object is never one itself, so whole calls can be told. */
function truncated(calls: readonly ToolCall[], usage: Usage): End {
  const whole = calls.filter((call) => isJsonObject(call.input));
  if (whole.length > 0) return { finish: { type: "finish", reason: "length", usage }, calls: whole };
  return { class: "invalid", message: "the answer reached its limit inside a tool call; raise maxOutputTokens" };
}

function isJsonObject(json: string): boolean {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null;
  } catch {
    return false;
  }
}

/** Rule of thumb for English text and JSON; used only where a server reports no usage. */
const CHARS_PER_TOKEN = 4;
/** Anthropic's figure for the largest image, 1600 tokens. */
const CHARS_PER_IMAGE = 6_400;

/**
 * Usage as reported, else estimated: counted as nothing it would switch off every budget. No request has no tokens, so
 * a zero is no report.
 */
function usageOf(part: FinishPart, seen: Seen): Usage {
  return {
    inputTokens: part.usage.inputTokens.total || estimate(charsIn(seen.options)),
    outputTokens: part.usage.outputTokens.total || estimate(seen.chars),
  };
}

function estimate(chars: number): number {
  return Math.ceil(chars / CHARS_PER_TOKEN);
}

function charsIn({ prompt, tools }: LanguageModelV4CallOptions): number {
  let images = 0;
  const written = JSON.stringify(prompt, (_, value: unknown) => {
    if (!(value instanceof Uint8Array)) return value;
    images += 1;
    return "";
  });
  return written.length + images * CHARS_PER_IMAGE + (tools === undefined ? 0 : JSON.stringify(tools).length);
}
