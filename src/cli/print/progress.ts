// Owns: the line that shows that a wait goes on: after a second, on a terminal, gone when the wait is over.
import type { Stop } from "../../kernel/clock.ts";
import { clipTo } from "../../kernel/width.ts";
import type { Shell } from "../shell.ts";
import { paint } from "./paint.ts";
import { lengthText } from "./words.ts";

/** Shorter waits need no explanation (the contract's bound). */
const FIRST_AFTER_MS = 1_000;
const AGAIN_AFTER_MS = 500;
const CLEAR_LINE = "\r\x1b[2K";

/**
 * Shows `about()` and the time since the start on stderr until the returned Stop is called. Shows nothing in a pipe.
 * `about` gives one short line without controls.
 */
export function startProgress({ err, clock }: Pick<Shell, "err" | "clock">, about: () => string): Stop {
  if (!err.isTerminal) return () => {};
  const startedAt = clock.mono();
  let shown = false;
  let stopTimer = clock.after(FIRST_AFTER_MS, draw);
  function draw(): void {
    const text = `${about()} (${lengthText(clock.mono() - startedAt)})`;
    err.stream.write(CLEAR_LINE + paint(err, "dim", clipTo(text, (err.columns() ?? 80) - 1)));
    shown = true;
    stopTimer = clock.after(AGAIN_AFTER_MS, draw);
  }
  return () => {
    stopTimer();
    if (shown) err.stream.write(CLEAR_LINE);
    shown = false;
  };
}
