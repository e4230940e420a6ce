// Owns: every timer and every reading of time. Nothing else in src calls Date.now or setTimeout.
import { Aborted } from "./errors.ts";

/** Undoes a start. Calling it twice is harmless. */
export type Stop = () => void;

export interface Clock {
  /** Wall-clock time in ms since 1970: for rows and people. */
  now(): number;
  /** Monotonic time in ms: for deadlines and durations within this boot. */
  mono(): number;
  /**
   * Calls `fire` once after `ms`. Any length is safe: the platform's limit of 2^31-1 ms (a longer
   * timer fires at once, Q15.1) is handled here. `keepAlive: false` lets the process end while it waits.
   */
  after(ms: number, fire: () => void, options?: { keepAlive?: boolean }): Stop;
  /** Resolves after `ms`; rejects with Aborted as soon as the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** Node stores a timer's delay in a signed 32-bit number. */
const MAX_TIMER_MS = 2_147_483_647;

export function systemClock(): Clock {
  const mono = () => performance.now();
  const after: Clock["after"] = (ms, fire, options) => {
    const due = mono() + ms;
    let timer: NodeJS.Timeout;
    const arm = () => {
      const left = due - mono();
      timer = setTimeout(left > MAX_TIMER_MS ? arm : fire, Math.min(Math.max(left, 0), MAX_TIMER_MS));
      if (options?.keepAlive === false) timer.unref();
    };
    arm();
    return () => clearTimeout(timer);
  };
  return { now: () => Date.now(), mono, after, sleep: (ms, signal) => sleepOn(after, ms, signal) };
}

/** The one implementation of sleep, over any `after` (the fake clock of the tests uses it too). */
export function sleepOn(after: Clock["after"], ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(new Aborted(signal.reason));
    const onAbort = () => {
      stop();
      reject(new Aborted(signal.reason));
    };
    const stop = after(ms, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** How late timers fired, in ms, over the time since the last look, less one interval of the measure. */
export interface LoopDelay {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** How often the platform looks. Its figures hold this interval, so it is taken off. */
const DELAY_LOOK_MS = 50;

/**
 * Starts measuring how long the event loop keeps timers waiting. Costs a timer of the platform for as long as the process
 * lives, so it is started only for somebody who looks; it does not keep the process alive.
 */
export async function watchLoopDelay(): Promise<() => LoopDelay> {
  const { monitorEventLoopDelay } = await import("node:perf_hooks");
  const seen = monitorEventLoopDelay({ resolution: DELAY_LOOK_MS });
  seen.enable();
  const lateMs = (nanoseconds: number) => Math.max(0, nanoseconds / 1e6 - DELAY_LOOK_MS);
  return () => {
    // Before the first look the platform's figures mean nothing.
    if (seen.count === 0) return { p50Ms: 0, p99Ms: 0, maxMs: 0 };
    const delay = { p50Ms: lateMs(seen.percentile(50)), p99Ms: lateMs(seen.percentile(99)), maxMs: lateMs(seen.max) };
    seen.reset();
    return delay;
  };
}
