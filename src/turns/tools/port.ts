// Owns: what a tool is, and running one call so that whatever it does becomes a result for the model.
import { z } from "zod";
import type { Clock } from "../../kernel/clock.ts";
import { Aborted, messageOf, ToolError } from "../../kernel/errors.ts";
import type { ToolCall, ToolSpec } from "../backends/port.ts";
import { startLimit } from "../limits.ts";

export interface ToolResult {
  readonly text: string;
  readonly isError: boolean;
}

export interface ToolContext {
  /** Absolute path of the agent's workspace: the only folder that file tools see. */
  readonly workspace: string;
  readonly signal: AbortSignal;
}

/** `Input` is the output type of the tool's zod schema: the schema is the type. */
export interface Tool<Input = unknown> {
  readonly name: string;
  readonly description: string;
  readonly input: z.ZodType<Input>;
  /** `read` changes nothing; `write` changes the workspace; `external` reaches outside it. */
  readonly effect: "read" | "write" | "external";
  /** 0 means none. */
  readonly timeoutMs: number;
  /** Throws ToolError for what the model can mend. */
  run(input: Input, context: ToolContext): Promise<string>;
}

export function toolSpec(tool: Tool): ToolSpec {
  const { $schema: _, ...schema } = z.toJSONSchema(tool.input, { io: "input" });
  return { name: tool.name, description: tool.description, schema };
}

/** toolSpec, made once a tool: it costs more than everything else that the host does for a plain turn. */
export function rememberedToolSpec(): (tool: Tool) => ToolSpec {
  const made = new WeakMap<Tool, ToolSpec>();
  return (tool) => {
    const spec = made.get(tool) ?? toolSpec(tool);
    made.set(tool, spec);
    return spec;
  };
}

/**
 * Runs one call. Never throws, except Aborted when `context.signal` aborted: an unknown tool, input
 * that does not fit, a tool's own error and its timeout all become results with `isError` (Q15.1).
 */
export async function runTool(
  tools: readonly Tool[],
  call: ToolCall,
  context: ToolContext,
  clock: Clock,
): Promise<ToolResult> {
  const tool = tools.find((one) => one.name === call.name);
  if (tool === undefined) {
    const names = tools.map((one) => one.name).join(", ") || "none";
    return failed(`There is no tool "${call.name}". Tools: ${names}.`);
  }
  const input = parseInput(tool, call.input);
  if (!input.ok) return failed(input.message);
  return await withTimeout(tool, input.value, context, clock);
}

function failed(text: string): ToolResult {
  return { text, isError: true };
}

function parseInput(tool: Tool, json: string): { ok: true; value: unknown } | { ok: false; message: string } {
  try {
    const parsed = tool.input.safeParse(json.trim() === "" ? {} : JSON.parse(json));
    if (parsed.success) return { ok: true, value: parsed.data };
    return { ok: false, message: `The input of ${tool.name} does not fit:\n${z.prettifyError(parsed.error)}` };
  } catch (thrown) {
    return { ok: false, message: `The input of ${tool.name} must be a JSON object: ${messageOf(thrown)}` };
  }
}

async function withTimeout(tool: Tool, input: unknown, context: ToolContext, clock: Clock): Promise<ToolResult> {
  const own = new AbortController();
  const signal = AbortSignal.any([context.signal, own.signal]);
  const ended = Promise.withResolvers<never>();
  // A tool that throws before it gives a promise leaves nobody to hear this one.
  ended.promise.catch(() => {});
  const stop = startLimit(clock, tool.timeoutMs, () => {
    own.abort("timeout");
    ended.reject(new ToolError(`${tool.name} did not end within ${tool.timeoutMs} ms and was stopped.`));
  });
  const onAbort = () => ended.reject(new Aborted(context.signal.reason));
  context.signal.addEventListener("abort", onAbort, { once: true });
  try {
    if (context.signal.aborted) throw new Aborted(context.signal.reason);
    const text = await Promise.race([tool.run(input, { ...context, signal }), ended.promise]);
    return { text, isError: false };
  } catch (thrown) {
    if (context.signal.aborted) throw new Aborted(context.signal.reason);
    return failed(messageOf(thrown));
  } finally {
    stop();
    context.signal.removeEventListener("abort", onAbort);
  }
}
