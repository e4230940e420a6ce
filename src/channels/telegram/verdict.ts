// Owns: what an answer of Telegram to a send or an edit means for the part.
import { z } from "zod";
import type { SendResult } from "../port.ts";
import { type Account, floodWaitMs } from "./account.ts";
import type { Answer } from "./client.ts";
import { type Fault, isServerTrouble, isTokenRefused } from "./fault.ts";

/** Where nothing says when it is worth another try: no connection, or a token that a person must replace. */
const NO_CONNECTION_MS = 1_000;
const TOKEN_REFUSED_MS = 60_000;

/** Of a call that failed, when there is nothing left to give up. */
export function resultOf(answer: Extract<Answer<unknown>, { ok: false }>, account: Account): SendResult {
  const { fault } = answer;
  const { reason } = fault;
  const floodMs = floodWaitMs(answer);
  if (floodMs !== undefined) return { kind: "later", afterMs: floodMs, wholeAccount: true, reason };
  if (fault.kind === "unsent") {
    const heldMs = account.heldMs();
    return { kind: "later", afterMs: heldMs || NO_CONNECTION_MS, wholeAccount: heldMs > 0, reason };
  }
  if (fault.kind !== "answered" || isServerTrouble(fault)) return { kind: "ambiguous", reason };
  // The message is as good as before; a person must see to the token first.
  if (isTokenRefused(fault)) return { kind: "later", afterMs: TOKEN_REFUSED_MS, wholeAccount: true, reason };
  const moved = fault.movedTo === undefined ? "" : ` (the group is now ${fault.movedTo})`;
  return { kind: "refused", reason: reason + moved };
}

/** Telegram cannot make sense of the entities. */
export function isMarkupRefused(fault: Fault): boolean {
  return isBadRequest(fault, /\bparse entit|\bentit(y|ies)\b|ENTIT(Y|IES)_/i);
}

/** The message has this text and markup already. */
export function isNotModified(fault: Fault): boolean {
  return isBadRequest(fault, /not modified|MESSAGE_NOT_MODIFIED/i);
}

/** The message is gone or is none that can be edited; in a group that has moved its number may be another message's. */
export function cannotBeEdited(fault: Fault): boolean {
  return (
    isBadRequest(fault, /to edit not found|can't be edited|no text in the message|MESSAGE_ID_INVALID/i) ||
    (fault.kind === "answered" && fault.movedTo !== undefined)
  );
}

/** 400 with these words. */
export function isBadRequest(fault: Fault, words: RegExp): boolean {
  return fault.kind === "answered" && fault.code === 400 && words.test(fault.reason);
}

const sentMessage = z.looseObject({ message_id: z.number() });

/** "" when the id cannot be read: Telegram said that it was sent, and that is not undone by it. */
export function refOf(result: unknown): string {
  return String(sentMessage.safeParse(result).data?.message_id ?? "");
}
