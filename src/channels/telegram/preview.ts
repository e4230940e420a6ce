// Owns: the growing text of a turn as a draft in a private chat, at most one call a second, always the newest text. A draft is
// decoration: what cannot be shown is dropped, nothing is reported. https://core.telegram.org/bots/api#sendmessagedraft
import type { Clock, Stop } from "../../kernel/clock.ts";
import type { Preview } from "../port.ts";
import type { Account } from "./account.ts";
import type { Answer } from "./client.ts";

const INTERVAL_MS = 1_000;
/** An answer that is complete by then is sent without a draft, whose call would make it wait for its turn. */
const FIRST_MS = 500;
/** A draft that takes longer is stale; the final message waits for it. */
const CALL_MS = 5_000;
const MAX_UNITS = 4_096;

interface Place {
  readonly chat: string;
  readonly thread: string | undefined;
  readonly id: number;
}

export interface Drafts {
  /** @param signal ends the preview, as its `end` does. */
  open(chat: string, thread: string | undefined, signal: AbortSignal): Preview | undefined;
}

export function makeDrafts(deps: { account: Account; clock: Clock }): Drafts {
  const { account, clock } = deps;
  // An older server does not know drafts at all; then there is no point in asking again at every word.
  let known = true;
  let lastId = 0;

  /** Unique over restarts as well, because the stop button of a draft is known by it: seconds, or one more than the last. */
  const nextId = () => {
    lastId = Math.max(lastId + 1, Math.floor(clock.now() / 1000));
    return lastId;
  };

  const show = async (to: Place, text: string, signal: AbortSignal, patience: AbortSignal) => {
    const args = {
      chat_id: Number(to.chat),
      draft_id: to.id,
      text: tailOf(text),
      can_stop: true,
      ...(to.thread !== undefined && { message_thread_id: Number(to.thread) }),
    };
    const bounds = { limitMs: CALL_MS, signal, patience };
    const answer = await account.paced(
      to.chat,
      "draft",
      (api, apiSignal) => api.sendMessageDraft(args, apiSignal),
      bounds,
    );
    if (isUnsupported(answer)) known = false;
    return answer.ok || answer.fault.kind !== "answered";
  };

  return {
    open(chat, thread, signal) {
      if (!known) return undefined;
      const to = { chat, thread, id: nextId() };
      return growing(clock, signal, (text, ending) =>
        known ? show(to, text, signal, ending) : Promise.resolve(false),
      );
    },
  };
}

/** @param show resolves to false when there is no point in showing more. Never rejects. */
function growing(
  clock: Clock,
  outer: AbortSignal,
  show: (text: string, signal: AbortSignal) => Promise<boolean>,
): Preview {
  const ending = new AbortController();
  const signal = AbortSignal.any([outer, ending.signal]);
  let shown = "";
  let latest = "";
  let nextAt = clock.mono() + FIRST_MS;
  let inFlight: Promise<void> | undefined;
  let stopTimer: Stop | undefined;

  const call = async () => {
    shown = latest;
    nextAt = clock.mono() + INTERVAL_MS;
    if (!(await show(shown, signal))) ending.abort();
    inFlight = undefined;
    pump();
  };
  const pump = () => {
    if (signal.aborted || inFlight !== undefined || stopTimer !== undefined || latest === shown) return;
    const waitMs = nextAt - clock.mono();
    if (waitMs <= 0) {
      inFlight = call();
      return;
    }
    stopTimer = clock.after(
      waitMs,
      () => {
        stopTimer = undefined;
        pump();
      },
      { keepAlive: false },
    );
  };

  return {
    show(text) {
      if (text.trim() === "") return;
      latest = text;
      pump();
    },
    async end() {
      stopTimer?.();
      ending.abort();
      await inFlight;
    },
  };
}

/** 404: no such method. 400: the server knows it and will not do it for this bot, unless only the chat or topic is gone. */
function isUnsupported(answer: Answer<unknown>): boolean {
  if (answer.ok || answer.fault.kind !== "answered") return false;
  const { code, reason } = answer.fault;
  return code === 404 || (code === 400 && !/(chat|thread) not found/i.test(reason));
}

/** Of a text that is longer than a message, the end is what is new. */
function tailOf(text: string): string {
  if (text.length <= MAX_UNITS) return text.toWellFormed();
  return `…${text.slice(1 - MAX_UNITS).toWellFormed()}`;
}
