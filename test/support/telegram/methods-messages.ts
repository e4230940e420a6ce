// Owns: the methods that show something in a chat: messages, edits, drafts, actions, reactions.
import { isDeepStrictEqual } from "node:util";
import type { Message } from "grammy/types";
import { z } from "zod";
import {
  endDrafts,
  entryOf,
  type Method,
  method,
  openRoom,
  type Platform,
  Sending,
  sendForm,
  threadForm,
} from "./method.ts";
import { DRAFT_LIMIT, readText, TEXT_LIMIT } from "./text-rules.ts";
import { bool, breach, int, json, refuse, text } from "./wire.ts";

const Markup = Sending.shape.reply_markup;
const Entities = json(z.unknown()).optional();
/** core.telegram.org/bots/api#linkpreviewoptions */
const LinkPreview = json(z.looseObject({ is_disabled: z.boolean().optional(), url: z.string().optional() })).optional();

const SendMessage = Sending.extend({ text, entities: Entities, link_preview_options: LinkPreview });

const Draft = z.looseObject({
  chat_id: int,
  message_thread_id: int.optional(),
  // core.telegram.org/bots/api#sendmessagedraft: "must be non-zero".
  draft_id: int.refine((id) => id !== 0, "must be non-zero"),
  text: text.optional(),
  parse_mode: z.string().optional(),
  entities: Entities,
  can_stop: bool.optional(),
});

const Edit = z.looseObject({
  ...{ chat_id: int, message_id: int, text, entities: Entities, parse_mode: z.string().optional() },
  ...{ link_preview_options: LinkPreview, reply_markup: Markup },
});

// core.telegram.org/bots/api#sendchataction
const ACTIONS = `typing upload_photo record_video upload_video record_voice upload_voice upload_document choose_sticker
  find_location record_video_note upload_video_note`.split(/\s+/);
const Action = z.looseObject({ chat_id: int, message_thread_id: int.optional(), action: z.enum(ACTIONS) });

const Delete = z.looseObject({ chat_id: int, message_id: int });

// core.telegram.org/bots/api#reactiontypeemoji
const REACTIONS = new Set(
  `👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈
  😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡`.split(/\s+/),
);
const Reaction = z.looseObject({
  ...{ chat_id: int, message_id: int },
  reaction: json(z.array(z.looseObject({ type: z.string(), emoji: z.string().optional() }))).optional(),
});

/** core.telegram.org/bots/api#deletemessage: "only if it was sent less than 48 hours ago". */
const DELETABLE_S = 48 * 3600;

export function messageMethods(platform: Platform): Record<string, Method> {
  const { world, clock } = platform;
  return {
    sendMessage: method(SendMessage, (params, { record }) => {
      const { room, form } = sendForm(platform, params, record);
      const { text, entities } = readText(given(params), TEXT_LIMIT);
      const shown = { ...form, text, ...(entities.length > 0 && { entities }) };
      endDrafts(room, params.message_thread_id);
      return world.add(room, shown, { byBot: true, linkPreview: params.link_preview_options }).message;
    }),

    /** core.telegram.org/bots/api#sendmessagedraft: "Unique identifier for the target private chat". */
    sendMessageDraft: method(Draft, (params, { record }) => {
      const room = openRoom(platform, params.chat_id, record);
      if (room.kind !== "private") breach("drafts can be sent only to private chats");
      threadForm(room, params.message_thread_id);
      const { text, entities } = readText(given({ ...params, text: params.text ?? "" }), DRAFT_LIMIT);
      const { draft_id: draftId, message_thread_id: thread, can_stop: canStop = false } = params;
      room.drafts.push({ draftId, text, entities, thread, canStop, shownMs: clock.mono(), gone: false });
      return true;
    }),

    editMessageText: method(Edit, (params, { record }) => {
      const room = openRoom(platform, params.chat_id, record);
      const entry = entryOf(room, params.message_id, "message to edit not found");
      if (!entry.byBot) refuse("message can't be edited");
      if (entry.message.text === undefined) refuse("there is no text in the message to edit");
      const { text, entities } = readText(given(params), TEXT_LIMIT);
      const { entities: _, reply_markup: __, ...rest } = entry.message;
      const edited = {
        ...{ ...rest, text, ...(entities.length > 0 && { entities }) },
        ...(params.reply_markup?.inline_keyboard && { reply_markup: params.reply_markup }),
      };
      const { edit_date: ___, ...before } = entry.message;
      if (isDeepStrictEqual(before, withoutEditDate(edited))) refuse(NOT_MODIFIED);
      entry.message = { ...edited, edit_date: world.nowS() } as unknown as Message;
      entry.linkPreview = params.link_preview_options;
      entry.edits++;
      return entry.message;
    }),

    deleteMessage: method(Delete, ({ chat_id, message_id }, { record }) => {
      const room = openRoom(platform, chat_id, record);
      const entry = entryOf(room, message_id, "message to delete not found");
      const foreign = !entry.byBot && room.kind !== "private";
      if (foreign || world.nowS() - entry.message.date > DELETABLE_S) refuse("message can't be deleted");
      entry.deleted = true;
      return true;
    }),

    sendChatAction: method(Action, (params, { record }) => {
      threadForm(openRoom(platform, params.chat_id, record), params.message_thread_id);
      return true;
    }),

    /** core.telegram.org/bots/api#setmessagereaction: "as non-premium users, bots can set up to one reaction per message". */
    setMessageReaction: method(Reaction, ({ chat_id, message_id, reaction = [] }, { record }) => {
      const entry = entryOf(openRoom(platform, chat_id, record), message_id, "message to react not found");
      if (reaction.length > 1) breach("REACTIONS_TOO_MANY");
      const emoji = reaction.map((given) => (given.type === "emoji" ? (given.emoji ?? "") : given.type));
      if (emoji.some((one) => !REACTIONS.has(one))) breach("REACTION_INVALID");
      entry.reactions = emoji;
      return true;
    }),
  };
}

const NOT_MODIFIED =
  "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message";

function given(params: { text: string; parse_mode?: string | undefined; entities?: unknown }) {
  return { text: params.text, parseMode: params.parse_mode, entities: params.entities };
}

function withoutEditDate<T extends object>(message: T): Omit<T, "edit_date"> {
  const { edit_date: _, ...rest } = message as T & { edit_date?: number };
  return rest;
}
