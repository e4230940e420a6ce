// Owns: how what people and models wrote is shown: as it is, except for what could act on a terminal. Pure.
import { visible } from "../../kernel/visible.ts";

/** Lines and tabs; and the joiners, without which Persian, Hindi and other scripts are written wrong. */
export const TEXT_KEEPS = "\n\t\u200c\u200d";

/** The text without blank lines at its ends, safe for a terminal. */
export function textLines(text: string): string {
  return visible(text.replaceAll("\r\n", "\n"), TEXT_KEEPS).replace(/^\n+|\s+$/g, "");
}
