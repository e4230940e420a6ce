// Owns: sending one part, and saying what became of it. What certainly was not sent may be repeated, what is refused for good is
// not, and everything in between is ambiguous; the host decides about that. Never retries except to shed what Telegram refused.
import { InputFile, type RawApi } from "grammy";
import type { OutgoingPart, SendResult } from "../port.ts";
import type { Account } from "./account.ts";
import { AGAIN, AGAIN_LINE, MAX_UNITS } from "./again.ts";
import type { ApiSignal } from "./client.ts";
import { edit } from "./edit.ts";
import { type TelegramExtra, telegramExtra } from "./entities.ts";
import type { Fault } from "./fault.ts";
import { isMarkupRefused, refOf, resultOf } from "./verdict.ts";

/** For the turn and for the call each. */
const SEND_MS = 30_000;

/** What is given up when Telegram refuses it, each at most once. */
interface Form {
  readonly chat: string;
  readonly markup: boolean;
  readonly thread: boolean;
  readonly reply: boolean;
}

/** Never rejects. @param begin as in `Channel.send`. */
export async function send(
  account: Account,
  part: OutgoingPart,
  signal: AbortSignal,
  begin: (() => Promise<void>) | undefined,
): Promise<SendResult> {
  const extra = readExtra(part.extra);
  if (part.editRef !== undefined) return edit(account, part, extra, { limitMs: SEND_MS, signal, begin });
  let beginOnce = begin;
  let form: Form = { chat: part.chat, markup: true, thread: true, reply: true };
  for (;;) {
    const current = form;
    const answer = await account.paced(
      current.chat,
      "send",
      (api, apiSignal): Promise<unknown> => request(api, part, extra, current, apiSignal),
      { limitMs: SEND_MS, signal, begin: beginOnce },
    );
    beginOnce = undefined;
    if (answer.ok) return { kind: "sent", ref: refOf(answer.result) };
    const simpler = simplerForm(current, part, extra, answer.fault);
    if (simpler === undefined) return resultOf(answer, account);
    form = simpler;
  }
}

function request(api: RawApi, part: OutgoingPart, extra: TelegramExtra, form: Form, signal: ApiSignal) {
  const to = {
    chat_id: form.chat,
    ...(form.thread && part.thread !== undefined && { message_thread_id: Number(part.thread) }),
    ...(form.reply &&
      part.replyTo !== undefined && {
        reply_parameters: { message_id: Number(part.replyTo), allow_sending_without_reply: true },
      }),
  };
  if (extra.file !== undefined) {
    const document = new InputFile(Buffer.from(part.text), extra.file.name);
    return api.sendDocument({ ...to, document, ...(part.again && { caption: AGAIN }) }, signal);
  }
  const { text, shift } = textOf(part);
  const entities = (extra.entities ?? []).map((entity) => ({ ...entity, offset: entity.offset + shift }));
  return api.sendMessage(
    {
      ...to,
      text,
      link_preview_options: { is_disabled: true },
      ...(form.markup && entities.length > 0 && { entities }),
    },
    signal,
  );
}

/** `renderTelegram` leaves room for the line; a part that has none, whoever made it, is sent as it is rather than refused. */
function textOf(part: OutgoingPart): { text: string; shift: number } {
  if (!part.again || AGAIN_LINE.length + part.text.length > MAX_UNITS) return { text: part.text, shift: 0 };
  return { text: AGAIN_LINE + part.text, shift: AGAIN_LINE.length };
}

/** The same message without what Telegram just refused, or undefined when there is nothing to give up. */
function simplerForm(form: Form, part: OutgoingPart, extra: TelegramExtra, fault: Fault): Form | undefined {
  if (fault.kind !== "answered" || fault.code !== 400) return undefined;
  const { reason, movedTo } = fault;
  if (movedTo !== undefined && form.chat === part.chat) return { ...form, chat: movedTo };
  if (form.markup && extra.entities !== undefined && isMarkupRefused(fault)) {
    return { ...form, markup: false };
  }
  if (form.thread && part.thread !== undefined && /thread not found/i.test(reason)) return { ...form, thread: false };
  // Its words have changed over the years.
  if (form.reply && part.replyTo !== undefined && /(replied|reply)( message)? not found/i.test(reason)) {
    return { ...form, reply: false };
  }
  return undefined;
}

/** Markup that cannot be read is left away: the text alone is always a message. */
function readExtra(extra: string | undefined): TelegramExtra {
  if (extra === undefined) return {};
  try {
    return telegramExtra.parse(JSON.parse(extra));
  } catch {
    return {};
  }
}
