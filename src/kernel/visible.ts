// Owns: showing characters that a person cannot see, or that act on a terminal, as escapes.
// Never removes anything and never changes text that can be seen. Pure.

/**
 * A whole emoji of Unicode's recommended set (it may hold joiners, selectors and tags, and is seen), or
 * one character that is not seen: controls (terminal escapes start with one), format characters (bidi,
 * zero width, tags), half surrogates, line separators, and what Unicode lets a font ignore. The look-ahead
 * changes no match; it spares ordinary text the slow test for a sequence.
 */
const EMOJI_OR_UNSEEN =
  /((?=\p{Emoji})\p{RGI_Emoji})|[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gv;

/**
 * The text with every unseen character written as an escape: `\n`, `\r`, `\t`, else `\u{hex}` (INJ-3, FILE-R3).
 * Emoji stay whole. Backslashes stay as they are: the result is for eyes and is not meant to be turned back.
 * @param keep characters to leave alone: `"\n\t"` for text that may have lines, nothing for a name.
 */
export function visible(text: string, keep = ""): string {
  return text.replace(EMOJI_OR_UNSEEN, (found: string, emoji: string | undefined) =>
    emoji !== undefined || keep.includes(found) ? found : escaped(found),
  );
}

function escaped(character: string): string {
  if (character === "\n") return "\\n";
  if (character === "\r") return "\\r";
  if (character === "\t") return "\\t";
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
