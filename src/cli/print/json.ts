// Owns: JSON for programs: one object a line, and nothing in it that acts on a terminal it may end up on. Pure.

/** Unseen characters; in JSON they can stand inside texts only, where an escape means the same. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** The value as one line, with a line end. */
export function jsonLine(value: unknown): string {
  return `${JSON.stringify(value).replace(UNSEEN, escaped)}\n`;
}

function escaped(character: string): string {
  return Array.from({ length: character.length }, (_, at) => {
    return `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`;
  }).join("");
}
