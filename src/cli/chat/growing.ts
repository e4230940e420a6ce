// Owns: the answer that grows on the screen: what of it is shown, and how the final text follows from it.
import { visible } from "../../kernel/visible.ts";
import { paint } from "../print/paint.ts";
import { TEXT_KEEPS, textLines } from "../print/text.ts";
import type { Output } from "../shell.ts";
import type { Screen } from "./screen.ts";

export interface Growing {
  /** The command whose answer grows now. */
  command(): number | undefined;
  /** Whether anything of it is on the screen. */
  isSeen(): boolean;
  begin(command: number): void;
  add(text: string): Promise<void>;
  /** The final text. It replaces what grew; mostly it only adds the end. */
  finish(text: string): Promise<void>;
  /** It will not go on; `remark` says why. */
  end(remark?: string): Promise<void>;
}

export function makeGrowing(screen: Screen, out: Output): Growing {
  let command: number | undefined;
  let text = "";
  let shown = 0;

  const showTo = async (end: number) => {
    if (end <= shown) return;
    const piece = text.slice(shown, end);
    shown = end;
    await screen.grow(safe(piece));
  };

  return {
    command: () => command,
    isSeen: () => command !== undefined && shown > 0,
    begin(next) {
      command = next;
      text = "";
      shown = 0;
    },
    async add(more) {
      text += more;
      await showTo(wholeLength(text));
    },
    async finish(final) {
      command = undefined;
      const before = text;
      const goesOn = final.startsWith(before.slice(0, shown));
      if (goesOn) {
        text = final.trimEnd();
        await showTo(text.length);
      }
      await screen.settle();
      if (!goesOn && before.trim() !== final.trim()) await screen.say(textLines(final));
    },
    async end(remark = "") {
      if (command === undefined) return;
      command = undefined;
      await showTo(text.length);
      await screen.settle();
      if (remark !== "") await screen.say(paint(out, "dim", remark));
    },
  };
}

function safe(text: string): string {
  return visible(text.replaceAll("\r\n", "\n"), TEXT_KEEPS);
}

/** Longer than any sequence that is seen as one character. */
const TAIL = 40;

/**
 * How much of a growing text can be shown: its last character may be the first half of one that only the next piece
 * completes, as an emoji with a modifier.
 */
function wholeLength(text: string): number {
  const last = text.at(-1) ?? "";
  if (last === "\n" || (last >= " " && last <= "~")) return text.length;
  const segments = Array.from(new Intl.Segmenter().segment(text.slice(-TAIL)), ({ segment }) => segment);
  return text.length - (segments.at(-1)?.length ?? 0);
}
