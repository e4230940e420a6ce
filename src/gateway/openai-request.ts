// Owns: reading a request of OpenAI's chat completions API (platform.openai.com/docs/api-reference/chat) into what a command
// stores. Fields that change nothing here are ignored; those that would be broken promises are refused.
import { z } from "zod";
import type { Completion } from "../agents/completion.ts";
import { InvalidInput, messageOf } from "../kernel/errors.ts";

const textPart = z.object({
  type: z.enum(["text", "refusal"]),
  text: z.string().optional(),
  refusal: z.string().optional(),
});
const otherPart = z.object({ type: z.string() }).loose();
const content = z.union([z.string(), z.array(z.union([textPart, otherPart])), z.null()]).optional();

const toolCall = z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) });

const message = z.discriminatedUnion("role", [
  z.object({ role: z.literal("system"), content }),
  z.object({ role: z.literal("developer"), content }),
  z.object({ role: z.literal("user"), content }),
  z.object({ role: z.literal("assistant"), content, tool_calls: z.array(toolCall).nullish() }),
  z.object({ role: z.literal("tool"), content, tool_call_id: z.string() }),
]);
type WireMessage = z.infer<typeof message>;

/** Far more than any schema needs; what is nested a thousandfold cannot even be stored. */
const MAX_DEPTH = 64;

function isShallow(value: unknown, levels = MAX_DEPTH): boolean {
  if (typeof value !== "object" || value === null) return true;
  return levels > 0 && Object.values(value).every((inner) => isShallow(inner, levels - 1));
}

const jsonSchema = z
  .record(z.string(), z.unknown())
  .refine((schema) => isShallow(schema), `expected a JSON schema of at most ${MAX_DEPTH} levels`);

const tool = z.object({
  type: z.literal("function"),
  function: z.object({
    name: z.string().regex(/^[\w.-]{1,64}$/),
    description: z.string().default(""),
    parameters: jsonSchema.default({ type: "object", properties: {} }),
  }),
});

const responseFormat = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({ type: z.literal("json_object") }),
  z.object({
    type: z.literal("json_schema"),
    json_schema: z.object({ name: z.string(), schema: jsonSchema.exactOptional() }),
  }),
]);

const request = z.object({
  model: z.string(),
  messages: z.array(message).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.literal(1, "only one choice is made (n = 1)").nullish(),
  tools: z.array(tool).max(128).nullish(),
  tool_choice: z
    .union([
      z.enum(["auto", "none", "required"]),
      z.object({ type: z.literal("function"), function: z.object({ name: z.string() }) }),
    ])
    .nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  max_tokens: z.int().min(1).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(4)]).nullish(),
  seed: z.int().nullish(),
  presence_penalty: z.number().nullish(),
  frequency_penalty: z.number().nullish(),
  response_format: responseFormat.nullish(),
});
type WireRequest = z.infer<typeof request>;

export interface ParsedRequest {
  readonly model: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly completion: Completion;
  /** The text of the last user message, or "" when the request ends with tool results. */
  readonly lastText: string;
}

/** Throws InvalidInput. */
export function parseRequest(raw: string): ParsedRequest {
  let json: unknown;
  try {
    json = JSON.parse(raw);
  } catch (thrown) {
    throw new InvalidInput(`the body is not JSON: ${messageOf(thrown)}`, { cause: thrown });
  }
  const parsed = request.safeParse(json);
  if (!parsed.success) throw new InvalidInput(z.prettifyError(parsed.error));
  const wire = parsed.data;
  const messages = wire.messages.map((one, i) => fromWire(one, wire.messages.slice(0, i)));
  const last = messages.at(-1);
  if (last?.role === "assistant")
    throw new InvalidInput("the last message is the assistant's; expected a user message or a tool result");
  return {
    model: wire.model,
    stream: wire.stream === true,
    includeUsage: wire.stream_options?.include_usage === true,
    completion: { messages, clientTools: toolsOf(wire), sampling: samplingOf(wire) },
    lastText: last?.role === "user" ? last.text : "",
  };
}

function toolsOf(wire: WireRequest): Completion["clientTools"] {
  return (wire.tools ?? []).map(({ function: { name, description, parameters } }) => ({
    name,
    description,
    schema: parameters,
  }));
}

function fromWire(wire: WireMessage, before: readonly WireMessage[]): Completion["messages"][number] {
  const text = textOf(wire.content);
  switch (wire.role) {
    case "system":
    case "developer":
      return { role: "system", text };
    case "user":
      return { role: "user", text };
    case "assistant": {
      const calls = (wire.tool_calls ?? []).map((call) => ({
        id: call.id,
        name: call.function.name,
        input: call.function.arguments,
      }));
      return { role: "assistant", text, calls };
    }
    case "tool":
      return {
        role: "tool",
        callId: wire.tool_call_id,
        name: nameOfCall(wire.tool_call_id, before),
        text,
        isError: false,
      };
  }
}

function nameOfCall(id: string, before: readonly WireMessage[]): string {
  for (const one of before) {
    const call = one.role === "assistant" ? one.tool_calls?.find((known) => known.id === id) : undefined;
    if (call !== undefined) return call.function.name;
  }
  return "tool";
}

function textOf(wire: z.infer<typeof content>): string {
  if (wire === undefined || wire === null) return "";
  if (typeof wire === "string") return wire;
  return wire.map(partText).join("");
}

function partText(part: { type: string }): string {
  const known = textPart.safeParse(part);
  if (!known.success) throw new InvalidInput(`content of type ${JSON.stringify(part.type)} is not taken; only text is`);
  return known.data.text ?? known.data.refusal ?? "";
}

function samplingOf(wire: WireRequest): Completion["sampling"] {
  const stop = typeof wire.stop === "string" ? [wire.stop] : wire.stop;
  return {
    temperature: wire.temperature ?? undefined,
    topP: wire.top_p ?? undefined,
    maxOutputTokens: wire.max_completion_tokens ?? wire.max_tokens ?? undefined,
    stop: stop ?? undefined,
    seed: wire.seed ?? undefined,
    presencePenalty: wire.presence_penalty ?? undefined,
    frequencyPenalty: wire.frequency_penalty ?? undefined,
    toolChoice:
      typeof wire.tool_choice === "object" && wire.tool_choice !== null
        ? { tool: wire.tool_choice.function.name }
        : (wire.tool_choice ?? undefined),
    responseFormat: formatOf(wire.response_format),
  };
}

function formatOf(wire: WireRequest["response_format"]): Completion["sampling"]["responseFormat"] {
  switch (wire?.type) {
    case undefined:
    case "text":
      return undefined;
    case "json_object":
      return { type: "json" };
    case "json_schema":
      return { type: "json", ...wire.json_schema };
  }
}
