// Owns: how many calls of one backend run at once, and who goes next. It counts calls only: it knows no backend, no timer and
// no turn.
import type { Stop } from "../kernel/clock.ts";
import { Aborted } from "../kernel/errors.ts";
import { compare, type Ordered } from "../queue/order.ts";

/** On whose behalf a call is made: its command's number and order key. */
export interface Caller extends Ordered {
  /** A person waits for it; spawned and scheduled work comes behind. */
  readonly forPerson: boolean;
}

export interface Grants {
  /** Calls that may run at once. */
  readonly size: number;
  /** Whether the next `take` is granted at once. */
  isFree(): boolean;
  /**
   * Leave to make one call, at once or when it is this caller's turn: people's before other work, within these by the
   * command's key. The Stop gives it back; calling it twice is harmless. Rejects with Aborted when the signal aborts first;
   * nothing is taken then.
   */
  take(caller: Caller, signal: AbortSignal): Promise<Stop>;
}

interface Waiter {
  readonly caller: Caller;
  readonly grant: (release: Stop) => void;
}

/** @param size at least 1 */
export function makeGrants(size: number): Grants {
  /** Few: no more than turns run at once, so the next is looked for rather than kept in order. */
  const waiting = new Set<Waiter>();
  let running = 0;

  const granted = (): Stop => {
    running += 1;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      running -= 1;
      const next = first(waiting);
      if (next === undefined) return;
      waiting.delete(next);
      next.grant(granted());
    };
  };

  return {
    size,
    isFree: () => running < size,
    take: (caller, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(new Aborted(signal.reason));
        if (running < size) return resolve(granted());
        const onAbort = () => {
          waiting.delete(waiter);
          reject(new Aborted(signal.reason));
        };
        const waiter: Waiter = {
          caller,
          grant(release) {
            signal.removeEventListener("abort", onAbort);
            resolve(release);
          },
        };
        waiting.add(waiter);
        signal.addEventListener("abort", onAbort, { once: true });
      }),
  };
}

function first(waiting: Iterable<Waiter>): Waiter | undefined {
  let best: Waiter | undefined;
  for (const waiter of waiting) if (best === undefined || goesBefore(waiter.caller, best.caller)) best = waiter;
  return best;
}

function goesBefore(a: Caller, b: Caller): boolean {
  return a.forPerson === b.forPerson ? compare(a, b) < 0 : a.forPerson;
}
