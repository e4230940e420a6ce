// Owns: how a refusal and an error look from outside: status, shape (Laneway's own, under /v1 OpenAI's) and what is logged.
import type { Context } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { LanewayError } from "../kernel/errors.ts";
import { errorFields, type Log } from "../kernel/log.ts";
import { openAiError } from "./openai-error.ts";

export interface Refused {
  readonly status: ContentfulStatusCode;
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
}

/** Whose fault it is and whether another try makes sense. */
const STATUS: Readonly<Record<string, ContentfulStatusCode>> = {
  invalid_input: 400,
  forbidden: 403,
  stopped: 403,
  not_found: 404,
  key_reused: 409,
  wrong_media_type: 415,
  queue_full: 429,
  no_answer: 502,
  store_unavailable: 503,
  fenced_off: 503,
};
/** After this a full queue or disk is worth another try. */
const RETRY_AFTER_S = "5";

export function refuse(c: Context, { status, code, message, hint }: Refused): Response {
  if (status === 429 || status === 503) c.header("retry-after", RETRY_AFTER_S);
  if (c.req.path.startsWith("/v1/")) return c.json(openAiError({ code, message, hint }), status);
  return c.json({ error: { code, message, hint } }, status);
}

/** Only what nobody expected is logged as a failure of the host. */
export function failure(c: Context, thrown: unknown, log: Log): Response {
  const known = thrown instanceof LanewayError ? thrown : undefined;
  const status = STATUS[known?.code ?? ""] ?? 500;
  if (status === 500) log.error("http.failed", { path: c.req.path, ...errorFields(thrown) });
  const { code, message, hint } = known ?? INTERNAL;
  return refuse(c, { status, code, message, hint });
}

const INTERNAL = { code: "internal", message: "Laneway failed on this request; its log says why", hint: undefined };

export function tooLarge(c: Context): Response {
  return refuse(c, { status: 413, code: "too_large", message: "the body is larger than this route takes" });
}
