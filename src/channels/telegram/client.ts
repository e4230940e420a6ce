// Owns: one line to the Bot API: every call has a time limit and a signal, and ends in a result or a fault, never in a rejection.
// Never retries and never paces.
import { Api, type RawApi } from "grammy";
import type { Clock } from "../../kernel/clock.ts";
import { makeConnections } from "./connections.ts";
import { type Fault, faultOf } from "./fault.ts";

export type Answer<T> = { readonly ok: true; readonly result: T } | { readonly ok: false; readonly fault: Fault };

/** The client describes its signal by an old polyfill; the platform's own has all of it and more. */
export type ApiSignal = NonNullable<Parameters<RawApi["getMe"]>[0]>;
const isApiSignal = (signal: unknown): signal is ApiSignal => signal instanceof AbortSignal;

export interface Client {
  /** @param limitMs until an answer must be there. The signal ends the call at once. */
  call<T>(
    make: (api: RawApi, signal: ApiSignal) => Promise<T>,
    bounds: { limitMs: number; signal: AbortSignal },
  ): Promise<Answer<T>>;
  /** Gives up the connections, so that the next call makes a new one. Calls in flight end as faults. */
  renew(): void;
  /** Resolves when no call is in flight. */
  idle(): Promise<void>;
}

export function makeClient(deps: { token: string; apiRoot: string; clock: Clock }): Client {
  const { token, clock } = deps;
  const apiRoot = deps.apiRoot.replace(/\/+$/, "");
  const agent = makeConnections(apiRoot, clock);
  // A redirect would carry the token in its path to wherever it leads.
  const { raw } = new Api(token, { apiRoot, baseFetchConfig: { agent, redirect: "error" } });
  const inFlight = new Set<Promise<unknown>>();

  return {
    async call(make, { limitMs, signal }) {
      if (signal.aborted) return { ok: false, fault: { kind: "unsent", reason: "stopped before the call" } };
      const end = new AbortController();
      let late = false;
      const stopTimer = clock.after(limitMs, () => {
        late = true;
        end.abort();
      });
      const onAbort = () => end.abort();
      signal.addEventListener("abort", onAbort, { once: true });
      const passed: unknown = end.signal;
      const made = isApiSignal(passed) ? make(raw, passed) : Promise.reject(new Error("this is no signal"));
      inFlight.add(made);
      try {
        return { ok: true, result: await made };
      } catch (thrown) {
        if (late) return { ok: false, fault: { kind: "unclear", reason: `no answer within ${limitMs / 1000} s` } };
        if (signal.aborted) return { ok: false, fault: { kind: "stopped", reason: "stopped during the call" } };
        return { ok: false, fault: faultOf(thrown, token) };
      } finally {
        inFlight.delete(made);
        stopTimer();
        signal.removeEventListener("abort", onAbort);
      }
    },
    renew: () => agent.destroy(),
    async idle() {
      await Promise.allSettled(inFlight);
    },
  };
}
