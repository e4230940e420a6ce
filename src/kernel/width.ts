// Owns: how many columns a text takes in a monospaced font: a terminal, or a code block of a chat. Pure.

/** East Asian wide and fullwidth blocks (Unicode TR 11), in whole ranges: exact enough to align a table. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u;
const EMOJI = /^\p{RGI_Emoji}$/v;
const PLAIN = /^[\x20-\x7e]*$/;

/** Columns of a text without controls. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  return graphemes(text).reduce((sum, grapheme) => sum + columnsOf(grapheme), 0);
}

/** The text, cut to at most `columns` with an ellipsis when it is longer. */
export function clipTo(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let used = 1;
  let kept = "";
  for (const grapheme of graphemes(text)) {
    used += columnsOf(grapheme);
    if (used > columns) break;
    kept += grapheme;
  }
  return columns < 1 ? "" : `${kept}…`;
}

function graphemes(text: string): string[] {
  return Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment);
}

function columnsOf(grapheme: string): number {
  if (/^\p{M}+$/u.test(grapheme)) return 0;
  return WIDE.test(grapheme) || EMOJI.test(grapheme) ? 2 : 1;
}
