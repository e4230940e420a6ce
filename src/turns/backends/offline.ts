// Owns: the backend that is there when no model is. It understands nothing and says so; the same request always gives
// the same answer. With `read PATH` and `list [PATH]` a person can see that lanes, tools and delivery work.
import { textOfUnseen } from "./images.ts";
import type { Backend, BackendEvent, ModelMessage, ModelRequest, ToolCall } from "./port.ts";

/** As many deltas as show that an answer streams. */
const DELTAS = 4;
const MAX_QUOTE_CHARS = 200;
const COMMAND = /^(read|list)(?:[ \t]+(\S.*?))?\s*$/;
/** What marks a call as ours when its result comes back. */
const CALL_ID = "offline-";

export function makeOfflineBackend({ name }: { readonly name: string }): Backend {
  return { name, kind: "offline", model: "none", journal: "steps", complete };
}

async function* complete(request: ModelRequest, signal: AbortSignal): AsyncGenerator<BackendEvent, void> {
  for (const event of answerTo(request)) {
    if (signal.aborted) {
      yield { type: "failure", failure: { class: "aborted", message: "the call was stopped" } };
      return;
    }
    yield event;
  }
}

function answerTo(request: ModelRequest): BackendEvent[] {
  const call = wantedCall(request);
  if (call !== undefined) return [{ type: "tool-call", call }, finish("tool-calls")];
  const deltas = inPieces(textFor(request)).map((delta) => ({ type: "text" as const, delta }));
  return [...deltas, finish("stop")];
}

/** No model, no tokens. */
function finish(reason: "stop" | "tool-calls"): BackendEvent {
  return { type: "finish", reason, usage: { inputTokens: 0, outputTokens: 0 } };
}

function wantedCall({ messages, tools, sampling }: ModelRequest): ToolCall | undefined {
  const last = messages.at(-1);
  if (last?.role !== "user" || sampling.toolChoice === "none") return undefined;
  const [, tool, path] = COMMAND.exec(last.text.split("\n", 1)[0] ?? "") ?? [];
  if (tool === undefined || (tool === "read" && path === undefined)) return undefined;
  if (!tools.some((one) => one.name === tool)) return undefined;
  return { id: `${CALL_ID}${messages.length}`, name: tool, input: JSON.stringify({ path: path ?? "." }) };
}

function textFor({ messages, tools }: ModelRequest): string {
  const last = messages.at(-1);
  if (last?.role === "tool" && last.callId.startsWith(CALL_ID)) return resultText(last);
  const asked = messages.findLast((message) => message.role === "user");
  const said = asked === undefined ? "" : textOfUnseen(asked);
  return [
    "No model is connected: this is Laneway's offline backend, which understands nothing and only repeats.",
    said === "" ? "You wrote nothing." : `You wrote: ${quote(said)}`,
    "To connect a model, set OPENAI_API_KEY or ANTHROPIC_API_KEY, or run Ollama on this machine, or name one under `backends:` in laneway.yaml; then restart.",
    commandsText(new Set(tools.map((tool) => tool.name))),
  ].join("\n\n");
}

function commandsText(tools: ReadonlySet<string>): string {
  const known = [
    ...(tools.has("read") ? ["`read PATH` shows a file of the workspace"] : []),
    ...(tools.has("list") ? ["`list [PATH]` shows a folder of it"] : []),
  ];
  if (known.length === 0)
    return "`read PATH` and `list [PATH]` would work without a model, but this agent has neither tool.";
  return `What works without a model: ${known.join(", ")}.`;
}

function resultText(result: Extract<ModelMessage, { role: "tool" }>): string {
  const longest = Math.max(2, ...Array.from(result.text.matchAll(/`+/g), ([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  const head = result.isError ? `\`${result.name}\` failed:` : `\`${result.name}\` gave:`;
  return `${head}\n\n${fence}\n${result.text.replace(/\n$/, "")}\n${fence}`;
}

function quote(said: string): string {
  const chars = Array.from(said.replace(/\s+/g, " ").trim());
  return chars.length <= MAX_QUOTE_CHARS ? chars.join("") : `${chars.slice(0, MAX_QUOTE_CHARS).join("")}…`;
}

/** A few pieces of about equal length; none ends inside a character. */
function inPieces(text: string): string[] {
  const size = Math.ceil(text.length / DELTAS);
  const pieces: string[] = [];
  for (let from = 0; from < text.length; ) {
    const end = from + size;
    const splitsPair = /^[\uDC00-\uDFFF]/.test(text.charAt(end));
    const to = splitsPair ? end + 1 : end;
    pieces.push(text.slice(from, to));
    from = to;
  }
  return pieces;
}
