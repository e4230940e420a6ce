// Owns: how an error ends a command: a sentence, a hint and an exit code. A stack only when LANEWAY_DEBUG asks for it.
import { EXIT, type ExitCode, LanewayError, messageOf } from "../kernel/errors.ts";
import { visible } from "../kernel/visible.ts";
import { envText } from "../settings/env.ts";
import { paint } from "./print/paint.ts";
import { isReaderGone, type Shell } from "./shell.ts";

/** Writes what went wrong to stderr and answers the exit code. Never rejects. */
export async function reportError(thrown: unknown, { env, err }: Pick<Shell, "env" | "err">): Promise<ExitCode> {
  if (isReaderGone(thrown)) return EXIT.ok;
  const known = thrown instanceof LanewayError ? thrown : undefined;
  const lines = [`${paint(err, "red", "laneway:")} ${visible(messageOf(thrown), "\n")}`];
  if (known?.hint !== undefined) lines.push(visible(known.hint, "\n"));
  if (envText(env, "LANEWAY_DEBUG") !== undefined) lines.push(stackOf(thrown));
  else if (known === undefined)
    lines.push("This is a fault of Laneway. Run it again with LANEWAY_DEBUG=1 to see where.");
  await err.write(`${lines.join("\n")}\n`).catch(() => {});
  return known?.exitCode ?? EXIT.internal;
}

function stackOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return "";
  const cause = thrown.cause === undefined ? "" : `\ncaused by: ${stackOf(thrown.cause) || messageOf(thrown.cause)}`;
  return visible(`${thrown.stack ?? ""}${cause}`, "\n");
}
