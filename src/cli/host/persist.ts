// Owns: trying again while the host is away, with growing pauses. Whoever uses it makes sure that a repetition is harmless.
import { type BackoffRule, backoffMs } from "../../kernel/backoff.ts";
import type { Shell } from "../shell.ts";

/** A restart of the host takes seconds; the jitter keeps several clients from coming back at the same instant. */
const PAUSE: BackoffRule = { baseMs: 200, factor: 1.7, maxMs: 5_000, jitter: 0.3 };

/** The pause before try number `failures` + 1, in ms. */
export function pauseMs(failures: number, { ids }: Pick<Shell, "ids">): number {
  return backoffMs(PAUSE, failures, ids.fraction());
}

export interface Persistence {
  /** Whether what was thrown may pass by itself. */
  readonly again: (thrown: unknown) => boolean;
  /** After this long without an answer the last error is thrown. */
  readonly giveUpMs: number;
  /** Called before each pause. */
  readonly onFailure?: (thrown: unknown) => void;
  readonly signal: AbortSignal;
}

/** Repeats `attempt` until it succeeds. Throws its last error, or Aborted. */
export async function persist<T>(
  attempt: () => Promise<T>,
  { again, giveUpMs, onFailure, signal }: Persistence,
  shell: Pick<Shell, "clock" | "ids">,
): Promise<T> {
  const giveUpAt = shell.clock.mono() + giveUpMs;
  for (let failures = 1; ; failures++) {
    try {
      return await attempt();
    } catch (thrown) {
      if (signal.aborted || !again(thrown) || shell.clock.mono() >= giveUpAt) throw thrown;
      onFailure?.(thrown);
      await shell.clock.sleep(pauseMs(failures, shell), signal);
    }
  }
}
