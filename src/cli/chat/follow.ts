// Owns: the life of the event stream of a chat: open, lost, tried again with growing pauses, resumed after the last row.
import type { Client } from "../host/client.ts";
import { isPassing } from "../host/errors.ts";
import { pauseMs } from "../host/persist.ts";
import type { SseEvent } from "../host/sse.ts";
import type { Shell } from "../shell.ts";
import type { Chat } from "./chat.ts";

interface FollowDeps {
  readonly shell: Pick<Shell, "clock" | "ids">;
  readonly client: Client;
  readonly chat: Chat;
  readonly cursor: () => number;
  readonly signal: AbortSignal;
  readonly on: {
    /** The next event is not taken before this has resolved. */
    event(event: SseEvent): Promise<void>;
    lost(): void;
  };
}

/** Follows until the signal aborts. Throws what no waiting can mend, such as a token that is no longer accepted. */
export async function follow({ shell, client, chat, cursor, signal, on }: FollowDeps): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      for await (const event of client.events({ ...chat }, cursor(), signal)) {
        failures = 0;
        await on.event(event);
      }
    } catch (thrown) {
      if (!signal.aborted && !isPassing(thrown)) throw thrown;
    }
    if (signal.aborted) return;
    on.lost();
    failures += 1;
    await shell.clock.sleep(pauseMs(failures, shell), signal).catch(() => {});
  }
}
