// Owns: which characters a chat shows, and where the blank edges of a text end. Pure, for every platform.

/** Whitespace and controls: what Telegram and Discord strip from the edges of a message. */
const BLANK = /[\s\p{Cc}]/u;
/** Spaces, controls, marks without a base, and what fonts leave out: a message of only these is refused as empty. */
const SHOWN = /[^\s\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u;

/** True when a person would see anything of the text. */
export function isShown(text: string): boolean {
  return SHOWN.test(text);
}

/** The first index at or after `from` that is not blank, at most `to`. */
export function skipBlank(text: string, from: number, to: number): number {
  let at = from;
  while (at < to && BLANK.test(text.charAt(at))) at++;
  return at;
}

/** The end of the text before `to` without blanks, at least `from`. */
export function dropBlank(text: string, from: number, to: number): number {
  let at = to;
  while (at > from && BLANK.test(text.charAt(at - 1))) at--;
  return at;
}
