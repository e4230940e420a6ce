// Owns: making a message that is there, the preview of an answer, into a part. An edit has the same effect however often it is
// made, so what is unclear about one is harmless: it is made again.
import type { OutgoingPart, SendResult } from "../port.ts";
import type { Account } from "./account.ts";
import type { TelegramExtra } from "./entities.ts";
import { cannotBeEdited, isBadRequest, isMarkupRefused, isNotModified, resultOf } from "./verdict.ts";

interface Bounds {
  readonly limitMs: number;
  readonly signal: AbortSignal;
  readonly begin: (() => Promise<void>) | undefined;
}

/** Never rejects. `unedited` when the part has to go as a new message. */
export async function edit(
  account: Account,
  part: OutgoingPart,
  extra: TelegramExtra,
  bounds: Bounds,
): Promise<SendResult> {
  const message = { chat_id: part.chat, message_id: Number(part.editRef) };
  if (extra.file !== undefined) return makeRoom(account, message, bounds);
  const { entities } = extra;
  let markup = entities !== undefined && entities.length > 0;
  let { begin } = bounds;
  for (;;) {
    const form = {
      ...{ ...message, text: part.text, link_preview_options: { is_disabled: true } },
      ...(markup && entities !== undefined && { entities }),
    };
    const answer = await account.paced(part.chat, "send", (api, signal) => api.editMessageText(form, signal), {
      ...bounds,
      begin,
    });
    begin = undefined;
    if (answer.ok || isNotModified(answer.fault)) return { kind: "sent", ref: String(message.message_id) };
    if (cannotBeEdited(answer.fault)) return { kind: "unedited", reason: answer.fault.reason };
    if (!markup || !isMarkupRefused(answer.fault)) return resultOf(answer, account);
    markup = false;
  }
}

/** A text cannot become a file: it is taken away, and the file comes as a message of its own. */
async function makeRoom(
  account: Account,
  message: { chat_id: string; message_id: number },
  bounds: Bounds,
): Promise<SendResult> {
  const answer = await account.paced(
    message.chat_id,
    "send",
    (api, signal) => api.deleteMessage(message, signal),
    bounds,
  );
  // Gone already, or too old: no reason to keep the file back.
  if (answer.ok || isBadRequest(answer.fault, /./)) return { kind: "unedited", reason: "the part is a file" };
  return resultOf(answer, account);
}
