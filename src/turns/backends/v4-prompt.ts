// Owns: from our request to the call options of the AI SDK's model interface. Pure; knows no endpoint.
import type { LanguageModelV4CallOptions, LanguageModelV4FunctionTool, LanguageModelV4Message } from "@ai-sdk/provider";
import type { ShownMessage } from "./images.ts";
import type { ModelRequest, Sampling, ToolSpec } from "./port.ts";

/** @param maxOutputTokens holds where the request states none */
export function v4Options(
  { sampling, tools }: Pick<ModelRequest, "sampling" | "tools">,
  messages: readonly ShownMessage[],
  maxOutputTokens: number | undefined,
): LanguageModelV4CallOptions {
  return {
    prompt: messages.map(v4Message),
    ...(tools.length > 0 && { tools: tools.map(v4Tool) }),
    ...withoutAbsent({
      maxOutputTokens: sampling.maxOutputTokens ?? maxOutputTokens,
      temperature: sampling.temperature,
      topP: sampling.topP,
      seed: sampling.seed,
      presencePenalty: sampling.presencePenalty,
      frequencyPenalty: sampling.frequencyPenalty,
      stopSequences: sampling.stop === undefined || sampling.stop.length === 0 ? undefined : [...sampling.stop],
      toolChoice: v4ToolChoice(sampling.toolChoice),
      responseFormat: sampling.responseFormat && { ...sampling.responseFormat },
    }),
  };
}

/** The same object without its absent values: the interface tells absent from undefined. */
function withoutAbsent<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> };
function withoutAbsent(values: object): object {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

function v4Message(message: ShownMessage): LanguageModelV4Message {
  switch (message.role) {
    case "system":
      return { role: "system", content: message.text };
    case "user":
      return { role: "user", content: userContent(message) };
    case "assistant":
      return {
        role: "assistant",
        content: [
          ...(message.text === "" ? [] : [{ type: "text" as const, text: message.text }]),
          ...message.calls.map((call) => ({
            type: "tool-call" as const,
            toolCallId: call.id,
            toolName: call.name,
            input: inputObject(call.input),
          })),
        ],
      };
    case "tool":
      return {
        role: "tool",
        content: [
          {
            type: "tool-result",
            toolCallId: message.callId,
            toolName: message.name,
            output: { type: message.isError ? "error-text" : "text", value: message.text },
          },
        ],
      };
    default:
      return message satisfies never;
  }
}

type User = Extract<ShownMessage, { role: "user" }>;

/** Images before the text that speaks of them. A message always has a part; one of images needs no text. */
function userContent({ text, images }: User): Extract<LanguageModelV4Message, { role: "user" }>["content"] {
  const files = images.map(({ mediaType, data }) => ({
    type: "file" as const,
    mediaType,
    data: { type: "data" as const, data },
  }));
  return files.length > 0 && text.trim() === "" ? files : [...files, { type: "text", text }];
}

/**
 * The input of an earlier call as an object, whatever the model once wrote: servers that read it (Ollama, vLLM)
 * refuse a request whose history holds anything else, and would then refuse this session for ever.
 */
function inputObject(json: string): object {
  if (json.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value === "object" && value !== null && !Array.isArray(value) && isShallow(value)) return value;
  } catch {
    // Told below.
  }
  return { unreadable: json };
}

/** No tool of any host is nested like this, and what is nested a thousandfold can be read but not written again. */
const MAX_DEPTH = 100;

function isShallow(value: unknown, levels = MAX_DEPTH): boolean {
  if (typeof value !== "object" || value === null) return true;
  return levels > 0 && Object.values(value).every((inner) => isShallow(inner, levels - 1));
}

function v4Tool(tool: ToolSpec): LanguageModelV4FunctionTool {
  return { type: "function", name: tool.name, description: tool.description, inputSchema: { ...tool.schema } };
}

function v4ToolChoice(choice: Sampling["toolChoice"]): LanguageModelV4CallOptions["toolChoice"] {
  if (choice === undefined) return undefined;
  return typeof choice === "string" ? { type: choice } : { type: "tool", toolName: choice.tool };
}
