// Owns: the fake clock of the tests: time passes only when a test says so.
import { type Clock, type Stop, sleepOn } from "../../src/kernel/clock.ts";

export interface FakeClock extends Clock {
  /**
   * Lets `ms` pass on both clocks. Timers that fall due fire in the order of their instants, each at its own instant, and
   * promises settle before the first, between two and after the last; a timer that these start fires too if it falls due.
   */
  advance(ms: number): Promise<void>;
  /** Sets the wall clock forward or back, as a person or a time server does. No timer fires; `mono()` stays. */
  jump(ms: number): void;
  /** How many timers wait. */
  waiting(): number;
}

interface Timer {
  readonly dueMs: number;
  readonly fire: () => void;
}

/** @param startMs what `now()` says first; `mono()` begins at 0. */
export function fakeClock(startMs = Date.UTC(2026, 0, 1)): FakeClock {
  const timers = new Set<Timer>();
  let monoMs = 0;
  let wallMs = startMs;

  const after = (ms: number, fire: () => void): Stop => {
    const timer = { dueMs: monoMs + Math.max(0, ms), fire };
    timers.add(timer);
    return () => timers.delete(timer);
  };

  const moveTo = (instantMs: number) => {
    wallMs += instantMs - monoMs;
    monoMs = instantMs;
  };

  const advance = async (ms: number) => {
    const endMs = monoMs + ms;
    for (;;) {
      await promisesSettle();
      const timer = nextDue(timers, endMs);
      if (timer === undefined) break;
      timers.delete(timer);
      moveTo(timer.dueMs);
      timer.fire();
    }
    moveTo(endMs);
  };

  return {
    now: () => wallMs,
    mono: () => monoMs,
    after,
    sleep: (ms, signal) => sleepOn(after, ms, signal),
    advance,
    jump: (ms) => {
      wallMs += ms;
    },
    waiting: () => timers.size,
  };
}

/** The earliest timer due by `endMs`; of two at the same instant the one that was started first. */
function nextDue(timers: ReadonlySet<Timer>, endMs: number): Timer | undefined {
  let next: Timer | undefined;
  for (const timer of timers) {
    if (timer.dueMs <= endMs && (next === undefined || timer.dueMs < next.dueMs)) next = timer;
  }
  return next;
}

/** The event loop runs all promise callbacks that are ready, and those they make ready, before an immediate. */
function promisesSettle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
