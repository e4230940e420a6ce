// Owns: what people do, for tests: each verb changes the world and queues the update that the bot gets of it.
import type { Message, MessageEntity, User } from "grammy/types";
import { type MediaOptions, mediaForm } from "./media.ts";
import { foundEntities, TEXT_LIMIT } from "./text-rules.ts";
import type { UpdateKind, Updates } from "./updates.ts";
import { chatForm, type Room, type RoomState, type SeenMessage, type World } from "./world.ts";

export interface SayOptions extends MediaOptions {
  /** Instead of those that the platform finds by itself (commands and mentions by name). */
  readonly entities?: readonly MessageEntity[];
  /** The id of the message that this one answers. */
  readonly replyTo?: number;
  /** The topic. */
  readonly thread?: number;
  /** The id of the message that gets this text instead of its own. */
  readonly edit?: number;
  /** Messages with the same word are one album. */
  readonly album?: string;
  /** Who wrote it first; a name alone is a person who hides the account. */
  readonly forward?: User | string;
  /** Written in the name of a chat: of the group itself (an anonymous administrator) or of a channel. */
  readonly senderChat?: Room | { readonly id: number; readonly title: string };
}

export interface People {
  user(person: { id: number; name: string; username?: string; bot?: boolean }): User;
  /** `topics`: the bot has topics in private chats. */
  privateChat(user: User, options?: { topics?: boolean }): Room;
  /** A supergroup when the id begins with -100, else a basic group. */
  group(group: { id: number; title: string; forum?: boolean; members?: readonly User[] }): Room;
  /** Makes a topic; the bot gets its service message. Returns the id of the thread. */
  topic(chat: Room, name: string): number;
  says(chat: Room | number, user: User, text: string, options?: SayOptions): Message;
  /** Presses a button of a message of the bot, found by its label. Returns the id of the query. */
  presses(user: User, chat: Room | number, message: SeenMessage, label: string): string;
  /** Presses the stop button of a draft that is shown now. */
  stopsDraft(chat: Room, draftId: number): void;
  /** The person blocks the bot, or the group throws it out; and back. */
  blocks(chat: Room): void;
  unblocks(chat: Room): void;
  /** A person takes a message away; the bot gets no word of it. */
  deletes(chat: Room, messageId: number): void;
  /** A basic group becomes a supergroup with another id. */
  migrates(chat: Room, id: number): Room;
}

interface Deps {
  readonly world: World;
  readonly updates: Updates;
  readonly queries: Map<string, { answered: boolean }>;
}

// The accounts in whose name the platform shows messages that were sent as a chat (core.telegram.org/bots/api#message, "from").
const ANONYMOUS_ADMIN: User = { id: 1087968824, is_bot: true, first_name: "Group", username: "GroupAnonymousBot" };
const CHANNEL_BOT: User = { id: 136817688, is_bot: true, first_name: "Channel", username: "Channel_Bot" };

export function makePeople(deps: Deps): People {
  const { world, updates } = deps;
  const join = (room: RoomState, members: readonly User[]) => {
    for (const member of members) room.members.set(member.id, member);
    return room;
  };
  return {
    user({ id, name, username, bot = false }) {
      const user: User = { id, is_bot: bot, first_name: name, ...(username !== undefined && { username }) };
      world.people.set(id, user);
      return user;
    },
    privateChat: (user, { topics = false } = {}) =>
      join(world.addRoom({ id: user.id, kind: "private", title: undefined, forum: topics }, user), [user]),
    group({ id, title, forum = false, members = [] }) {
      const kind = id <= -1_000_000_000_000 ? "supergroup" : "group";
      if (id >= 0 || (forum && kind === "group")) throw new Error(`no such group: ${id}, forum ${forum}`);
      return join(world.addRoom({ id, kind, title, forum }), members);
    },
    topic(chat, name) {
      const room = world.roomOf(chat);
      if (!room.forum) throw new Error(`chat ${room.id} has no topics`);
      const message_thread_id = room.lastMessageId + 1;
      const created = { message_thread_id, is_topic_message: true, forum_topic_created: { name, icon_color: 7322096 } };
      const from = room.person ?? ANONYMOUS_ADMIN;
      const { message } = world.add(room, { from, ...created });
      room.topics.set(message_thread_id, message);
      updates.push("message", message);
      return message_thread_id;
    },
    says(chat, user, text, options = {}) {
      if (text.length > TEXT_LIMIT.max) throw new Error("the platform's apps split so long a text: say it in parts");
      const room = world.roomOf(chat);
      room.members.set(user.id, user);
      return options.edit === undefined
        ? says(deps, room, user, text, options)
        : edits(deps, room, options.edit, text, options);
    },
    presses: (user, chat, message, label) => presses(deps, world.roomOf(chat), user, message, label),
    stopsDraft(chat, draftId) {
      const room = world.roomOf(chat);
      const draft = room.drafts.findLast((shown) => shown.draftId === draftId && !shown.gone);
      if (draft?.canStop !== true) throw new Error(`no draft ${draftId} with a stop button in chat ${room.id}`);
      const thread = draft.thread === undefined ? {} : { message_thread_id: draft.thread };
      updates.push("stopped_message_generation", { chat: chatForm(room), ...thread, draft_id: draftId });
    },
    blocks: (chat) => standing(deps, world.roomOf(chat), false),
    unblocks: (chat) => standing(deps, world.roomOf(chat), true),
    deletes(chat, messageId) {
      const entry = world.roomOf(chat).entries.get(messageId);
      if (entry === undefined) throw new Error(`no message ${messageId}`);
      entry.deleted = true;
    },
    migrates(chat, id) {
      const old = world.roomOf(chat);
      const room = world.addRoom({ id, kind: "supergroup", title: old.title, forum: false });
      join(room, [...old.members.values()]);
      const from = ANONYMOUS_ADMIN;
      updates.push("message", world.add(old, { from, migrate_to_chat_id: id }).message);
      updates.push("message", world.add(room, { from, migrate_from_chat_id: old.id }).message);
      old.migratedTo = id;
      return room;
    },
  };
}

