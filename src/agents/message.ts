// Owns: what a channel's message holds beside its text, as it is stored with the command, and how the model is told of it.
import { z } from "zod";
import { visible } from "../kernel/visible.ts";
import type { Command } from "../store/commands.ts";
import type { ImageRef } from "../turns/backends/port.ts";

const attachment = z.object({
  kind: z.enum(["image", "voice", "audio", "video", "document"]),
  /** The platform's id, by which the channel can download it. */
  ref: z.string(),
  name: z.string().optional(),
  mediaType: z.string().optional(),
  bytes: z.number().optional(),
});
export type StoredAttachment = z.infer<typeof attachment>;

const messageExtra = z.object({
  /** The platform's ids of the messages that it came as: the first is answered, any of them may be edited. */
  refs: z.array(z.string()).min(1),
  /** Who wrote, where several do. */
  author: z.string().optional(),
  quoted: z.object({ author: z.string(), text: z.string() }).optional(),
  attachments: z.array(attachment).default([]),
  album: z.string().optional(),
  /** Its last piece was as long as the platform lets a message be: what follows may be its rest. */
  full: z.boolean().default(false),
});
export type MessageExtra = z.infer<typeof messageExtra>;

const stored = z.object({ message: messageExtra.optional() });

/** Undefined for a message of page, terminal or API. */
export function messageExtraOf(command: Pick<Command, "extra">): MessageExtra | undefined {
  return command.extra === undefined ? undefined : stored.parse(JSON.parse(command.extra)).message;
}

export function storedExtra(message: MessageExtra): string {
  return JSON.stringify({ message } satisfies z.infer<typeof stored>);
}

/** What was made of the attachments of a message before its turn. */
export interface Media {
  /** One line each, for what is no image that can be shown. */
  readonly lines: readonly string[];
  readonly images: readonly ImageRef[];
}

/** Makes attachments usable. Never rejects: what cannot be had is said in a line. */
export type ReadMedia = (command: Command, extra: MessageExtra, signal: AbortSignal) => Promise<Media>;

const MAX_QUOTE_CHARS = 1_000;

/** The text of a message as the model sees it. Other people's words stand in brackets and are marked as theirs. */
export function shownText(text: string, extra: MessageExtra | undefined, media: Media): string {
  if (extra === undefined) return text;
  const { author, quoted } = extra;
  const quote = quoted === undefined ? [] : [`[Answers ${visible(quoted.author)}: "${beginning(quoted.text)}"]`];
  const own = text === "" ? [] : [author === undefined ? text : `[${author}] ${text}`];
  return [...quote, ...own, ...media.lines].join("\n");
}

/** Never ends in half a character: some endpoints refuse the whole request then. */
function beginning(text: string): string {
  return text.slice(0, MAX_QUOTE_CHARS).replace(/[\uD800-\uDBFF]$/, "");
}

/** For a message whose turn never came to read them. */
export function unreadMedia(extra: MessageExtra | undefined): Media {
  const attachments = extra?.attachments ?? [];
  return { lines: attachments.map(({ kind, name }) => `[${kind}${name === undefined ? "" : ` ${name}`}]`), images: [] };
}
