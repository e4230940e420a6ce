// Owns: the markup of a Telegram message as entities: what is kept with an outgoing part, and which addresses may be linked.
// (core.telegram.org/bots/api#messageentity and #formatting-options)
import { z } from "zod";
import type { StyledSpan } from "../text/styled.ts";

/** Telegram ignores the markup beyond so many entities of one message. */
export const MAX_ENTITIES = 100;

const range = { offset: z.int().nonnegative(), length: z.int().positive() };

const telegramEntity = z.discriminatedUnion("type", [
  z.object({ type: z.enum(["bold", "italic", "strikethrough", "blockquote", "code"]), ...range }),
  z.object({ type: z.literal("pre"), ...range, language: z.string().exactOptional() }),
  z.object({ type: z.literal("text_link"), ...range, url: z.string() }),
]);
export type TelegramEntity = z.infer<typeof telegramEntity>;

/** `extra` of a part for Telegram: the markup of its text, or that its text is the content of a document of this name. */
export const telegramExtra = z.object({
  entities: z.array(telegramEntity).max(MAX_ENTITIES).exactOptional(),
  file: z.object({ name: z.string().min(1) }).exactOptional(),
});
export type TelegramExtra = z.infer<typeof telegramExtra>;

export function entityOf({ from, to, style }: StyledSpan): TelegramEntity {
  const at = { offset: from, length: to - from };
  switch (style.kind) {
    case "pre":
      return { type: "pre", ...at, ...(style.language === undefined ? {} : { language: style.language }) };
    case "link":
      return { type: "text_link", ...at, url: style.url };
    case "strike":
      return { type: "strikethrough", ...at };
    case "quote":
      return { type: "blockquote", ...at };
    default:
      return { type: style.kind, ...at };
  }
}

/** Longer addresses are written out; markup that is too large is refused as a whole. */
const MAX_URL_UNITS = 2_000;

/**
 * The address when Telegram links it, else undefined (INJ-2): http and https with a host that has a dot or is an IPv6 address, and
 * tg. Any other makes Telegram refuse the whole message ("entity URL … is invalid"), or, like mailto, turns into a link to
 * a wrong web page. `tg://user` is no link: it would mention, and so notify, a person.
 */
export function linkTarget(href: string): string | undefined {
  if (href.length > MAX_URL_UNITS || !URL.canParse(href)) return undefined;
  const { protocol, hostname, host } = new URL(href);
  if (protocol === "tg:")
    return /^tg:\/\/[\w-]+(?:[/?#]\S*)?$/i.test(href) && host.toLowerCase() !== "user" ? href : undefined;
  if (protocol !== "http:" && protocol !== "https:") return undefined;
  const isLinked = /^https?:\/\/[^\s/\\?#]/i.test(href) && (hostname.includes(".") || hostname.startsWith("["));
  return isLinked ? href : undefined;
}