function says({ world, updates }: Deps, room: RoomState, user: User, text: string, options: SayOptions): Message {
  const form = {
    ...author(room, user, options.senderChat),
    ...place(room, options),
    ...(options.forward !== undefined && { forward_origin: origin(options.forward, world.nowS()) }),
    ...(options.album !== undefined && {
      media_group_id: `1390${[...options.album].map((c) => c.codePointAt(0)).join("")}`,
    }),
    ...content(world, text, options),
  };
  const { message } = world.add(room, form);
  updates.push("message", message);
  return message;
}

function edits({ world, updates }: Deps, room: RoomState, id: number, text: string, options: SayOptions): Message {
  const entry = room.entries.get(id);
  if (entry === undefined) throw new Error(`no message ${id} in chat ${room.id}`);
  entry.message = {
    ...entry.message,
    ...content(world, text, options, entry.message),
    edit_date: world.nowS(),
  } as Message;
  entry.edits++;
  updates.push("edited_message", entry.message);
  return entry.message;
}

/** The text, or the medium with the text as its caption. */
function content(world: World, text: string, options: SayOptions, before?: Message): object {
  const entities = options.entities ?? foundEntities(text);
  const media = mediaForm(world, options);
  const captioned = media !== undefined || (before !== undefined && before.text === undefined);
  if (captioned)
    return {
      ...media,
      ...(text !== "" && { caption: text }),
      ...(entities.length > 0 && { caption_entities: entities }),
    };
  return { text, ...(entities.length > 0 && { entities }) };
}

function author(room: RoomState, user: User, senderChat: SayOptions["senderChat"]): object {
  if (senderChat === undefined) return { from: user };
  if (senderChat.id === room.id) return { from: ANONYMOUS_ADMIN, sender_chat: chatForm(room) };
  return { from: CHANNEL_BOT, sender_chat: { id: senderChat.id, title: senderChat.title, type: "channel" } };
}

/**
 * Where it stands. In a topic each message that answers none "replies" to the message that made the topic; in a supergroup
 * without topics an answer carries the id of its reply thread, which is no topic (core.telegram.org/bots/api#message,
 * "message_thread_id" and "is_topic_message").
 */
function place(room: RoomState, { thread, replyTo }: SayOptions): object {
  const answered = replyTo === undefined ? undefined : room.entries.get(replyTo)?.message;
  if (replyTo !== undefined && answered === undefined) throw new Error(`no message ${replyTo} in chat ${room.id}`);
  const { reply_to_message: _, ...shallow } = answered ?? {};
  const reply = answered === undefined ? {} : { reply_to_message: shallow };
  if (thread !== undefined) {
    const root = room.topics.get(thread);
    if (root === undefined) throw new Error(`no topic ${thread} in chat ${room.id}`);
    return { reply_to_message: root, ...reply, message_thread_id: thread, is_topic_message: true };
  }
  const inThread = room.kind === "supergroup" && answered !== undefined;
  return { ...reply, ...(inThread && { message_thread_id: answered.message_thread_id ?? answered.message_id }) };
}

/** core.telegram.org/bots/api#messageorigin */
function origin(forward: User | string, date: number): object {
  if (typeof forward === "string") return { type: "hidden_user", date, sender_user_name: forward };
  return { type: "user", date, sender_user: forward };
}

function presses(
  { updates, queries }: Deps,
  room: RoomState,
  from: User,
  { id: messageId }: SeenMessage,
  label: string,
): string {
  const message = room.entries.get(messageId)?.message;
  const button = message?.reply_markup?.inline_keyboard.flat().find(({ text }) => text === label);
  if (button === undefined || !("callback_data" in button))
    throw new Error(`message ${messageId} has no button ${label}`);
  const id = `${4_382_000_000_000 + queries.size}`;
  queries.set(id, { answered: false });
  updates.push("callback_query", { id, from, message, chat_instance: `${room.id}7`, data: button.callback_data });
  return id;
}

/** core.telegram.org/bots/api#update, "my_chat_member": in a private chat it comes when the person blocks or unblocks the bot. */
function standing({ world, updates }: Deps, room: RoomState, open: boolean): void {
  const places = {
    private: "",
    group: "bot was kicked from the group chat",
    supergroup: "bot was kicked from the supergroup chat",
  };
  room.closed = open ? undefined : places[room.kind] || "bot was blocked by the user";
  room.refusedSends = 0;
  const member = (isMember: boolean) => ({
    user: world.bot,
    ...(isMember ? { status: "member" } : { status: "kicked", until_date: 0 }),
  });
  const change = { old_chat_member: member(!open), new_chat_member: member(open) };
  const kind: UpdateKind = "my_chat_member";
  updates.push(kind, { chat: chatForm(room), from: room.person ?? ANONYMOUS_ADMIN, date: world.nowS(), ...change });
}
