// Owns: the stored form of a request that came through the OpenAI door: its own history, tools and sampling wishes.
import { z } from "zod";

const call = z.object({ id: z.string(), name: z.string(), input: z.string() });

const message = z.discriminatedUnion("role", [
  z.object({ role: z.literal("system"), text: z.string() }),
  z.object({ role: z.literal("user"), text: z.string() }),
  z.object({ role: z.literal("assistant"), text: z.string(), calls: z.array(call) }),
  z.object({ role: z.literal("tool"), callId: z.string(), name: z.string(), text: z.string(), isError: z.boolean() }),
]);

const sampling = z.object({
  temperature: z.number().optional(),
  topP: z.number().optional(),
  maxOutputTokens: z.number().int().optional(),
  stop: z.array(z.string()).optional(),
  seed: z.number().int().optional(),
  presencePenalty: z.number().optional(),
  frequencyPenalty: z.number().optional(),
  toolChoice: z.union([z.enum(["auto", "none", "required"]), z.object({ tool: z.string() })]).optional(),
  responseFormat: z
    .object({
      type: z.literal("json"),
      schema: z.record(z.string(), z.unknown()).exactOptional(),
      name: z.string().exactOptional(),
    })
    .optional(),
});

export const completion = z.object({
  /** The client's history: the prompt of a stateless request. Of a named session only what is new: system lines and tool results. */
  messages: z.array(message).default([]),
  clientTools: z
    .array(z.object({ name: z.string(), description: z.string(), schema: z.record(z.string(), z.unknown()) }))
    .default([]),
  sampling: sampling.default({}),
});

export type Completion = z.infer<typeof completion>;
