// Owns: what a failed call to Telegram means, in our words. Never lets a token, a URL or a payload into a reason: the errors of
// the client carry the URL with the token in it (SEC-1), so only codes and Telegram's own description are taken from them.
import { GrammyError, HttpError } from "grammy";
import { z } from "zod";

export type Fault =
  /** Telegram answered that it did not do it. */
  | {
      readonly kind: "answered";
      readonly code: number;
      readonly reason: string;
      readonly retryAfterMs: number | undefined;
      /** The group has become a supergroup with this id. */
      readonly movedTo: string | undefined;
    }
  /** No byte of the request left this machine. */
  | { readonly kind: "unsent"; readonly reason: string }
  /** Bytes may have left and no usable answer came. */
  | { readonly kind: "unclear"; readonly reason: string }
  /** Our own signal ended the call; bytes may have left. */
  | { readonly kind: "stopped"; readonly reason: string };

/** Put before the system's code of an error on a connection that was never made (see `connections.ts`). */
export const UNSENT = "UNSENT_";

const codes = z.object({ code: z.string().optional(), type: z.string().optional() });

/** @param token hidden wherever it turns up in Telegram's own words. */
export function faultOf(thrown: unknown, token: string): Fault {
  if (thrown instanceof GrammyError && Number.isInteger(thrown.error_code)) return answered(thrown, token);
  if (!(thrown instanceof HttpError)) return { kind: "unclear", reason: "the answer was not one of the Bot API" };
  const { code, type } = codes.safeParse(thrown.error).data ?? {};
  if (code?.startsWith(UNSENT)) return { kind: "unsent", reason: `could not connect (${code.slice(UNSENT.length)})` };
  if (type === "invalid-json") return { kind: "unclear", reason: "the answer was not JSON, or was cut" };
  return { kind: "unclear", reason: `the connection failed (${code ?? type ?? "no code"})` };
}

function answered(error: GrammyError, token: string): Fault {
  const { retry_after: seconds, migrate_to_chat_id: movedTo } = error.parameters;
  return {
    kind: "answered",
    code: error.error_code,
    reason: hideToken(`${error.error_code}: ${String(error.description)}`, token),
    retryAfterMs: typeof seconds === "number" && seconds >= 0 ? seconds * 1000 : undefined,
    movedTo: movedTo === undefined ? undefined : String(movedTo),
  };
}

/** Hides the token, also where it is written for a URL, and its secret half alone. */
function hideToken(text: string, token: string): string {
  const secret = token.slice(token.indexOf(":") + 1);
  return [token, encodeURIComponent(token), secret]
    .filter((form) => form.length >= 4)
    .reduce((clean, form) => clean.replaceAll(form, "[hidden]"), text);
}

/** The server is in trouble; whether it did what was asked is unknown. */
export function isServerTrouble(fault: Fault): boolean {
  return fault.kind === "answered" && fault.code >= 500;
}

/** Telegram answers 401 to a revoked token and 404 to one that cannot be one. */
export function isTokenRefused(fault: Fault): boolean {
  return fault.kind === "answered" && (fault.code === 401 || fault.code === 404);
}
