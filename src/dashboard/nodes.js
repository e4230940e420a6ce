// Owns: turning the tree of an answer into DOM nodes. Never HTML text, never anything that fetches by itself (INJ-R2).
import { parse } from "./markdown.js";

/** @typedef {import("./markdown.js").Block} Block @typedef {import("./inline.js").Inline} Inline */

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} [className]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function el(tag, className = "", ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

/**
 * Shows Markdown in `into`, keeping the leading blocks that are still the same, so that a growing answer costs little
 * and a selection in it stays.
 * @param {HTMLElement} into
 * @param {string} text
 * @param {readonly string[]} shown what the last call for this element returned; [] at first
 * @returns {string[]}
 */
export function showMarkdown(into, text, shown) {
  const blocks = parse(text);
  const marks = blocks.map((block) => JSON.stringify(block));
  let same = 0;
  while (same < marks.length && marks[same] === shown[same]) same += 1;
  while (into.childNodes.length > same) into.lastChild?.remove();
  fill(into, blocks.slice(same), blockNode);
  return marks;
}

/**
 * Appends one by one: a call takes fewer arguments than a long text has pieces.
 * @template {HTMLElement} Parent
 * @template Piece
 * @param {Parent} parent
 * @param {readonly Piece[]} pieces
 * @param {(piece: Piece) => Node | string} nodeOf
 * @returns {Parent}
 */
function fill(parent, pieces, nodeOf) {
  for (const piece of pieces) parent.append(nodeOf(piece));
  return parent;
}

/** @param {Block} block @returns {HTMLElement} */
function blockNode(block) {
  switch (block.type) {
    case "paragraph":
      return fill(el("p"), block.children, inlineNode);
    case "heading":
      return fill(el("p", "heading"), block.children, inlineNode);
    case "code":
      return codeNode(block.lang, block.text);
    case "list":
      return fill(listNode(block), block.items, (item) => fill(el("li"), item, blockNode));
  }
}

/** @param {{ ordered: boolean, start: number }} list */
function listNode({ ordered, start }) {
  if (!ordered) return el("ul");
  const list = el("ol");
  list.start = start;
  return list;
}

/** @param {string} lang @param {string} text */
function codeNode(lang, text) {
  const copy = el("button", "copy", "Copy");
  copy.type = "button";
  const pre = el("pre", "", el("code", "", text));
  pre.tabIndex = 0;
  return el("div", "code", el("div", "code-head", el("span", "", lang || "code"), copy), pre);
}

/** @param {Inline} piece @returns {Node | string} */
function inlineNode(piece) {
  if (typeof piece === "string") return piece;
  if (piece.type === "code") return el("code", "", piece.text);
  if (piece.type !== "link") return fill(el(piece.type), piece.children, inlineNode);
  const link = fill(el("a"), piece.children, inlineNode);
  link.href = piece.href;
  link.title = piece.href;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  return link;
}
