// Owns: the character references of HTML (`&lt;`, `&#39;`) that Markdown allows in text. Pure.

/** Those that models write; any other stays as it is written. */
const NAMED: ReadonlyMap<string, string> = new Map([
  ["amp", "&"],
  ["lt", "<"],
  ["gt", ">"],
  ["quot", '"'],
  ["apos", "'"],
  ["nbsp", "\u00a0"],
  ["ensp", "\u2002"],
  ["emsp", "\u2003"],
  ["thinsp", "\u2009"],
  ["copy", "©"],
  ["reg", "®"],
  ["trade", "™"],
  ["deg", "°"],
  ["plusmn", "±"],
  ["times", "×"],
  ["divide", "÷"],
  ["middot", "·"],
  ["bull", "•"],
  ["hellip", "…"],
  ["ndash", "–"],
  ["mdash", "—"],
  ["lsquo", "‘"],
  ["rsquo", "’"],
  ["ldquo", "“"],
  ["rdquo", "”"],
  ["laquo", "«"],
  ["raquo", "»"],
  ["larr", "←"],
  ["uarr", "↑"],
  ["rarr", "→"],
  ["darr", "↓"],
  ["ne", "≠"],
  ["le", "≤"],
  ["ge", "≥"],
  ["euro", "€"],
  ["pound", "£"],
  ["sect", "§"],
]);
const REFERENCE = /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-z]{2,8}));/g;

/** The text with references as the characters they stand for. The result is text: nothing in it is markup. */
export function withoutReferences(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(REFERENCE, (found: string, decimal?: string, hex?: string, name?: string) => {
    if (decimal !== undefined) return character(Number.parseInt(decimal, 10));
    if (hex !== undefined) return character(Number.parseInt(hex, 16));
    return NAMED.get(name ?? "") ?? found;
  });
}

/** CommonMark: what is no character becomes the replacement character. */
function character(point: number): string {
  const isCharacter = point > 0 && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
  return isCharacter ? String.fromCodePoint(point) : "\ufffd";
}
