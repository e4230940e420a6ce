// Owns: what exists on the platform: people, chats, topics, messages, drafts and files. It makes no update and knows no call.
import type { Chat, InlineKeyboardButton, Message, MessageEntity, User } from "grammy/types";
import type { Clock } from "../../../src/kernel/clock.ts";

export interface Room {
  /** A person's id in a private chat; negative otherwise, with the prefix -100 for a supergroup. */
  readonly id: number;
  readonly kind: "private" | "group" | "supergroup";
  readonly title: string | undefined;
  /** Whether it is divided into topics. */
  readonly forum: boolean;
}

export interface StoredFile {
  readonly id: string;
  readonly name: string | undefined;
  readonly type: string | undefined;
  readonly bytes: Uint8Array;
  /** As the platform says; a test may claim more than there is. */
  readonly size: number;
  readonly path: string;
}

/** A message as people see it at this moment. */
export interface SeenMessage {
  readonly id: number;
  readonly byBot: boolean;
  readonly fromId: number | undefined;
  /** The text or the caption. */
  readonly text: string;
  readonly entities: readonly MessageEntity[];
  readonly thread: number | undefined;
  readonly replyTo: number | undefined;
  readonly document: { readonly name: string | undefined; readonly content: Uint8Array } | undefined;
  readonly buttons: readonly InlineKeyboardButton[];
  readonly linkPreview: unknown;
  /** The bot's reactions. */
  readonly reactions: readonly string[];
  readonly edits: number;
  readonly message: Message;
}

export interface Draft {
  readonly draftId: number;
  readonly text: string;
  readonly entities: readonly MessageEntity[];
  readonly thread: number | undefined;
  readonly canStop: boolean;
  /** Monotonic, ms. */
  readonly shownMs: number;
  /** A message of the bot has taken its place. */
  gone: boolean;
}

export interface Entry {
  message: Message;
  readonly byBot: boolean;
  edits: number;
  deleted: boolean;
  linkPreview: unknown;
  reactions: readonly string[];
  readonly file: StoredFile | undefined;
}

export interface RoomState extends Room {
  readonly person: User | undefined;
  readonly entries: Map<number, Entry>;
  readonly topics: Map<number, Message>;
  readonly members: Map<number, User>;
  readonly drafts: Draft[];
  lastMessageId: number;
  /** Why the bot may not write here any more. */
  closed: string | undefined;
  /** How often the bot wrote although it was told that it may not. */
  refusedSends: number;
  migratedTo: number | undefined;
}

export interface World {
  readonly bot: User;
  readonly people: Map<number, User>;
  readonly files: Map<string, StoredFile>;
  addRoom(room: Room, person?: User): RoomState;
  room(chat: number): RoomState | undefined;
  /** The same for a test's verbs, where a missing chat is the test's mistake. */
  roomOf(chat: Room | number): RoomState;
  /** Adds a message, with its id and date. `over` is its form without them. */
  add(room: RoomState, over: object, more?: Partial<Pick<Entry, "byBot" | "linkPreview" | "file">>): Entry;
  addFile(file: { name?: string | undefined; type?: string | undefined; bytes: Uint8Array; size?: number }): StoredFile;
  seen(chat: Room | number): readonly SeenMessage[];
  nowS(): number;
}

export function makeWorld(clock: Clock, bot: User): World {
  const rooms = new Map<number, RoomState>();
  const files = new Map<string, StoredFile>();
  // core.telegram.org/bots/api#message: the date is in Unix time, seconds.
  const nowS = () => Math.floor(clock.now() / 1000);
  const roomOf = (chat: Room | number) => {
    const id = typeof chat === "number" ? chat : chat.id;
    const room = rooms.get(id);
    if (room === undefined) throw new Error(`the test uses a chat that it did not make: ${id}`);
    return room;
  };
  return {
    bot,
    people: new Map([[bot.id, bot]]),
    files,
    nowS,
    roomOf,
    room: (chat) => rooms.get(chat),
    addRoom(room, person) {
      const state: RoomState = {
        ...{ ...room, person, entries: new Map(), topics: new Map(), members: new Map([[bot.id, bot]]), drafts: [] },
        ...{ lastMessageId: 0, closed: undefined, refusedSends: 0, migratedTo: undefined },
      };
      rooms.set(room.id, state);
      return state;
    },
    add(room, over, { byBot = false, linkPreview, file } = {}) {
      const message_id = ++room.lastMessageId;
      const message = { message_id, date: nowS(), chat: chatForm(room), ...over } as unknown as Message;
      const entry: Entry = { message, byBot, edits: 0, deleted: false, linkPreview, reactions: [], file };
      room.entries.set(message_id, entry);
      return entry;
    },
    addFile({ name, type, bytes, size = bytes.length }) {
      const id = `AgACAgIAAxk${(files.size + 1).toString().padStart(8, "0")}`;
      const file = {
        id,
        name,
        type,
        bytes,
        size,
        path: `documents/file_${files.size + 1}${/\.\w+$/.exec(name ?? "")?.[0] ?? ""}`,
      };
      files.set(id, file);
      return file;
    },
    seen: (chat) => [...roomOf(chat).entries.values()].filter(({ deleted }) => !deleted).map(seenForm),
  };
}

/** core.telegram.org/bots/api#chat */
export function chatForm({ id, kind, title, forum, person }: RoomState): Chat {
  const { first_name, username } = person ?? { first_name: "" };
  if (kind === "private") return { id, type: "private", first_name, ...(username !== undefined && { username }) };
  const common = { id, title: title ?? "" };
  return kind === "group"
    ? { ...common, type: "group" }
    : { ...common, type: "supergroup", ...(forum && { is_forum: true }) };
}

function seenForm({ message, byBot, edits, linkPreview, reactions, file }: Entry): SeenMessage {
  return {
    ...{ id: message.message_id, byBot, fromId: message.from?.id },
    ...{ text: message.text ?? message.caption ?? "", entities: message.entities ?? message.caption_entities ?? [] },
    ...{ thread: message.message_thread_id, replyTo: message.reply_to_message?.message_id },
    document: message.document && file && { name: file.name, content: file.bytes },
    buttons: message.reply_markup?.inline_keyboard.flat() ?? [],
    ...{ linkPreview, reactions, edits, message },
  };
}
