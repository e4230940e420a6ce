// Owns: turning one update of Telegram into an event of the host. Pure and total: what cannot be read becomes an
// UnreadableEvent, what does not concern the host becomes undefined, and nothing is ever thrown.
import { createHash } from "node:crypto";
import { messageOf } from "../../kernel/errors.ts";
import type { ChannelEvent, UnreadableEvent } from "../port.ts";
import { addressedTo } from "./addressed.ts";
import { attachmentsOf, forwardNote, nameOf, noteOf, quotedOf } from "./content.ts";
import {
  anyUpdate,
  type Bot,
  type Callback,
  type Chat,
  type Message,
  type Stopped,
  type User,
  updateSchema,
} from "./schema.ts";

/**
 * Clients cut a long paste into messages of at most 4096 UTF-16 units and like to cut at a paragraph or a space, some way before
 * the limit. A text that happens to be this long only makes the host wait a moment for a rest that does not come.
 */
const FULL_UNITS = 3_500;
const GENERAL_TOPIC = 1;

/**
 * @param update anything that getUpdates or the webhook brought.
 * @param bot this account, as getMe told.
 */
export function normalise(update: unknown, bot: Bot): ChannelEvent | UnreadableEvent | undefined {
  try {
    return read(update, bot);
  } catch (thrown) {
    // Nesting deeper than the stack, say. There is nothing to make a key from but the id.
    const id = anyUpdate.safeParse(update).data?.update_id;
    return { key: `bad:update:${id ?? "without-id"}`, raw: "", problem: messageOf(thrown) };
  }
}

function read(update: unknown, bot: Bot): ChannelEvent | UnreadableEvent | undefined {
  const raw = withoutId(update);
  const rawHash = hashOf(raw);
  const parsed = updateSchema.safeParse(raw);
  if (!parsed.success) {
    const problem = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ");
    return { key: `bad:${rawHash}`, raw: canonical(update), problem: problem.slice(0, 500) };
  }
  const {
    message,
    edited_message: edited,
    callback_query: callback,
    stopped_message_generation: stopped,
  } = parsed.data;
  if (message !== undefined) return messageEvent(message, bot, rawHash, "message");
  if (edited !== undefined) return messageEvent(edited, bot, rawHash, "edit");
  if (callback !== undefined) return callbackEvent(callback, rawHash);
  if (stopped !== undefined) return stoppedEvent(stopped, rawHash);
  return undefined;
}

/**
 * Keys are made from what happened and not from the update's id: "If there are no new updates for at least a week, then
 * identifier of the next update will be chosen randomly" (https://core.telegram.org/bots/api#update), so ids can come
 * again for other events (G2). A message id is unique in its chat, except 0, which several kinds of message share.
 */
function messageKey(message: Message, kind: "message" | "edit", rawHash: string): string {
  const at = `${message.chat.id}:${message.message_id}`;
  // Two edits can fall into one second.
  if (kind === "edit") return `e:${at}:${message.edit_date ?? message.date}:${rawHash.slice(0, 8)}`;
  return message.message_id === 0 ? `m:${at}:${rawHash}` : `m:${at}`;
}

function messageEvent(message: Message, bot: Bot, rawHash: string, kind: "message" | "edit"): ChannelEvent | undefined {
  if (message.from?.id === bot.id) return undefined;
  // A live location is edited every few seconds for hours.
  if (kind === "edit" && message.location?.live_period !== undefined) return undefined;
  const chatKind = kindOf(message.chat);
  const attachments = attachmentsOf(message);
  const { addressed, text: written } = addressedTo(bot, message);
  const note = noteOf(message);
  // Joins, pins, titles and the like: nobody says anything with them.
  if (chatKind === undefined || (message.text ?? message.caption ?? note ?? attachments[0]) === undefined)
    return undefined;
  return {
    key: messageKey(message, kind, rawHash),
    rawHash,
    chat: String(message.chat.id),
    thread: threadOf(message, chatKind),
    chatKind,
    sender: actorOf(message),
    addressed,
    ref: String(message.message_id),
    kind,
    text: [forwardNote(message), written, note].filter((part) => part !== undefined && part !== "").join("\n"),
    quoted: quotedOf(message),
    attachments,
    album: message.media_group_id,
    full: (message.text?.length ?? 0) >= FULL_UNITS,
  };
}

