// Owns: `laneway link`: a fresh link to the page. It works once and for ten minutes.
import { EXIT, type ExitCode } from "../kernel/errors.ts";
import { visible } from "../kernel/visible.ts";
import { ask } from "./host/ask.ts";
import { link as reply } from "./host/replies.ts";
import { jsonLine } from "./print/json.ts";
import type { JsonOption, Shell } from "./shell.ts";

export async function link(shell: Shell, { json }: JsonOption): Promise<ExitCode> {
  const found = await ask(shell, "link", {}, reply);
  await shell.out.write(json ? jsonLine(found) : `${visible(found.url)}\n`);
  return EXIT.ok;
}
