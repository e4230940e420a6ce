// Owns: sending what the outgoing store holds, one message at a time and in order, until the host has answered each.
// A lost answer is asked for again with the same key, so nothing is lost and nothing is taken twice.
import { backoffMs } from "./clock.js";

/**
 * @param {{
 *   outgoing: import("./outgoing.js").OutgoingStore,
 *   send: import("./api.js").Api["send"],
 *   clock: import("./clock.js").Clock,
 *   on: {
 *     accepted(entry: import("./outgoing.js").Outgoing, answer: import("./wire.js").Accepted): void,
 *     changed(): void,
 *     signedOut(): void,
 *   },
 * }} deps
 */
export function makeSender({ outgoing, send, clock, on }) {
  let busy = false;
  let failures = 0;
  /** @type {(() => void) | undefined} */
  let stopWaiting;

  /** @returns {Promise<void>} */
  async function work() {
    stopWaiting?.();
    stopWaiting = undefined;
    if (busy) return;
    busy = true;
    /** @type {number | undefined} */
    let waitMs;
    try {
      for (let entry = outgoing.next(); entry && waitMs === undefined; entry = outgoing.next())
        waitMs = await sendOne(entry);
    } finally {
      busy = false;
    }
    if (waitMs !== undefined && waitMs !== Number.POSITIVE_INFINITY)
      stopWaiting = clock.after(waitMs, () => void work());
  }

  /**
   * @param {import("./outgoing.js").Outgoing} entry
   * @returns {Promise<number | undefined>} the ms to wait before going on; undefined: none, infinite: until a kick
   */
  async function sendOne(entry) {
    const reply = await send(entry.text, entry.key);
    if (reply.ok) {
      failures = 0;
      outgoing.remove(entry.key);
      on.accepted(entry, reply.value);
      return undefined;
    }
    if (reply.status === 401) {
      on.signedOut();
      return Number.POSITIVE_INFINITY;
    }
    const again = reply.status === 0 || reply.status === 408 || reply.status === 429 || reply.status >= 500;
    outgoing.mark(entry.key, again ? "retrying" : "refused", reply.message);
    on.changed();
    if (!again) return undefined;
    failures += 1;
    return reply.retryAfterMs ?? backoffMs(failures, clock.fraction());
  }

  return {
    /** Sends what waits, now: something was added, or the host is back. Never rejects. */
    kick: work,
  };
}