/**
 * The person who can be held to this event, or undefined (ID-3). Whoever speaks as a chat (an anonymous administrator, a
 * channel, a post of the linked channel) comes with `sender_chat` and a stand-in in `from`; the stand-ins are told by their
 * ids as well. What an inline bot wrote (`via_bot`) is not the person's. A forwarded message is its forwarder's act.
 */
function actorOf(message: Message): ChannelEvent["sender"] {
  const { from, sender_chat: asChat, via_bot: through } = message;
  if (from === undefined || asChat !== undefined || through !== undefined || STAND_INS.has(from.id)) return undefined;
  return personOf(from);
}

/** GroupAnonymousBot, the service account that posts for linked channels, and Channel Bot. */
const STAND_INS: ReadonlySet<number> = new Set([1_087_968_824, 777_000, 136_817_688]);

function personOf(user: User): NonNullable<ChannelEvent["sender"]> {
  return { id: String(user.id), name: nameOf(user), bot: user.is_bot === true };
}

/** Undefined for channels: they are not conversations. */
function kindOf(chat: Chat): ChannelEvent["chatKind"] | undefined {
  if (chat.type === "private") return "private";
  return chat.type === "group" || chat.type === "supergroup" ? "group" : undefined;
}

/** Only topics are threads: in other groups `message_thread_id` marks a chain of replies. The general topic is the chat itself. */
function threadOf(
  message: { is_topic_message?: boolean | undefined; message_thread_id?: number | undefined },
  chatKind: ChannelEvent["chatKind"],
): string | undefined {
  const { is_topic_message: isTopic, message_thread_id: id } = message;
  if (isTopic !== true || id === undefined || (chatKind === "group" && id === GENERAL_TOPIC)) return undefined;
  return String(id);
}

/** Buttons say `stop:…`; the authority is that of whoever pressed, not of the person the button was shown to. */
function callbackEvent(callback: Callback, rawHash: string): ChannelEvent | undefined {
  const { message, from, data } = callback;
  if (message === undefined || data === undefined || !data.startsWith("stop:")) return undefined;
  const chatKind = kindOf(message.chat);
  if (chatKind === undefined) return undefined;
  return {
    ...bare(rawHash),
    key: `cb:${callback.id}`,
    chat: String(message.chat.id),
    thread: threadOf(message, chatKind),
    chatKind,
    sender: personOf(from),
    ref: String(message.message_id),
    text: data.slice("stop:".length),
  };
}

/** The native stop button of a draft; drafts exist in private chats only, where the chat's id is the person's. */
function stoppedEvent(stopped: Stopped, rawHash: string): ChannelEvent | undefined {
  if (stopped.chat.type !== "private") return undefined;
  const chat = String(stopped.chat.id);
  return {
    ...bare(rawHash),
    key: `stop:${chat}:${stopped.message_thread_id ?? 0}:${stopped.draft_id}`,
    chat,
    thread: stopped.message_thread_id === undefined ? undefined : String(stopped.message_thread_id),
    chatKind: "private",
    sender: { id: chat, name: nameOf(stopped.chat), bot: false },
    ref: String(stopped.draft_id),
    text: "",
  };
}

function bare(rawHash: string) {
  return {
    rawHash,
    kind: "stop",
    addressed: "command",
    quoted: undefined,
    attachments: [],
    album: undefined,
    full: false,
  } as const;
}

/** The update's id is left out, so that the same event has the same hash whatever id it comes under. */
function withoutId(update: unknown): unknown {
  if (typeof update !== "object" || update === null || Array.isArray(update)) return update;
  return Object.fromEntries(Object.entries(update).filter(([name]) => name !== "update_id"));
}

function hashOf(value: unknown): string {
  return createHash("sha256").update(canonical(value)).digest("base64url");
}

/** JSON with the keys of every object in one order. */
function canonical(value: unknown): string {
  const sorted = (_key: string, inner: unknown): unknown => {
    if (typeof inner !== "object" || inner === null || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)));
  };
  return JSON.stringify(value, sorted) ?? "null";
}
