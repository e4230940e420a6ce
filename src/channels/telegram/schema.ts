// Owns: the form of the updates that we read, as little of it as we use. Fields that we do not know are let pass: Telegram adds
// some every month. https://core.telegram.org/bots/api#update
import { z } from "zod";

const id = z.number().int();
const user = z.looseObject({
  id,
  is_bot: z.boolean().optional(),
  first_name: z.string(),
  last_name: z.string().optional(),
  username: z.string().optional(),
});
const chat = z.looseObject({
  id,
  type: z.string(),
  title: z.string().optional(),
  first_name: z.string().optional(),
  last_name: z.string().optional(),
});
const entity = z.looseObject({
  type: z.string(),
  offset: z.number().int().min(0),
  length: z.number().int().min(0),
  user: z.looseObject({ id }).optional(),
});
const file = z.looseObject({
  file_id: z.string(),
  file_size: z.number().optional(),
  file_name: z.string().optional(),
  mime_type: z.string().optional(),
});
const photo = file.extend({ width: z.number(), height: z.number() });
const place = z.looseObject({ latitude: z.number(), longitude: z.number(), live_period: z.number().optional() });

const origin = z.looseObject({
  sender_user: user.optional(),
  sender_user_name: z.string().optional(),
  sender_chat: chat.optional(),
  chat: chat.optional(),
});

/** What a message, a replied-to message and a reply to another chat can hold. */
const content = {
  text: z.string().optional(),
  caption: z.string().optional(),
  photo: z.array(photo).optional(),
  voice: file.optional(),
  audio: file.optional(),
  video: file.optional(),
  video_note: file.optional(),
  animation: file.optional(),
  document: file.optional(),
  sticker: z.looseObject({ emoji: z.string().optional() }).optional(),
  dice: z.looseObject({ emoji: z.string(), value: z.number() }).optional(),
  location: place.optional(),
  venue: z.looseObject({ title: z.string(), address: z.string(), location: place }).optional(),
  contact: z
    .looseObject({ first_name: z.string(), last_name: z.string().optional(), phone_number: z.string() })
    .optional(),
  poll: z.looseObject({ question: z.string(), options: z.array(z.looseObject({ text: z.string() })) }).optional(),
};

const replied = z.looseObject({
  from: user.optional(),
  sender_chat: chat.optional(),
  forum_topic_created: z.unknown().optional(),
  ...content,
});

const message = z.looseObject({
  message_id: id,
  date: z.number(),
  edit_date: z.number().optional(),
  chat,
  from: user.optional(),
  sender_chat: chat.optional(),
  via_bot: user.optional(),
  is_topic_message: z.boolean().optional(),
  message_thread_id: id.optional(),
  media_group_id: z.string().optional(),
  entities: z.array(entity).optional(),
  caption_entities: z.array(entity).optional(),
  forward_origin: origin.optional(),
  reply_to_message: replied.optional(),
  external_reply: z.looseObject({ origin, ...content }).optional(),
  quote: z.looseObject({ text: z.string() }).optional(),
  ...content,
});

const callback = z.looseObject({
  id: z.string(),
  from: user,
  data: z.string().optional(),
  message: z
    .looseObject({ message_id: id, chat, is_topic_message: z.boolean().optional(), message_thread_id: id.optional() })
    .optional(),
});

const stopped = z.looseObject({ chat, message_thread_id: id.optional(), draft_id: z.number() });

/** The kinds that we ask for and turn into events; others pass unread. */
export const updateSchema = z.looseObject({
  message: message.optional(),
  edited_message: message.optional(),
  callback_query: callback.optional(),
  stopped_message_generation: stopped.optional(),
});

/** An update of any kind, as far as receiving needs it. */
export const anyUpdate = z.looseObject({ update_id: id });

/** The bot's own account, as getMe tells. */
export const botSchema = z.looseObject({ id, username: z.string().optional(), first_name: z.string().optional() });

export type Bot = z.infer<typeof botSchema>;
export type User = z.infer<typeof user>;
export type Chat = z.infer<typeof chat>;
export type Entity = z.infer<typeof entity>;
export type Message = z.infer<typeof message>;
export type Callback = z.infer<typeof callback>;
export type Stopped = z.infer<typeof stopped>;
export type Origin = z.infer<typeof origin>;
export type File = z.infer<typeof file>;
export type Content = Pick<Message, keyof typeof content>;
