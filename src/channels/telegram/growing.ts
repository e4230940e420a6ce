// Owns: the rhythm of a text that is shown while it grows: one call at a time, at most one in an interval, always the newest text,
// the same text never twice. It knows no platform.
import type { Clock, Stop } from "../../kernel/clock.ts";

export interface Rhythm {
  /** From the beginning of the turn: an answer that is complete by then is only sent. */
  readonly firstMs: number;
  readonly everyMs: number;
}

export interface Growing {
  show(text: string): void;
  /** No further call is begun; resolves when none is in flight. */
  end(): Promise<void>;
}

/** Shows what `latest` gives, asked when the call goes out. Never rejects; resolves to false when there is no point in more. */
export type ShowLatest = (latest: () => string, ending: AbortSignal) => Promise<boolean>;

/** @param outer ends it, as its `end` does. */
export function growing(
  { clock, outer, rhythm }: { clock: Clock; outer: AbortSignal; rhythm: Rhythm },
  show: ShowLatest,
): Growing {
  const ended = new AbortController();
  const ending = AbortSignal.any([outer, ended.signal]);
  let shown = "";
  let newest = "";
  let nextAt = clock.mono() + rhythm.firstMs;
  let inFlight: Promise<void> | undefined;
  let stopTimer: Stop | undefined;

  const latest = () => {
    nextAt = clock.mono() + rhythm.everyMs;
    shown = newest;
    return shown;
  };
  const call = async () => {
    nextAt = clock.mono() + rhythm.everyMs;
    if (!(await show(latest, ending))) ended.abort();
    inFlight = undefined;
    pump();
  };
  const pump = () => {
    if (ending.aborted || inFlight !== undefined || stopTimer !== undefined || newest === shown) return;
    const waitMs = nextAt - clock.mono();
    if (waitMs <= 0) {
      inFlight = call();
      return;
    }
    const fire = () => {
      stopTimer = undefined;
      pump();
    };
    stopTimer = clock.after(waitMs, fire, { keepAlive: false });
  };

  return {
    show(text) {
      newest = text;
      pump();
    },
    async end() {
      stopTimer?.();
      ended.abort();
      await inFlight;
    },
  };
}
