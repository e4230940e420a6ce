// Owns: which texts and entities the platform takes, and what becomes of them. Pure.
import type { MessageEntity } from "grammy/types";
import { parseHtml } from "./html-rules.ts";
import { breach } from "./wire.ts";

export interface Formatted {
  readonly text: string;
  readonly entities: readonly MessageEntity[];
}

export interface GivenText {
  readonly text: string;
  readonly parseMode: string | undefined;
  readonly entities: unknown;
}

/** core.telegram.org/bots/api#sendmessage: "1-4096 characters after entities parsing". */
export const TEXT_LIMIT = { max: 4096, tooLong: "message is too long", empty: "message text is empty" };
/** core.telegram.org/bots/api#senddocument: a caption of "0-1024 characters after entities parsing". */
export const CAPTION_LIMIT = { max: 1024, tooLong: "message caption is too long", empty: undefined };
/** core.telegram.org/bots/api#sendmessagedraft: "0-4096 characters after entities parsing", empty for a placeholder. */
export const DRAFT_LIMIT = { max: 4096, tooLong: "message is too long", empty: undefined };

/** The text as people see it: markup read, white space at both ends gone, within the limit (in UTF-16 units). */
export function readText(
  given: GivenText,
  limit: { max: number; tooLong: string; empty: string | undefined },
): Formatted {
  const formatted = trimmed(parse(given));
  if (formatted.text === "" && limit.empty !== undefined) breach(limit.empty);
  if (formatted.text.length > limit.max) breach(limit.tooLong);
  return formatted;
}

function parse({ text, parseMode, entities }: GivenText): Formatted {
  if (parseMode === undefined || parseMode === "") return { text, entities: readEntities(text, entities) };
  // The platform knows Markdown and MarkdownV2 too; this fake does not, and says so rather than let it pass unread.
  if (parseMode.toLowerCase() !== "html") breach("unsupported parse_mode");
  const formatted = parseHtml(text);
  checkNesting(formatted.entities);
  return formatted;
}

// core.telegram.org/bots/api#messageentity
const TYPES = new Set(
  `mention hashtag cashtag bot_command url email phone_number bold italic underline strikethrough spoiler blockquote
  expandable_blockquote code pre text_link text_mention custom_emoji date_time`.split(/\s+/),
);

function readEntities(text: string, given: unknown): readonly MessageEntity[] {
  if (given === undefined) return [];
  if (!Array.isArray(given)) unparsable("expected an Array of MessageEntity");
  const entities = given.map((entity) => readEntity(text, entity)).sort(outerFirst);
  checkNesting(entities);
  return entities;
}

function readEntity(text: string, entity: unknown): MessageEntity {
  if (typeof entity !== "object" || entity === null) unparsable("entity must be an Object");
  const { type, offset, length, url, user } = entity as Record<string, unknown>;
  if (typeof type !== "string" || !TYPES.has(type)) unparsable(`unsupported entity type ${JSON.stringify(type)}`);
  if (!isCount(offset) || !isCount(length)) unparsable("offset and length must be non-negative Integers");
  // The platform drops an entity that is empty or reaches out of the text; sent by a client it is a fault all the same.
  if (length === 0 || offset + length > text.length)
    unparsable(`ENTITY_BOUNDS_INVALID: ${type} at ${offset}+${length}`);
  if (splitsPair(text, offset)) unparsable(`entity beginning in the middle of a UTF-16 symbol at offset ${offset}`);
  if (splitsPair(text, offset + length))
    unparsable(`entity ending in the middle of a UTF-16 symbol at ${offset + length}`);
  if (type === "text_link" && typeof url !== "string") unparsable("text_link needs a url");
  if (type === "text_mention" && (typeof user !== "object" || user === null)) unparsable("text_mention needs a user");
  return entity as MessageEntity;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/** core.telegram.org/bots/api#messageentity: offsets count UTF-16 code units; a character is not cut in two. */
function splitsPair(text: string, at: number): boolean {
  return /[\uD800-\uDBFF]/.test(text.charAt(at - 1)) && /[\uDC00-\uDFFF]/.test(text.charAt(at));
}

function unparsable(why: string): never {
  breach(`can't parse entities: ${why}`);
}

const outerFirst = (one: MessageEntity, other: MessageEntity) => one.offset - other.offset || other.length - one.length;

const STYLES = new Set(["bold", "italic", "underline", "strikethrough", "spoiler"]);
const CODE = new Set(["code", "pre"]);
const QUOTES = new Set(["blockquote", "expandable_blockquote"]);

/**
 * core.telegram.org/bots/api#formatting-options: of two entities with common characters one contains the other; styles mix with
 * all but pre and code; quotations do not nest; the others do not contain each other. A quotation may hold the others.
 */
function checkNesting(entities: readonly MessageEntity[]): void {
  for (const [index, outer] of entities.entries()) {
    for (const inner of entities.slice(index + 1)) {
      if (inner.offset >= outer.offset + outer.length) continue;
      if (inner.offset + inner.length > outer.offset + outer.length)
        unparsable(`${outer.type} and ${inner.type} cross`);
      const same = inner.offset === outer.offset && inner.length === outer.length;
      const nests = mayHold(outer.type, inner.type) || (same && mayHold(inner.type, outer.type));
      if (!nests) unparsable(`${inner.type} inside ${outer.type}`);
    }
  }
}

function mayHold(outer: string, inner: string): boolean {
  if (QUOTES.has(outer)) return !QUOTES.has(inner);
  if (CODE.has(outer) || CODE.has(inner)) return false;
  return STYLES.has(outer) || STYLES.has(inner);
}

/** White space at both ends is not kept; entities move with the text. */
function trimmed({ text, entities }: Formatted): Formatted {
  const start = text.length - text.trimStart().length;
  const kept = text.trim();
  const moved = entities.flatMap((entity) => {
    const from = Math.max(0, entity.offset - start);
    const to = Math.min(kept.length, entity.offset + entity.length - start);
    return to > from ? [{ ...entity, offset: from, length: to - from }] : [];
  });
  return { text: kept, entities: moved };
}

/** The entities that the platform finds by itself in what a person writes: commands and mentions by name. */
export function foundEntities(text: string): MessageEntity[] {
  const pattern =
    /(?<![\w/<>])(?<bot_command>\/\w{1,64}(?:@\w{3,32})?)(?![\w@/<>])|(?<![\w@/])(?<mention>@\w{3,32})\b/g;
  return [...text.matchAll(pattern)].map((match) => ({
    type: match.groups?.["bot_command"] === undefined ? "mention" : "bot_command",
    offset: match.index,
    length: match[0].length,
  }));
}
