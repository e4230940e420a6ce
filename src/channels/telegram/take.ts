// Owns: handing what Telegram brought to the host, and answering the presses of buttons once the host has them.
import { z } from "zod";
import type { Log } from "../../kernel/log.ts";
import type { ChannelHost } from "../port.ts";
import { anyUpdate, type Bot } from "./schema.ts";
import { normalise } from "./updates.ts";

export const ALLOWED_UPDATES = [
  "message",
  "edited_message",
  "callback_query",
  "my_chat_member",
  "stopped_message_generation",
] as const;

const pressed = z.looseObject({ callback_query: z.looseObject({ id: z.string() }) });

export interface Taker {
  readonly host: ChannelHost;
  readonly bot: Bot;
  readonly log: Log;
  /** Ends the waiting mark on a button. */
  answerPress(callbackId: string): void;
}

/**
 * Commits the updates and the id after the highest of them, and resolves to that id. When ids have begun anew at a lower number
 * the lower one holds. Rejects when nothing was kept.
 */
export async function takeUpdates(
  { host, bot, log, answerPress }: Taker,
  updates: readonly unknown[],
): Promise<number> {
  const ids = updates.flatMap((update) => anyUpdate.safeParse(update).data?.update_id ?? []);
  if (ids.length === 0) throw new Error("expected updates with ids from Telegram, none had one");
  const events = updates.map((update) => normalise(update, bot)).filter((event) => event !== undefined);
  for (const event of events) {
    if ("problem" in event) log.warn("channel.update.unreadable", { key: event.key, problem: event.problem });
  }
  const next = Math.max(...ids) + 1;
  await host.take(String(bot.id), { events, position: String(next) });
  for (const update of updates) {
    const press = pressed.safeParse(update);
    if (press.success) answerPress(press.data.callback_query.id);
  }
  return next;
}
