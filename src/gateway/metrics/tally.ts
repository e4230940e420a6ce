// Owns: what has happened since somebody last looked: ends, attempts, waits and runs, counted from events in a few numbers a
// series, however much happens. Knows nothing of a format.
import type { Stop } from "../../kernel/clock.ts";
import type { CommandState, Events, HostEvent } from "../../kernel/events.ts";
import { isFinal } from "../../queue/command.ts";
import { laneLabel } from "./labels.ts";

/** Upper bounds in seconds. A wait should be milliseconds, a turn may take half an hour. */
export const SECONDS_BUCKETS = [0.01, 0.03, 0.1, 0.3, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800] as const;

/** Observations of one bucket. Whole milliseconds add up without a rounding error. */
interface Bucket {
  count: number;
  sumMs: number;
}

export type Series = "wait" | "run";

export interface Counts {
  readonly ended: ReadonlyMap<CommandState, number>;
  readonly attempts: readonly { readonly backend: string; readonly result: string; readonly count: number }[];
  /** Buckets that hold something. */
  readonly seconds: readonly { readonly series: Series; readonly lane: string; readonly bucket: Bucket }[];
}

export interface Tally {
  /** For what happened before anybody could listen. */
  countEnded(state: CommandState, count: number): void;
  /** What happened since the last call. */
  take(): Counts;
  readonly stop: Stop;
}

export function makeTally(events: Events): Tally {
  const ended = new Map<CommandState, number>();
  const attempts = new Map<string, { backend: string; result: string; count: number }>();
  const seconds = new Map<string, { series: Series; lane: string; bucket: Bucket }>();

  const countEnded: Tally["countEnded"] = (state, count) => ended.set(state, (ended.get(state) ?? 0) + count);

  const countAttempt = (backend: string, result: string) => {
    const key = `${result} ${backend}`;
    const found = attempts.get(key) ?? { backend, result, count: 0 };
    attempts.set(key, { ...found, count: found.count + 1 });
  };

  const observe = (series: Series, lane: string, ms: number) => {
    const at = SECONDS_BUCKETS.findIndex((bound) => ms / 1000 <= bound);
    const key = `${series} ${at} ${lane}`;
    const found = seconds.get(key) ?? { series, lane, bucket: { count: 0, sumMs: 0 } };
    found.bucket.count += 1;
    found.bucket.sumMs += ms;
    seconds.set(key, found);
  };

  const listen = (event: HostEvent) => {
    if (event.type === "attempt") return countAttempt(event.backend, event.failed ?? "ok");
    if (event.type !== "command") return;
    const { state, timing } = event;
    if (isFinal(state)) countEnded(state, 1);
    if (timing === undefined) return;
    const lane = laneLabel(timing.lane);
    if ("waitedMs" in timing) observe("wait", lane, timing.waitedMs);
    else if (isFinal(state)) observe("run", lane, timing.ranMs);
  };
  const stop = events.on(listen);

  return {
    countEnded,
    take() {
      const counts = { ended: new Map(ended), attempts: [...attempts.values()], seconds: [...seconds.values()] };
      for (const map of [ended, attempts, seconds]) map.clear();
      return counts;
    },
    stop,
  };
}
