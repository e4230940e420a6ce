// Owns: "typing" in a chat while work goes on. Dropped whenever anything is in its way.
import type { Clock, Stop } from "../../kernel/clock.ts";
import type { Background } from "../../kernel/log.ts";
import type { Account } from "./account.ts";

/** The status is shown for 5 seconds or less: https://core.telegram.org/bots/api#sendchataction */
const EVERY_MS = 4_500;
/** An answer that is there by then needs no sign that it comes, and its call would be in the way. */
const FIRST_MS = 300;

/** @param signal ends it, as the returned stop does. */
export function showTyping(
  deps: { account: Account; clock: Clock; background: Background; signal: AbortSignal },
  chat: string,
  thread: string | undefined,
): Stop {
  const { account, clock } = deps;
  const ending = new AbortController();
  const signal = AbortSignal.any([deps.signal, ending.signal]);
  const args = {
    chat_id: chat,
    action: "typing" as const,
    ...(thread !== undefined && { message_thread_id: Number(thread) }),
  };
  let stopTimer: Stop = () => {};

  const show = async () => {
    const bounds = { limitMs: EVERY_MS, signal };
    const answer = await account.paced(chat, "typing", (api, apiSignal) => api.sendChatAction(args, apiSignal), bounds);
    // Blocked, kicked, no such topic: it will not be better in 4 seconds.
    if (!answer.ok && answer.fault.kind === "answered" && answer.fault.code < 429) ending.abort();
  };
  const tick = () => {
    if (signal.aborted) return;
    if (account.heldMs() === 0) deps.background("telegram.typing", show());
    stopTimer = clock.after(EVERY_MS, tick, { keepAlive: false });
  };
  stopTimer = clock.after(FIRST_MS, tick, { keepAlive: false });
  return () => {
    stopTimer();
    ending.abort();
  };
}
