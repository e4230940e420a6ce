// Owns: reading the platform's HTML into text and entities, or refusing it. core.telegram.org/bots/api#html-style. Pure.
import type { MessageEntity } from "grammy/types";
import { breach } from "./wire.ts";

const TYPE_OF_TAG: Readonly<Record<string, MessageEntity["type"]>> = {
  b: "bold",
  strong: "bold",
  i: "italic",
  em: "italic",
  u: "underline",
  ins: "underline",
  s: "strikethrough",
  strike: "strikethrough",
  del: "strikethrough",
  "tg-spoiler": "spoiler",
  code: "code",
  pre: "pre",
  blockquote: "blockquote",
  a: "text_link",
};

// "The API currently supports only the following named HTML entities"; numerical ones are all supported.
const NAMED: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"' };

interface OpenTag {
  readonly tag: string;
  readonly attributes: string;
  readonly offset: number;
}

/** "All <, > and & symbols that are not a part of a tag or an HTML entity must be replaced"; every tag must be closed. */
export function parseHtml(html: string): { text: string; entities: MessageEntity[] } {
  const open: OpenTag[] = [];
  const entities: MessageEntity[] = [];
  let text = "";
  for (const [piece] of html.matchAll(/<[^>]*>?|[^<]+/g)) {
    if (!piece.startsWith("<")) {
      text += decoded(piece);
      continue;
    }
    const tag = readTag(piece);
    if (!tag.closing) {
      open.push({ tag: tag.name, attributes: tag.attributes, offset: text.length });
      continue;
    }
    const opened = open.pop();
    if (opened?.tag !== tag.name) unparsable(`unmatched end tag "</${tag.name}>", expected "</${opened?.tag ?? ""}>"`);
    entities.push(...entityOf(opened, text.length));
  }
  const left = open.pop();
  if (left !== undefined) unparsable(`can't find end tag corresponding to start tag "${left.tag}"`);
  // Inner tags end first: turned round, an outer one stands before an inner one of the same extent.
  return {
    text,
    entities: withLanguages(entities.reverse().sort((a, b) => a.offset - b.offset || b.length - a.length)),
  };
}

function readTag(piece: string): { closing: boolean; name: string; attributes: string } {
  const match = /^<(\/?)([a-zA-Z][\w-]*)(\s[^>]*)?>$/.exec(piece);
  const name = match?.[2]?.toLowerCase() ?? "";
  const attributes = match?.[3] ?? "";
  const known =
    name in TYPE_OF_TAG || (name === "span" && (match?.[1] === "/" || /class="tg-spoiler"/.test(attributes)));
  if (!known) unparsable(`unsupported start tag "${name}" in ${JSON.stringify(piece.slice(0, 40))}`);
  return { closing: match?.[1] === "/", name, attributes };
}

function entityOf({ tag, attributes, offset }: OpenTag, end: number): MessageEntity[] {
  const length = end - offset;
  if (length === 0) return [];
  const at = { offset, length };
  const value = (name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1];
  if (tag === "a") {
    const url = value("href");
    return url === undefined || url === "" ? [] : [{ type: "text_link", url: decoded(url), ...at }];
  }
  if (tag === "blockquote" && /\bexpandable\b/.test(attributes)) return [{ type: "expandable_blockquote", ...at }];
  if (tag === "pre") return [{ type: "pre", ...at }];
  if (tag === "code") {
    const language = /^language-(.+)$/.exec(value("class") ?? "")?.[1];
    return [{ type: "code", ...(language !== undefined && { language }), ...at }];
  }
  return [{ type: tag === "span" ? "spoiler" : TYPE_OF_TAG[tag], ...at } as MessageEntity];
}

/** `<pre><code class="language-x">` is one block with a language; a language elsewhere says nothing. */
function withLanguages(entities: readonly MessageEntity[]): MessageEntity[] {
  return entities.flatMap((entity, index): MessageEntity[] => {
    const { language, ...rest } = entity as MessageEntity & { language?: string };
    const covers = (other: MessageEntity | undefined, type: MessageEntity["type"]) =>
      other?.type === type && other.offset === entity.offset && other.length === entity.length;
    if (entity.type === "pre") {
      const inner = entities.slice(index + 1).find((other) => covers(other, "code")) as
        | { language?: string }
        | undefined;
      return [{ ...entity, ...(inner?.language !== undefined && { language: inner.language }) }];
    }
    if (entity.type !== "code") return [entity];
    return language !== undefined && entities.some((other) => covers(other, "pre")) ? [] : [rest as MessageEntity];
  });
}

function decoded(text: string): string {
  return text.replace(/&(?:#x([0-9a-fA-F]+)|#(\d+)|(\w+));/g, (whole, hex, decimal, name) => {
    if (name !== undefined) return NAMED[name] ?? whole;
    return String.fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16));
  });
}

function unparsable(why: string): never {
  breach(`can't parse entities: ${why}`);
}
