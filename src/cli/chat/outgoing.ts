// Owns: what was typed and the host has not answered yet: sent in order, one at a time, each with a key of its own until it
// is answered. The host accepts a key once, so a repetition is harmless.
import { isPassing } from "../host/errors.ts";
import { pauseMs } from "../host/persist.ts";
import type { Shell } from "../shell.ts";

export interface Outgoing {
  add(text: string): void;
  /** What the host has not answered, oldest first. */
  unsent(): readonly string[];
  /** Sends until the signal aborts. Never rejects. */
  run(): Promise<void>;
  /** Resolves when nothing is unsent, or after `ms`. Never rejects. */
  emptied(ms: number): Promise<void>;
}

interface OutgoingDeps {
  readonly shell: Pick<Shell, "clock" | "ids">;
  readonly send: (text: string, key: string) => Promise<{ command: number }>;
  readonly signal: AbortSignal;
  readonly on: {
    accepted(command: number, text: string): void;
    /** The host will not take this one; it is not tried again. */
    refused(text: string, thrown: unknown): Promise<void>;
    lost(): void;
  };
}

export function makeOutgoing({ shell, send, signal, on }: OutgoingDeps): Outgoing {
  const waiting: { text: string; key: string }[] = [];
  let wake: () => void = () => {};
  let onEmpty: () => void = () => {};
  signal.addEventListener("abort", () => wake(), { once: true });

  /** True when the message needs no more tries. */
  async function attempt(text: string, key: string): Promise<boolean> {
    try {
      const { command } = await send(text, key);
      on.accepted(command, text);
      return true;
    } catch (thrown) {
      if (signal.aborted) return false;
      if (isPassing(thrown)) {
        on.lost();
        return false;
      }
      await on.refused(text, thrown);
      return true;
    }
  }

  return {
    add(text) {
      waiting.push({ text, key: shell.ids.random() });
      wake();
    },
    unsent: () => waiting.map(({ text }) => text),
    async emptied(ms) {
      if (waiting.length === 0) return;
      const empty = new AbortController();
      onEmpty = () => empty.abort();
      await shell.clock.sleep(ms, AbortSignal.any([empty.signal, signal])).catch(() => {});
    },
    async run() {
      let failures = 0;
      while (!signal.aborted) {
        const next = waiting[0];
        if (next === undefined) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        } else if (await attempt(next.text, next.key)) {
          waiting.shift();
          failures = 0;
          if (waiting.length === 0) onEmpty();
        } else if (!signal.aborted) {
          failures += 1;
          await shell.clock.sleep(pauseMs(failures, shell), signal).catch(() => {});
        }
      }
    },
  };
}
