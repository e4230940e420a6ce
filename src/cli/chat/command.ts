// Owns: `laneway chat`: which of its two forms runs. At a terminal a conversation, by pipe one message a line.
import type { ExitCode } from "../../kernel/errors.ts";
import { makeClient } from "../host/client.ts";
import type { Shell } from "../shell.ts";
import { chatOf } from "./chat.ts";

interface ChatOptions {
  readonly session?: string | undefined;
}

export async function chat(shell: Shell, { session }: ChatOptions): Promise<ExitCode> {
  const place = chatOf(session);
  const client = makeClient(shell);
  if (shell.input.isTTY === true && shell.out.isTerminal) {
    const { converse } = await import("./converse.ts");
    return converse(shell, client, place);
  }
  const { pipe } = await import("./pipe.ts");
  return pipe(shell, client, place);
}
