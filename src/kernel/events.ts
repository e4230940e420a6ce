// Owns: talk to observers (page, log, tests). No event is ever needed for correctness: losing one loses no work.

import type { Stop } from "./clock.ts";
import type { CommandId, SessionKey } from "./ids.ts";

export type CommandState = "queued" | "running" | "waiting" | "absorbed" | "done" | "failed" | "dead" | "cancelled";

export type HostEvent =
  | {
      type: "command";
      id: CommandId;
      session: SessionKey;
      chatKey: string;
      state: CommandState;
      /** For figures: how long it had waited when its work began, or ran when its work ended. */
      timing?: { lane: string; waitedMs: number } | { lane: string; ranMs: number };
    }
  /** A model call begins. `again`: an earlier try of the same call failed, so what it streamed is void. */
  | { type: "stream.start"; id: CommandId; chatKey: string; again: boolean }
  | { type: "stream.text"; id: CommandId; chatKey: string; delta: string }
  /** What the turn does now: the name of a tool, or a failover. */
  | { type: "stream.note"; id: CommandId; chatKey: string; note: string }
  /** One try on one backend has ended; `failed` is the class of its failure. */
  | { type: "attempt"; backend: string; failed: string | undefined }
  | { type: "store.paused" }
  | { type: "store.resumed" };

export interface Events {
  emit(event: HostEvent): void;
  on(listener: (event: HostEvent) => void): Stop;
}

/** A listener that throws is reported and does not disturb the others or the emitter. */
export function makeEvents(onError: (thrown: unknown) => void): Events {
  const listeners = new Set<(event: HostEvent) => void>();
  return {
    emit(event) {
      for (const listener of listeners) {
        try {
          listener(event);
        } catch (thrown) {
          onError(thrown);
        }
      }
    },
    on(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
