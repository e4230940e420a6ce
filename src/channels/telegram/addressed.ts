// Owns: whether a message means this bot, and its text without the words that only say so. Pure. Whether it must be meant is the
// host's decision.
import type { ChannelEvent } from "../port.ts";
import type { Bot, Entity, Message } from "./schema.ts";

export interface Addressed {
  readonly addressed: ChannelEvent["addressed"];
  readonly text: string;
}

/** Entities count in UTF-16 units, as JavaScript strings do. https://core.telegram.org/bots/api#messageentity */
export function addressedTo(bot: Bot, message: Message): Addressed {
  const text = message.text ?? message.caption ?? "";
  const entities = (message.text === undefined ? message.caption_entities : message.entities) ?? [];
  const command = leadingCommand(text, entities);
  // Written to another bot of the chat; its text is not ours to touch.
  if (command?.at !== undefined && !isName(command.at, bot)) return { addressed: "none", text };

  const mentions = entities.filter((entity) => mentionsBot(entity, text, bot));
  const cut = command?.at === undefined ? mentions : [...mentions, suffixOf(command)];
  return { addressed: reasonOf(command, mentions, isReplyTo(bot, message)), text: without(text, cut) };
}

function reasonOf(command: Command | undefined, mentions: readonly Span[], reply: boolean): ChannelEvent["addressed"] {
  if (command !== undefined) return "command";
  if (mentions.length > 0) return "mention";
  return reply ? "reply" : "none";
}

interface Span {
  readonly offset: number;
  readonly length: number;
}

interface Command {
  /** The bot that the command names, if any. */
  readonly at: string | undefined;
  readonly end: number;
}

/** Only a command at the very start is one; in the middle of a text it is talk about it. */
function leadingCommand(text: string, entities: readonly Entity[]): Command | undefined {
  const entity = entities.find(({ type, offset }) => type === "bot_command" && offset === 0);
  if (entity === undefined) return undefined;
  const [, at] = text.slice(0, entity.length).split("@");
  return { at, end: entity.length };
}

function suffixOf(command: Command): Span {
  const length = (command.at?.length ?? 0) + 1;
  return { offset: command.end - length, length };
}

function mentionsBot(entity: Entity, text: string, bot: Bot): boolean {
  if (entity.type === "text_mention") return entity.user?.id === bot.id;
  return entity.type === "mention" && isName(text.slice(entity.offset + 1, entity.offset + entity.length), bot);
}

/** Usernames are compared without case: https://core.telegram.org/api/links#public-username-links */
function isName(name: string, bot: Bot): boolean {
  return bot.username !== undefined && name.toLowerCase() === bot.username.toLowerCase();
}

/** Each message of a topic "replies" to the message that made the topic, which may have been the bot's. That is no reply. */
function isReplyTo(bot: Bot, message: Message): boolean {
  const replied = message.reply_to_message;
  return replied?.from?.id === bot.id && replied.forum_topic_created === undefined;
}

/** The text without the spans, and without the comma that followed a name. */
function without(text: string, spans: readonly Span[]): string {
  if (spans.length === 0) return text;
  let rest = text;
  for (const { offset, length } of [...spans].sort((a, b) => b.offset - a.offset)) {
    const before = rest.slice(0, offset);
    const after = rest.slice(offset + length);
    rest = /(^|\s)$/.test(before) ? before + after.replace(/^[ \t]*[,:]?[ \t]*/, "") : before + after;
  }
  return rest.trim();
}
