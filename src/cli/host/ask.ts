// Owns: the one call that most commands consist of, with its progress line.
import type { z } from "zod";
import { startProgress } from "../print/progress.ts";
import type { Shell } from "../shell.ts";
import { type CallOptions, makeClient } from "./client.ts";

/** Calls a verb once and shows on a terminal that it is being waited for. Throws like `Client.call`. */
export async function ask<Reply>(
  shell: Shell,
  verb: string,
  input: object,
  reply: z.ZodType<Reply>,
  options?: CallOptions,
): Promise<Reply> {
  const stopProgress = startProgress(shell, () => "waiting for the host");
  try {
    return await makeClient(shell).call(verb, input, reply, options);
  } finally {
    stopProgress();
  }
}
