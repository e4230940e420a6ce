// Owns: the blocks of a Markdown text as plain text with styles, for platforms that take markup by position. What the platform has
// no markup for is written in characters. HTML is never interpreted. Knows no platform.
import type { MarkedToken, Tokens } from "marked";
import { type LinkTarget, plainInline, writeInline } from "./inline.ts";
import { known } from "./parse.ts";
import { makeWriter, type StyledText, type Writer } from "./styled.ts";
import { alignTable } from "./table.ts";
import { isShown } from "./visible.ts";

const BULLETS = ["•", "◦", "▪"] as const;
const RULE = "———";
/** Wider tables are written as records: a telephone shows about 40 columns, its landscape or a desktop about 80. */
const MAX_TABLE_COLUMNS = 72;

export interface FlattenOptions {
  /** The address to link to, or undefined when the platform or our rules do not allow it. */
  readonly target: LinkTarget;
  /** A block of code longer than this many UTF-16 units goes as a file. */
  readonly maxCodeUnits: number;
}

interface Place extends FlattenOptions {
  readonly writer: Writer;
  readonly listDepth: number;
}

/** Nothing of the text is left out but the marks of its markup, titles of links and definitions that were given twice. */
export function flatten(blocks: readonly MarkedToken[], options: FlattenOptions): StyledText {
  const writer = makeWriter();
  writeBlocks(blocks, { ...options, writer, listDepth: 0 });
  return writer.done();
}

/** @param gap line breaks between the blocks */
function writeBlocks(blocks: readonly MarkedToken[], place: Place, gap = 2): void {
  let before: MarkedToken["type"] | undefined;
  for (const block of blocks) {
    if (block.type === "space" || block.type === "checkbox") continue;
    const isClose = (block.type === "list" && place.listDepth > 0) || (block.type === "def" && before === "def");
    place.writer.gap(isClose ? 1 : gap);
    writeBlock(block, place);
    before = block.type;
  }
}

function writeBlock(block: MarkedToken, place: Place): void {
  const { writer } = place;
  if (block.type === "heading") writer.styled({ kind: "bold" }, () => writeInline(known(block.tokens), place));
  else if (block.type === "paragraph") writeInline(known(block.tokens), place);
  else if (block.type === "code") writeCode(block, place);
  else if (block.type === "blockquote") writeQuote(block, place);
  else if (block.type === "list") writeList(block, place);
  else if (block.type === "table") writeTable(block, place);
  else if (block.type === "hr") writer.write(RULE);
  else if (block.type === "html" || block.type === "def") writer.write(block.raw.trimEnd());
  else writeInline([block], place);
}

function writeCode({ text, lang }: Tokens.Code, { writer, maxCodeUnits }: Place): void {
  if (!isShown(text)) return;
  const language = /^[\w+#.-]{1,32}/.exec(lang ?? "")?.[0];
  if (text.length > maxCodeUnits) writer.attach(text, language);
  else writer.pre(text, language);
}

/** A quote within a quote is marked by a character: Telegram forbids to nest them. */
function writeQuote({ tokens }: Tokens.Blockquote, place: Place): void {
  const { writer } = place;
  const write = () => writeBlocks(known(tokens), place);
  if (writer.isOpen("quote")) writer.indented("> ", write);
  else writer.styled({ kind: "quote" }, write);
}

function writeList(list: Tokens.List, place: Place): void {
  const { writer, listDepth } = place;
  const isAiry = list.loose && list.items.length > 1 && list.items.some(isLong);
  list.items.forEach((item, index) => {
    writer.gap(isAiry ? 2 : 1);
    writer.marker(`${markOf(list, item, index, listDepth)} `);
    const within = { ...place, listDepth: listDepth + 1 };
    writer.indented("  ", () => writeBlocks(known(item.tokens), within, list.loose ? 2 : 1));
  });
}

function markOf({ ordered, start }: Tokens.List, item: Tokens.ListItem, index: number, depth: number): string {
  const box = item.checked === true ? "☑" : "☐";
  if (ordered) return `${(start === "" ? 1 : start) + index}.${item.task ? ` ${box}` : ""}`;
  return item.task ? box : (BULLETS[depth % BULLETS.length] ?? BULLETS[0]);
}

/** Of several blocks: then a blank line between the items helps; one-line items read better close together. */
function isLong({ tokens }: Tokens.ListItem): boolean {
  return tokens.filter(({ type }) => type !== "space").length > 1;
}

function writeTable({ header, rows, align }: Tokens.Table, place: Place): void {
  const cells = [header, ...rows].map((row) => row.map(({ tokens }) => plainInline(known(tokens)).trim()));
  const aligned = alignTable(cells, align, MAX_TABLE_COLUMNS);
  if (aligned !== undefined) {
    place.writer.pre(aligned, undefined);
    return;
  }
  const [names = [], ...records] = cells;
  if (records.length === 0) place.writer.write(names.join(" | "));
  rows.forEach((row, index) => {
    if (index > 0) place.writer.gap(2);
    writeRecord(names, row, place);
  });
}

function writeRecord(names: readonly string[], row: readonly Tokens.TableCell[], place: Place): void {
  row.forEach(({ tokens }, column) => {
    const name = names[column] ?? "";
    place.writer.gap(1);
    if (name !== "") place.writer.styled({ kind: "bold" }, () => place.writer.write(`${name}: `));
    writeInline(known(tokens), place);
  });
}
