// Owns: telling the host what was seen. One call at a time, always for the newest row; a failure is made up for by the next.
import type { Client } from "../host/client.ts";
import { acknowledged } from "../host/replies.ts";
import type { Chat } from "./chat.ts";

export interface Acker {
  /** Every part up to `seq` is on the screen. */
  seen(seq: number): void;
  /** Says it again when an earlier call failed. Never rejects. */
  flush(): Promise<void>;
}

/** Nobody waits longer than this at the end of a conversation; an unseen acknowledgement only shows a part again. */
const LIMIT_MS = 2_000;

export function makeAcker(client: Client, chat: Chat): Acker {
  let seen = 0;
  let told = 0;
  let running: Promise<void> | undefined;

  async function tell(): Promise<void> {
    while (told < seen) {
      const seq = seen;
      await client.call("ack", { ...chat, seq }, acknowledged, { limitMs: LIMIT_MS });
      told = seq;
    }
  }

  function flush(): Promise<void> {
    running ??= tell()
      .catch(() => {})
      .finally(() => {
        running = undefined;
      });
    return running;
  }

  return {
    seen(seq) {
      seen = Math.max(seen, seq);
      void flush();
    },
    flush,
  };
}
