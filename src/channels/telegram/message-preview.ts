// Owns: the growing text of a turn as one real message: sent when there is something to read, then edited, marked as unfinished
// to the end. Never makes a second one: what cannot be shown is dropped, and nothing is reported.
import type { Clock } from "../../kernel/clock.ts";
import type { Preview, PreviewPlace } from "../port.ts";
import type { Account } from "./account.ts";
import { MAX_UNITS } from "./again.ts";
import type { Answer } from "./client.ts";
import { growing, type ShowLatest } from "./growing.ts";
import { isNotModified, refOf } from "./verdict.ts";

/** For the turn and for the call each. A call that is cut off may still take effect later, and undo the final text. */
const CALL_MS = 30_000;
const DISCARD_MS = 5_000;
const UNFINISHED = " …";
const STOPPED = "(stopped)";
/** The account's pace has the last word; a group shares twenty calls a minute with all that is said in it. */
const EVERY_MS = { private: 1_000, group: 4_000 };
/** What is complete by then costs one call instead of two. */
const FIRST_MS = 1_000;
const NO_LINK_PREVIEW = { link_preview_options: { is_disabled: true } };

interface MessageDeps {
  readonly account: Account;
  readonly clock: Clock;
  /** Ends the preview, as its `end` does. */
  readonly outer: AbortSignal;
  /** Cuts off what is in flight. */
  readonly cut: AbortSignal;
}

/** @param keep as in `Channel.preview`. */
export function openMessage(
  { account, clock, outer, cut }: MessageDeps,
  place: PreviewPlace,
  keep: (ref: string) => Promise<boolean>,
): Preview {
  const { chat, chatKind, asMessage } = place;
  let { ref } = place;

  const first = async (latest: () => string, patience: AbortSignal) => {
    const answer = await account.paced(
      chat,
      "draft",
      (api, signal) => api.sendMessage({ ...firstForm(place), ...NO_LINK_PREVIEW, text: latest() }, signal),
      { limitMs: CALL_MS, signal: cut, patience },
    );
    // Certainly not sent: it may be tried again. Otherwise it may be there already, and there is no second one.
    if (!answer.ok) return answer.fault.kind === "unsent";
    const id = refOf(answer.result);
    if (id === "") return false;
    ref = id;
    return keep(id);
  };
  const next = async (id: string, latest: () => string, patience: AbortSignal) => {
    const answer = await account.paced(
      chat,
      "draft",
      (api, signal) =>
        api.editMessageText({ chat_id: chat, message_id: Number(id), ...NO_LINK_PREVIEW, text: latest() }, signal),
      { limitMs: CALL_MS, signal: cut, patience },
    );
    return !isRefused(answer);
  };
  const show: ShowLatest = (latest, patience) =>
    ref === undefined ? first(latest, patience) : next(ref, latest, patience);

  const rhythm = { firstMs: asMessage ? 0 : FIRST_MS, everyMs: EVERY_MS[chatKind] };
  const message = growing({ clock, outer, rhythm }, show);
  return {
    show(text) {
      if (text.trim() !== "") message.show(headOf(text));
    },
    async end() {
      await message.end();
      return ref;
    },
    async discard() {
      if (ref !== undefined) await takeAway({ account, cut }, chat, Number(ref));
    },
  };
}

function firstForm({ chat, thread, replyTo }: PreviewPlace) {
  return {
    chat_id: chat,
    ...(thread !== undefined && { message_thread_id: Number(thread) }),
    ...(replyTo !== undefined && {
      reply_parameters: { message_id: Number(replyTo), allow_sending_without_reply: true },
    }),
  };
}

/** Too many calls, no right to write, the message is gone: it will not be better in some seconds. */
function isRefused(answer: Answer<unknown>): boolean {
  return !answer.ok && answer.fault.kind === "answered" && answer.fault.code < 500 && !isNotModified(answer.fault);
}

/** A message that cannot be deleted says at least that nothing more comes. */
async function takeAway(
  { account, cut }: Pick<MessageDeps, "account" | "cut">,
  chat: string,
  id: number,
): Promise<void> {
  const message = { chat_id: chat, message_id: id };
  const bounds = { limitMs: DISCARD_MS, signal: cut };
  const deleted = await account.now((api, signal) => api.deleteMessage(message, signal), bounds);
  if (deleted.ok) return;
  await account.paced(
    chat,
    "draft",
    (api, signal) => api.editMessageText({ ...message, text: STOPPED }, signal),
    bounds,
  );
}

/** The beginning: it stays where it is when the rest comes. */
function headOf(text: string): string {
  const room = MAX_UNITS - UNFINISHED.length;
  const head = text.length <= room ? text : text.slice(0, room).replace(/[\uD800-\uDBFF]$/, "");
  return head.trimEnd().toWellFormed() + UNFINISHED;
}
