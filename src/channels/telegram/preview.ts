// Owns: the growing text of a turn as a draft in a private chat, at most one call a second, always the newest text. A draft is
// decoration: what cannot be shown is dropped, nothing is reported. https://core.telegram.org/bots/api#sendmessagedraft
import type { Clock } from "../../kernel/clock.ts";
import type { Preview } from "../port.ts";
import type { Account } from "./account.ts";
import type { Answer } from "./client.ts";
import { growing, type ShowLatest } from "./growing.ts";

/** What is complete by `firstMs` goes without a draft, whose call would make it wait for its turn. */
const RHYTHM = { firstMs: 500, everyMs: 1_000 };
/** A draft that takes longer is stale; the final message waits for it. */
const CALL_MS = 5_000;
const MAX_UNITS = 4_096;

interface Place {
  readonly chat: string;
  readonly thread: string | undefined;
}

export interface Drafts {
  /** @param signal ends the preview, as its `end` does. */
  open(place: Place, signal: AbortSignal): Preview | undefined;
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

  const showAt = ({ chat, thread }: Place, signal: AbortSignal): ShowLatest => {
    const to = {
      chat_id: Number(chat),
      draft_id: nextId(),
      can_stop: true,
      ...(thread !== undefined && { message_thread_id: Number(thread) }),
    };
    return async (latest, patience) => {
      if (!known) return false;
      const answer = await account.paced(
        chat,
        "draft",
        (api, apiSignal) => api.sendMessageDraft({ ...to, text: latest() }, apiSignal),
        { limitMs: CALL_MS, signal, patience },
      );
      if (isUnsupported(answer)) known = false;
      return answer.ok || answer.fault.kind !== "answered";
    };
  };

  return {
    open(place, signal) {
      if (!known) return undefined;
      const draft = growing({ clock, outer: signal, rhythm: RHYTHM }, showAt(place, signal));
      return {
        show: (text) => draft.show(tailOf(text)),
        async end() {
          await draft.end();
          return undefined;
        },
        async discard() {},
      };
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
