// Owns: from a command that has ended to what the OpenAI door says of it: text, tool calls and figures, or why there are none.
import { z } from "zod";
import { Forbidden, LanewayError } from "../kernel/errors.ts";
import type { Command } from "../store/commands.ts";
import type { Part } from "../store/outbox.ts";

/** The turn ended without an answer. 502 lets a client library try again, which joins this command and costs nothing. */
class NoAnswer extends LanewayError {
  readonly code = "no_answer";
}

const partExtra = z.object({
  finish: z.enum(["stop", "length", "tool_calls"]),
  usage: z.object({ inputTokens: z.number().default(0), outputTokens: z.number().default(0) }),
  calls: z.array(z.object({ id: z.string(), name: z.string(), input: z.string() })).optional(),
});

export interface Answer {
  readonly text: string;
  readonly finish: "stop" | "length" | "tool_calls";
  readonly usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
  readonly toolCalls: readonly { id: string; type: "function"; function: { name: string; arguments: string } }[];
}

/** The answer of a command that has ended. Throws NoAnswer when it has none, Stopped when it was stopped. */
export function answerOf(command: Command, part: Part | undefined): Answer {
  if (command.state === "cancelled") throw stopped(command.kind === "completion");
  if (command.state !== "done" || part === undefined) {
    const hint = `\`laneway queue show ${command.id}\` tells more.`;
    throw new NoAnswer(part?.text ?? "the message could not be answered", { hint });
  }
  // A chat command's reply has no figures.
  const extra = partExtra.parse(part.extra === undefined ? { finish: "stop", usage: {} } : JSON.parse(part.extra));
  const { inputTokens, outputTokens } = extra.usage;
  const usage = {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
  const toolCalls = (extra.calls ?? []).map(({ id, name, input }) => ({
    id,
    type: "function" as const,
    function: { name, arguments: input },
  }));
  return { text: part.text, finish: extra.finish, usage, toolCalls };
}

function stopped(stateless: boolean): Stopped {
  const hint = stateless
    ? "Send it again, with a new Idempotency-Key if there was one."
    : "Send it again if it still matters.";
  return new Stopped("the request was stopped before it was answered", { hint });
}

class Stopped extends Forbidden {
  override readonly code = "stopped";
}
