// Owns: receiving by webhook: who may post, and that Telegram is told only after the commit. It opens no port.
import { createHash, timingSafeEqual } from "node:crypto";
import { messageOf } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import { type Taker, takeUpdates } from "./take.ts";

/** An update is some kilobytes; 1 MiB leaves room for any. */
const MAX_BODY_BYTES = 1_048_576;

/**
 * One request of Telegram.
 * @param secretHeader the value of `X-Telegram-Bot-Api-Secret-Token` (https://core.telegram.org/bots/api#setwebhook).
 * @returns the HTTP status: 200 once committed; anything else makes Telegram repeat the update. A repeat of one that was
 * committed is told by its event's key and makes nothing happen twice.
 */
export type Webhook = (secretHeader: string | undefined, body: Uint8Array) => Promise<{ readonly status: number }>;

/** @param taker undefined while the channel does not receive. */
export function makeWebhook(deps: {
  secret: string;
  log: Log;
  taker: () => Taker | undefined;
  taken: () => void;
}): Webhook {
  const secretDigest = digest(deps.secret);
  let last: Promise<unknown> = Promise.resolve();

  return async (secretHeader, body) => {
    if (secretHeader === undefined || !timingSafeEqual(digest(secretHeader), secretDigest)) return { status: 401 };
    if (body.byteLength > MAX_BODY_BYTES) return { status: 413 };
    const update = parsed(body);
    if (update === undefined) return { status: 400 };
    const taker = deps.taker();
    if (taker === undefined) return { status: 503 };
    // One after the other, so that the position never goes back over a request that came later.
    const taking = last.then(() => takeUpdates(taker, [update]));
    last = taking.catch(() => {});
    try {
      await taking;
    } catch (thrown) {
      deps.log.warn("channel.take.failed", { channel: "telegram", error: messageOf(thrown) });
      return { status: 503 };
    }
    deps.taken();
    return { status: 200 };
  };
}

function digest(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
}
