// Owns: what a method of the Bot API is for this fake, and the checks that several methods share.
import { z } from "zod";
import type { Clock } from "../../../src/kernel/clock.ts";
import type { CallRecord, Journal } from "./journal.ts";
import type { Updates } from "./updates.ts";
import type { Webhook } from "./webhook.ts";
import { bool, breach, int, json, Refused, readParams, refuse, text, type Upload } from "./wire.ts";
import { chatForm, type Entry, type RoomState, type World } from "./world.ts";

export interface Platform {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly world: World;
  readonly updates: Updates;
  readonly webhook: Webhook;
  /** The callback queries that people caused. */
  readonly queries: Map<string, { answered: boolean }>;
}

export interface MethodCall {
  readonly record: CallRecord;
  readonly files: ReadonlyMap<string, Upload>;
  /** Aborts when the client closes the connection. */
  readonly gone: AbortSignal;
}

/** Answers with the result, or throws Refused. */
export type Method = (call: MethodCall) => unknown;

export function method<T>(schema: z.ZodType<T>, run: (params: T, call: MethodCall) => unknown): Method {
  return (call) => run(readParams(schema, call.record.params), call);
}

/** core.telegram.org/bots/api#inlinekeyboardbutton: callback_data has 1-64 bytes. */
const callbackData = text.refine((data) => data !== "" && Buffer.byteLength(data) <= 64, "BUTTON_DATA_INVALID");
const Button = z.looseObject({ text: text.min(1), callback_data: callbackData.optional(), url: z.string().optional() });
const Markup = z.looseObject({ inline_keyboard: z.array(z.array(Button)).optional() });

/** core.telegram.org/bots/api#replyparameters */
const Reply = z.looseObject({
  message_id: int,
  allow_sending_without_reply: bool.optional(),
  quote: text.optional(),
});

/** The parameters that all methods of sending have. */
export const Sending = z.looseObject({
  chat_id: int,
  message_thread_id: int.optional(),
  parse_mode: z.string().optional(),
  reply_parameters: json(Reply).optional(),
  reply_markup: json(Markup).optional(),
});
type SendingParams = z.infer<typeof Sending>;

/** The chat, or why the bot may not write there. */
export function openRoom({ world, journal }: Platform, chat: number, record: CallRecord): RoomState {
  const room = world.room(chat);
  if (room === undefined) refuse("chat not found");
  if (room.migratedTo !== undefined) {
    const parameters = { migrate_to_chat_id: room.migratedTo };
    throw new Refused(400, "Bad Request: group chat was upgraded to a supergroup chat", { parameters });
  }
  if (room.closed === undefined) return room;
  if (room.refusedSends++ > 0) journal.violated(record, `wrote again although ${room.closed}`);
  throw new Refused(403, `Forbidden: ${room.closed}`);
}

/**
 * core.telegram.org/bots/api#sendmessage, "message_thread_id": the topic of a forum. The general topic has no id to write to, and
 * a reply thread is no topic.
 */
export function threadForm(room: RoomState, thread: number | undefined): object {
  if (thread === undefined) return {};
  if (!room.topics.has(thread)) refuse("message thread not found");
  return { message_thread_id: thread, is_topic_message: true };
}

/** core.telegram.org/bots/api#replyparameters: the message must exist unless `allow_sending_without_reply` is set. */
function replyForm(room: RoomState, reply: SendingParams["reply_parameters"]): object {
  if (reply === undefined) return {};
  const entry = room.entries.get(reply.message_id);
  if (entry === undefined || entry.deleted) {
    if (reply.allow_sending_without_reply === true) return {};
    refuse("message to be replied not found");
  }
  const { reply_to_message: _, ...answered } = entry.message;
  const whole = answered.text ?? answered.caption ?? "";
  if (reply.quote !== undefined && !whole.includes(reply.quote)) breach("QUOTE_TEXT_INVALID");
  return { reply_to_message: answered };
}

/** Where and as what a message of the bot stands. */
export function sendForm(
  platform: Platform,
  params: SendingParams,
  record: CallRecord,
): { room: RoomState; form: object } {
  const room = openRoom(platform, params.chat_id, record);
  const place = { ...replyForm(room, params.reply_parameters), ...threadForm(room, params.message_thread_id) };
  const keyboard = params.reply_markup?.inline_keyboard && { reply_markup: params.reply_markup };
  return { room, form: { from: platform.world.bot, chat: chatForm(room), ...place, ...keyboard } };
}

/** core.telegram.org/bots/api#sendmessagedraft: a message takes the place of the drafts. */
export function endDrafts(room: RoomState, thread: number | undefined): void {
  for (const draft of room.drafts) if (draft.thread === thread) draft.gone = true;
}

/** A message that is there, or the words for its absence. */
export function entryOf(room: RoomState, id: number, absent: string): Entry {
  const entry = room.entries.get(id);
  if (entry === undefined || entry.deleted) refuse(absent);
  return entry;
}
