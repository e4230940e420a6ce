// Owns: Markdown (GitHub flavour) to tokens within bounded time and depth, whatever the text. Knows no platform. Pure.
import { Lexer, type MarkedToken, type Token, Tokenizer } from "marked";
import { chunksOf } from "./chunks.ts";

/** Quotes and lists within each other; no one reads deeper, and the parser recurses. */
const MAX_BLOCK_DEPTH = 8;
/** Emphasis and links within each other. */
const MAX_INLINE_DEPTH = 10;
/** The parser is quadratic in the length of one paragraph: a longer one is read in slices of about so many units, */
const MAX_INLINE_UNITS = 1_500;
/** or of so many when there is no blank to cut it at: a word such as a long address. */
const MAX_WORD_UNITS = 3_000;
/** Cells of one table: every row is filled up to the width of the header, which multiplies. */
const MAX_TABLE_CELLS = 20_000;
/** A line and under it one of only what rules a table: anything else is no table and need not be counted. */
const TABLE_START = /^[^\n]+\n[ \t|:-]+(?:\n|$)/;
/** How often the parser may read the whole text again (each nesting does, continued quotes do twice) before it counts as tangled. */
const MAX_READS = 60;
/** So that a short text is not called tangled. */
const MIN_READ_UNITS = 200_000;

const KNOWN: ReadonlySet<string> = new Set<MarkedToken["type"]>([
  "blockquote",
  "br",
  "checkbox",
  "code",
  "codespan",
  "def",
  "del",
  "em",
  "escape",
  "heading",
  "hr",
  "html",
  "image",
  "link",
  "list",
  "list_item",
  "paragraph",
  "space",
  "strong",
  "table",
  "text",
]);

/**
 * The blocks of the text, or undefined when it is too tangled to read: then it is to be shown as it is. What is nested too deep
 * stays in the source's own characters. Never throws; 100 kB take well below a second, also when made to take long (Q7.1).
 */
export function parseMarkdown(markdown: string): readonly MarkedToken[] | undefined {
  try {
    return known(read(markdown));
  } catch {
    // Stack, budget or a fault of the parser: each means that this text cannot be read as Markdown, and the caller shows it plainly.
    return undefined;
  }
}

/** Without extensions the parser makes no other tokens; this tells the compiler. */
export function known(tokens: readonly Token[]): readonly MarkedToken[] {
  return tokens.filter((token): token is MarkedToken => KNOWN.has(token.type));
}

/** Block by block, and then, when all definitions of links are known, what stands within the blocks. */
function read(markdown: string): readonly Token[] {
  const tokenizer = new Tokenizer();
  const lexer = boundedLexer(tokenizer, markdown.length);
  for (const chunk of chunksOf(markdown, (text) => tokenizer.fences(text)?.raw.length ?? 0)) {
    lexer.blockTokens(chunk, lexer.tokens);
  }
  return lexer.lex("");
}

interface Left {
  units: number;
  blocks: number;
  inlines: number;
}

function boundedLexer(tokenizer: Tokenizer, units: number): Lexer {
  // Its own options: the defaults of the library are one object for the whole process.
  const lexer = new Lexer({ gfm: true, tokenizer });
  const left = {
    units: Math.max(MIN_READ_UNITS, units * MAX_READS),
    blocks: MAX_BLOCK_DEPTH,
    inlines: MAX_INLINE_DEPTH,
  };
  boundTables(tokenizer);
  tokenizer.blockquote = bounded(left, tokenizer.blockquote.bind(tokenizer));
  tokenizer.list = bounded(left, tokenizer.list.bind(tokenizer));
  boundInlines(lexer, left);
  return lexer;
}

function spend(left: Left, units: number): void {
  left.units -= units;
  if (left.units < 0)
    throw new RangeError("expected Markdown that is read in a few passes, got one that needs too many");
}

/** Reads a block that holds blocks; what lies deeper than allowed is no such block, hence text. */
function bounded<T extends { raw: string }>(left: Left, read: (src: string) => T | undefined) {
  return (src: string): T | undefined => {
    if (left.blocks === 0) return undefined;
    left.blocks--;
    const token = read(src);
    left.blocks++;
    spend(left, token?.raw.length ?? 0);
    return token;
  };
}

function boundInlines(lexer: Lexer, left: Left): void {
  const inlineTokens = lexer.inlineTokens.bind(lexer);
  lexer.inlineTokens = (src: string, tokens: Token[] = []) => {
    spend(left, src.length);
    if (left.inlines === 0) {
      tokens.push({ type: "text", raw: src, text: src, escaped: true });
      return tokens;
    }
    left.inlines--;
    for (const slice of slices(src)) inlineTokens(slice, tokens);
    left.inlines++;
    return tokens;
  };
}

/** Cut before a line or a word where there is one: emphasis over the cut stays unread, no character is lost. */
function slices(src: string): string[] {
  const found: string[] = [];
  let from = 0;
  while (src.length - from > MAX_INLINE_UNITS) {
    const cut = sliceEnd(src, from);
    found.push(src.slice(from, cut));
    from = cut;
  }
  found.push(src.slice(from));
  return found;
}

function sliceEnd(src: string, from: number): number {
  const near = src.slice(from, from + MAX_INLINE_UNITS);
  const before = Math.max(near.lastIndexOf("\n"), 0) || near.lastIndexOf(" ");
  if (before > 0) return from + before;
  const word = src.slice(from + 1, from + MAX_WORD_UNITS).search(/[ \n]/);
  return word < 0 ? Math.min(from + MAX_WORD_UNITS, src.length) : from + 1 + word;
}

/** The pipes of the first line by the lines up to the next blank one: at least as many cells as the table would get. */
function cellsOf(src: string, units: number): number {
  const block = src.slice(0, units).split("\n");
  return (block[0] ?? "").split("|").length * block.length;
}

/** Refuses tables that are too large, and does not count the same lines again for each of them. */
function boundTables(tokenizer: Tokenizer): void {
  const table = tokenizer.table.bind(tokenizer);
  let refusedUntil = Number.POSITIVE_INFINITY;
  tokenizer.table = (src) => {
    if (!TABLE_START.test(src)) return undefined;
    if (src.length > refusedUntil) return undefined;
    const blank = src.indexOf("\n\n");
    const units = blank < 0 ? src.length : blank;
    if (cellsOf(src, units) <= MAX_TABLE_CELLS) return table(src);
    refusedUntil = src.length - units;
    return undefined;
  };
}
