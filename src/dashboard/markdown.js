// Owns: the small part of Markdown that answers are shown with: paragraphs, headings, fenced code, lists. Everything
// else stays plain text. Pure: text in, a tree of plain objects out; nodes.js shows it.
import { parseInline } from "./inline.js";

/**
 * @typedef {import("./inline.js").Inline} Inline
 * @typedef {{ type: "paragraph" | "heading", children: Inline[] } | { type: "code", lang: string, text: string }
 *   | { type: "list", ordered: boolean, start: number, items: Block[][] }} Block
 * @typedef {{ block: Block, next: number }} Read a block, and the line after it
 */

const FENCE = /^(\s*)(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^#{1,6}\s+(\S.*)$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(\S.*)$/;
// Deeper lists are plain text: each level reads its lines again.
const MAX_DEPTH = 6;
// Beyond this reading the marks could be felt while an answer grows; no person reads such a text for its looks.
const MAX_LENGTH = 200_000;

/** @param {string} text @param {number} [depth] of the list that the text stands in @returns {Block[]} */
export function parse(text, depth = 0) {
  if (depth > MAX_DEPTH || text.length > MAX_LENGTH) return [{ type: "paragraph", children: [text] }];
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  /** @type {Block[]} */
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (isBlank(lines[at])) {
      at += 1;
      continue;
    }
    const { block, next } =
      readFence(lines, at) ?? readList(lines, at, depth) ?? readHeading(lines, at) ?? readParagraph(lines, at);
    blocks.push(block);
    at = next;
  }
  return blocks;
}

/** @param {string | undefined} line */
const isBlank = (line = "") => line.trim() === "";

/** @param {string[]} lines @param {number} at @returns {Read} */
function readParagraph(lines, at) {
  const starts = (/** @type {string} */ line) =>
    isBlank(line) || FENCE.test(line) || ITEM.test(line) || HEADING.test(line);
  let next = at + 1;
  while (next < lines.length && !starts(lines[next] ?? "")) next += 1;
  return { block: { type: "paragraph", children: parseInline(lines.slice(at, next).join("\n")) }, next };
}

/** @param {string[]} lines @param {number} at @returns {Read | undefined} */
function readHeading(lines, at) {
  const found = HEADING.exec(lines[at] ?? "");
  return found ? { block: { type: "heading", children: parseInline(found[1] ?? "") }, next: at + 1 } : undefined;
}

/**
 * A fence without an end runs to the end of the text, so that an answer that still grows looks right too.
 * @param {string[]} lines @param {number} at @returns {Read | undefined}
 */
function readFence(lines, at) {
  const found = FENCE.exec(lines[at] ?? "");
  if (!found) return undefined;
  const [, indent = "", marks = "", info = ""] = found;
  const closes = (/** @type {string} */ line) => line.trim().startsWith(marks) && /^(`+|~+)$/.test(line.trim());
  let end = at + 1;
  while (end < lines.length && !closes(lines[end] ?? "")) end += 1;
  const body = lines.slice(at + 1, end).map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line));
  return { block: { type: "code", lang: info.trim(), text: body.join("\n") }, next: end + 1 };
}

/** @param {string | undefined} line */
function itemOf(line = "") {
  const found = ITEM.exec(line);
  if (!found) return undefined;
  const [, indent = "", marker = "", text = ""] = found;
  return { indent: indent.length, marker, text, ordered: /\d/.test(marker) };
}

/**
 * What is indented below an item belongs to it and is read the same way, so that lists and code nest.
 * @param {string[]} lines @param {number} at @param {number} depth @returns {Read | undefined}
 */
function readList(lines, at, depth) {
  const first = itemOf(lines[at]);
  if (!first) return undefined;
  /** @type {string[][]} */
  const items = [];
  let next = at;
  for (; next < lines.length; next += 1) {
    const line = lines[next] ?? "";
    const item = itemOf(line);
    if (item && item.indent <= first.indent + 1) {
      if (item.ordered !== first.ordered) break;
      items.push([item.text]);
    } else if (belongs(lines, next, first.indent)) {
      const width = Math.min(Math.max(0, line.search(/\S/)), first.indent + first.marker.length + 1);
      items.at(-1)?.push(line.slice(width));
    } else break;
  }
  const start = Number.parseInt(first.marker, 10);
  const parsed = items.map((item) => parse(item.join("\n"), depth + 1));
  return {
    block: { type: "list", ordered: first.ordered, start: Number.isNaN(start) ? 1 : start, items: parsed },
    next,
  };
}

/** Whether a line goes on with the item above it. @param {string[]} lines @param {number} at @param {number} indent */
function belongs(lines, at, indent) {
  const line = lines[at] ?? "";
  if (!isBlank(line)) return line.search(/\S/) > indent;
  const after = lines[at + 1] ?? "";
  return /^\s+\S/.test(after) || ITEM.test(after);
}
