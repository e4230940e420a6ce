// Owns: cutting Markdown between its blocks, because the parser is quadratic in the lines that it reads at once. Pure.

/** From this length on, a chunk ends at the next blank line behind which no list or indented block can go on. */
const GOOD_UNITS = 3_000;
/** From this length on, at any line: a block as long as this is more than a message. */
const MOST_UNITS = 6_000;

/** No list item, no indent. */
const NEW_BLOCK = /^(?![-*+][ \t]|\d{1,9}[.)][ \t])\S/;
const NEW_BLOCK_UNITS = 12;

/**
 * The text in pieces that can be read one after the other, together exactly the text. A block of code that starts at the left edge is
 * a piece of its own, however long: the parser reads it in one go.
 * @param fence the length of the fenced block that the text starts with, 0 if it starts with none
 */
export function chunksOf(markdown: string, fence: (text: string) => number): string[] {
  const chunks: string[] = [];
  let from = 0;
  let wasBlank = true;
  const endChunk = (at: number) => {
    if (at > from) chunks.push(markdown.slice(from, at));
    from = at;
  };
  for (let at = 0; at < markdown.length; ) {
    const fenced = /^(?:```|~~~)/.test(markdown.slice(at, at + 3)) ? fence(markdown.slice(at)) : 0;
    if (fenced > 0 || isBound(markdown, at, at - from, wasBlank)) endChunk(at);
    const end = fenced > 0 ? at + fenced : lineEnd(markdown, at);
    if (fenced > 0) endChunk(end);
    wasBlank = fenced === 0 && markdown.slice(at, end).trim() === "";
    at = end;
  }
  endChunk(markdown.length);
  return chunks;
}

function isBound(markdown: string, at: number, units: number, wasBlank: boolean): boolean {
  if (units >= MOST_UNITS) return true;
  return units >= GOOD_UNITS && wasBlank && NEW_BLOCK.test(markdown.slice(at, at + NEW_BLOCK_UNITS));
}

/** Behind the line break. */
function lineEnd(text: string, at: number): number {
  const found = text.indexOf("\n", at);
  return found < 0 ? text.length : found + 1;
}
