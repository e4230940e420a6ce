// Owns: the menu of commands that Telegram shows. Tried again for a while, never needed for anything else.
import { backoffMs } from "../../kernel/backoff.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Log } from "../../kernel/log.ts";
import type { Account } from "./account.ts";

const CALL_MS = 30_000;
const RETRY = { baseMs: 5_000, factor: 3, maxMs: 300_000, jitter: 0.2 };
const MAX_TRIES = 6;
/** https://core.telegram.org/bots/api#setmycommands and #botcommand */
const MAX_COMMANDS = 100;
const MAX_ABOUT_CHARS = 256;
const NAME = /^[a-z0-9_]{1,32}$/;

export interface Command {
  readonly name: string;
  readonly about: string;
}

/** Rejects with Aborted only. Names that Telegram does not take are left out. */
export async function registerCommands(
  deps: { account: Account; clock: Clock; ids: Ids; log: Log },
  commands: readonly Command[],
  signal: AbortSignal,
): Promise<void> {
  const accepted = commands
    .map(asBotCommand)
    .filter(({ command }) => NAME.test(command))
    .slice(0, MAX_COMMANDS);
  for (let attempt = 1; ; attempt++) {
    const answer = await deps.account.now((api, apiSignal) => api.setMyCommands({ commands: accepted }, apiSignal), {
      limitMs: CALL_MS,
      signal,
    });
    if (answer.ok) return;
    const { fault } = answer;
    const isFinal = fault.kind === "answered" && fault.code < 429;
    if (isFinal || attempt >= MAX_TRIES) {
      deps.log.warn("channel.commands.failed", { channel: "telegram", reason: fault.reason });
      return;
    }
    const waitMs = backoffMs(RETRY, attempt, deps.ids.fraction());
    await deps.clock.sleep(Math.max(waitMs, deps.account.heldMs()), signal);
  }
}

function asBotCommand({ name, about }: Command): { command: string; description: string } {
  const description = Array.from(about).slice(0, MAX_ABOUT_CHARS).join("");
  return { command: name.toLowerCase(), description: description === "" ? name : description };
}
