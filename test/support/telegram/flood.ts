// Owns: flood control: how many messages may be sent, and the window after a 429 in which none may.
import type { Clock } from "../../../src/kernel/clock.ts";
import { Refused } from "./wire.ts";

/**
 * core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this: in one chat no more than one message a second, with
 * short bursts; no more than 20 a minute in one group; about 30 a second over all chats.
 */
const LIMITS = { chatPerSecond: 1, chatBurst: 3, groupPerMinute: 20, allPerSecond: 30 };

/** What counts as a message: an edit costs as much as a new one. */
const COUNTED = new Set(["sendMessage", "sendDocument", "editMessageText"]);

/** A call that left the client before the 429 reached it is no offence. */
const CROSSED_MS = 100;

export interface Flood {
  /** The refusal of a call that comes too early, if it does. `offence`: it came inside the window of a 429. */
  check(method: string, chat: number | undefined): { refused: Refused; offence: boolean } | undefined;
  /** Counts a message that was accepted. */
  count(method: string, chat: number | undefined): void;
  /** A 429 was answered. Its window concerns the chat, or every chat when there is none. */
  opened(chat: number | undefined, retryAfterS: number): void;
}

interface Window {
  untilMs: number;
  readonly openedMs: number;
  readonly lengthMs: number;
}

export function makeFlood(clock: Clock, enforced: boolean): Flood {
  const windows = new Map<number | undefined, Window>();
  const sent: { at: number; chat: number }[] = [];
  const opened = (chat: number | undefined, retryAfterS: number) => {
    const openedMs = clock.mono();
    const lengthMs = retryAfterS * 1000;
    windows.set(chat, { openedMs, lengthMs, untilMs: openedMs + lengthMs });
  };
  const openWindow = (chat: number) =>
    [windows.get(chat), windows.get(undefined)].find((window) => window && window.untilMs > clock.mono());
  return {
    opened,
    check(method, chat) {
      if (chat === undefined) return undefined;
      const window = openWindow(chat);
      if (window !== undefined) return insideWindow(window, clock.mono());
      if (!enforced || !COUNTED.has(method)) return undefined;
      const waitMs = waitFor(chat, sent, clock.mono());
      if (waitMs <= 0) return undefined;
      const seconds = Math.ceil(waitMs / 1000);
      opened(chat, seconds);
      return { refused: tooMany(seconds), offence: false };
    },
    count(method, chat) {
      if (chat !== undefined && COUNTED.has(method)) sent.push({ at: clock.mono(), chat });
    },
  };
}

/** Calling inside the window makes it longer: it begins again. */
function insideWindow(window: Window, nowMs: number): { refused: Refused; offence: boolean } {
  const offence = nowMs - window.openedMs > CROSSED_MS;
  if (offence) window.untilMs = Math.max(window.untilMs, nowMs + window.lengthMs);
  return { refused: tooMany(Math.ceil((window.untilMs - nowMs) / 1000)), offence };
}

/** core.telegram.org/bots/api#responseparameters: the seconds left to wait. */
function tooMany(seconds: number): Refused {
  return new Refused(429, `Too Many Requests: retry after ${seconds}`, { parameters: { retry_after: seconds } });
}

/** How long the next message to the chat must wait: the longest of the three limits. */
function waitFor(chat: number, sent: readonly { at: number; chat: number }[], nowMs: number): number {
  const inChat = sent.filter((message) => message.chat === chat).map(({ at }) => at);
  const overall = sent.map(({ at }) => at);
  const group = chat < 0 ? windowWait(inChat, LIMITS.groupPerMinute, 60_000, nowMs) : 0;
  return Math.max(bucketWait(inChat, nowMs), group, windowWait(overall, LIMITS.allPerSecond, 1000, nowMs));
}

/** A bucket of `chatBurst` messages that fills by one each second. */
function bucketWait(inChat: readonly number[], nowMs: number): number {
  const perMessageMs = 1000 / LIMITS.chatPerSecond;
  let freeAtMs = Number.NEGATIVE_INFINITY;
  for (const at of inChat) freeAtMs = Math.max(freeAtMs, at) + perMessageMs;
  return freeAtMs - (LIMITS.chatBurst - 1) * perMessageMs - nowMs;
}

function windowWait(instants: readonly number[], most: number, windowMs: number, nowMs: number): number {
  const oldest = instants.at(-most);
  return oldest === undefined ? 0 : oldest + windowMs - nowMs;
}
