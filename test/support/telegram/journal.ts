// Owns: what was seen: each call with its outcome, each rule that the client broke, and the waiting for a condition.
import type { Clock } from "../../../src/kernel/clock.ts";
import type { WireCall } from "./wire.ts";

/** `accepted`: the call took effect, whatever the client learnt of it. */
export type Outcome =
  | { readonly kind: "ok"; readonly result: unknown }
  | { readonly kind: "refused"; readonly status: number; readonly description: string }
  /** The socket was destroyed, the answer never came, or it was no Bot API answer. */
  | { readonly kind: "dropped" | "hung" | "spoilt"; readonly accepted: boolean }
  /** The client closed the connection before the answer. */
  | { readonly kind: "gone" };

export interface CallRecord {
  /** Ascending in the order of arrival. */
  readonly id: number;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly files: readonly string[];
  /** Wall clock, ms. */
  readonly at: number;
  /** Undefined while the call is open. */
  readonly outcome: Outcome | undefined;
}

export interface Violation {
  readonly rule: string;
  readonly call: CallRecord;
}

export interface Journal {
  readonly calls: readonly CallRecord[];
  readonly violations: readonly Violation[];
  open(call: WireCall): CallRecord;
  close(call: CallRecord, outcome: Outcome): void;
  violated(call: CallRecord, rule: string): void;
  /** Something that a test may wait for has changed. */
  changed(): void;
  /**
   * Resolves with what the predicate gives as soon as that is truthy; it is asked at each change. Rejects after `timeoutMs`,
   * which is a guard against a hanging test, with the last calls in the message.
   */
  until<T>(predicate: () => T, timeoutMs?: number): Promise<Exclude<T, false | 0 | "" | null | undefined>>;
}

const HANG_GUARD_MS = 30_000;

export function makeJournal(clock: Clock): Journal {
  const calls: CallRecord[] = [];
  const violations: Violation[] = [];
  const waiting = new Set<() => void>();
  const changed = () => {
    for (const ask of [...waiting]) ask();
  };
  return {
    calls,
    violations,
    open({ method, params, files }) {
      const record = {
        id: calls.length + 1,
        method,
        params,
        files: [...files.keys()],
        at: clock.now(),
        outcome: undefined,
      };
      calls.push(record);
      changed();
      return record;
    },
    close(call, outcome) {
      if (call.outcome !== undefined) return;
      Object.assign(call, { outcome });
      changed();
    },
    violated(call, rule) {
      violations.push({ rule, call });
      changed();
    },
    changed,
    until(predicate, timeoutMs = HANG_GUARD_MS) {
      type Found = Exclude<ReturnType<typeof predicate>, false | 0 | "" | null | undefined>;
      const { promise, resolve, reject } = Promise.withResolvers<Found>();
      const ask = () => {
        try {
          const found = predicate();
          if (found) resolve(found as Found);
          else return;
        } catch (error) {
          reject(error);
        }
        waiting.delete(ask);
        clearTimeout(guard);
      };
      const guard = setTimeout(() => {
        waiting.delete(ask);
        reject(new Error(`never came true within ${timeoutMs} ms: ${predicate}\n${lastOf(calls)}`));
      }, timeoutMs);
      waiting.add(ask);
      ask();
      return promise;
    },
  };
}

function lastOf(calls: readonly CallRecord[]): string {
  const line = ({ id, method, params, outcome }: CallRecord) =>
    `#${id} ${method} ${JSON.stringify(params).slice(0, 200)} → ${JSON.stringify(outcome)?.slice(0, 200)}`;
  return `last calls:\n${calls.slice(-8).map(line).join("\n")}`;
}
