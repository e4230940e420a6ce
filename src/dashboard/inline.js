// Owns: what stands inside a paragraph: inline code, bold, italics, links. Everything else is plain text. Pure.

/**
 * @typedef {string | { type: "code", text: string } | { type: "strong" | "em", children: Inline[] }
 *   | { type: "link", href: string, children: Inline[] }} Inline
 */

// Every repetition is bounded, so that no text, however hostile, makes the page hang.

/** What is read before all else, since no mark counts within it. */
const LITERAL = new RegExp(
  [
    String.raw`\\(?<escaped>[\\\x60*_[\]()#+\-.!~|<>])`,
    String.raw`(?<!\x60)(?<ticks>\x60{1,8})(?!\x60)(?<code>[^]{1,1000}?)(?<!\x60)\k<ticks>(?!\x60)`,
  ].join("|"),
  "g",
);
/** Stands for a literal while the marks around it are read: a character that no text needs. */
const HOLD = "\uE000";

// An image is named only to be left as it is: nothing is fetched (INJ-R2). A bare address has brackets only in pairs
// and no punctuation at its end: those belong to the sentence.
const MARKS = new RegExp(
  [
    String.raw`(?<image>!\[[^\[\]\n]{0,500}\]\([^\s()]{0,2000}\))`,
    String.raw`\[(?<label>[^\[\]\n]{1,500})\]\((?<target>[^\s()\uE000]{1,2000}(?:\([^\s()\uE000]{0,500}\)[^\s()\uE000]{0,500}){0,3})\)`,
    String.raw`(?<url>https?:\/\/(?:[^\s<>"*()\uE000]|\([^\s<>"*()\uE000]{0,200}\)){1,1000}(?<![.,;:!?\]']))`,
    String.raw`\*\*(?=\S)(?<strong>[^]{1,600}?)(?<=\S)\*\*`,
    String.raw`(?<!\w)__(?=\S)(?<strong2>[^]{1,600}?)(?<=\S)__(?!\w)`,
    String.raw`\*(?=[^\s*])(?<em>[^]{1,600}?)(?<=[^\s*])\*(?!\*)`,
    String.raw`(?<!\w)_(?=[^\s_])(?<em2>[^]{1,600}?)(?<=[^\s_])_(?!\w)`,
  ].join("|"),
  "g",
);
const MAX_DEPTH = 4;

/** @param {string} text @returns {Inline[]} neighbouring plain pieces are joined */
export function parseInline(text) {
  /** @type {Inline[]} */
  const held = [];
  const masked = text.replaceAll(HOLD, "\uFFFD").replace(LITERAL, (_, escaped, _ticks, code) => {
    held.push(escaped ?? { type: "code", text: String(code).replace(/^ (.+) $/, "$1") });
    return HOLD;
  });
  return readMarks(masked, held.reverse(), 0);
}

/**
 * Reads strictly from left to right, so that each held literal finds its place by its order: the next is the last.
 * @param {string} text @param {Inline[]} held @param {number} depth @returns {Inline[]}
 */
function readMarks(text, held, depth) {
  if (depth > MAX_DEPTH) return join(plain(text, held));
  /** @type {Inline[][]} */
  const out = [];
  let from = 0;
  for (const match of text.matchAll(MARKS)) {
    out.push(plain(text.slice(from, match.index), held));
    out.push(readMark(match[0], match.groups ?? {}, held, depth + 1));
    from = match.index + match[0].length;
  }
  out.push(plain(text.slice(from), held));
  return join(out.flat());
}

/**
 * @param {string} whole
 * @param {Record<string, string | undefined>} found
 * @param {Inline[]} held
 * @param {number} depth
 * @returns {Inline[]}
 */
function readMark(whole, { label, target, url, strong, strong2, em, em2 }, held, depth) {
  const bold = strong ?? strong2;
  if (bold !== undefined) return [{ type: "strong", children: readMarks(bold, held, depth) }];
  const leaning = em ?? em2;
  if (leaning !== undefined) return [{ type: "em", children: readMarks(leaning, held, depth) }];
  const href = safeHref(target ?? url ?? "");
  // The label is not read for marks: a link within a link would be none.
  return href === undefined
    ? plain(whole, held)
    : [{ type: "link", href, children: join(plain(label ?? whole, held)) }];
}

/** Puts the held literals back. @param {string} text @param {Inline[]} held @returns {Inline[]} */
function plain(text, held) {
  return text.split(HOLD).flatMap((piece, index) => (index === 0 ? [piece] : [held.pop() ?? "", piece]));
}

/** @param {Inline[]} pieces @returns {Inline[]} */
function join(pieces) {
  /** @type {Inline[]} */
  const out = [];
  for (const piece of pieces) {
    const last = out.at(-1);
    if (typeof piece === "string" && typeof last === "string") out[out.length - 1] = last + piece;
    else if (piece !== "") out.push(piece);
  }
  return out;
}

/** The address when it is one that a click may lead to: absolute, and http, https or mailto. @param {string} target */
export function safeHref(target) {
  const url = URL.canParse(target) ? new URL(target) : undefined;
  return url && ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : undefined;
}
