// Owns: the tables from what a failing call states about itself (codes, HTTP status, system errors) to an error class. Pure data.
import type { ErrorClass } from "./port.ts";

/**
 * Codes that say more than the HTTP status they come with: a used-up quota comes as 429, a full context as 400.
 * Keys are in the form that `normalCode` gives.
 */
export const TELLING_CODES: ReadonlyMap<string, ErrorClass> = new Map<string, ErrorClass>([
  ["context_length_exceeded", "context-overflow"],
  ["context_window_exceeded", "context-overflow"],
  ["model_context_window_exceeded", "context-overflow"],
  ["exceed_context_size_error", "context-overflow"],
  ["request_too_large", "context-overflow"],
  ["insufficient_quota", "quota"],
  ["quota_exceeded", "quota"],
  ["usage_limit_reached", "quota"],
  ["billing_hard_limit_reached", "billing"],
  ["billing_not_active", "billing"],
  ["billing_error", "billing"],
  ["insufficient_balance", "billing"],
  ["insufficient_credits", "billing"],
  ["payment_required", "billing"],
  ["invalid_api_key", "auth"],
  ["authentication_error", "auth"],
  ["unauthenticated", "auth"],
  ["account_deactivated", "auth"],
  ["rate_limit_exceeded", "rate-limit"],
  ["rate_limit_error", "rate-limit"],
  ["too_many_requests", "rate-limit"],
  ["resource_exhausted", "rate-limit"],
  ["overloaded", "overloaded"],
  ["overloaded_error", "overloaded"],
  ["engine_overloaded", "overloaded"],
  ["server_overloaded", "overloaded"],
  ["slow_down", "overloaded"],
  ["timeout_error", "timeout"],
  ["content_filter", "refusal"],
  ["content_policy_violation", "refusal"],
  ["responsibleaipolicyviolation", "refusal"],
  ["moderation_blocked", "refusal"],
]);

/** Codes that say less than a status, for errors that come without one (inside a stream). */
export const VAGUE_CODES: ReadonlyMap<string, ErrorClass> = new Map<string, ErrorClass>([
  ["permission_error", "auth"],
  ["permission_denied", "auth"],
  ["requests", "rate-limit"],
  ["tokens", "rate-limit"],
  ["unavailable", "overloaded"],
  ["service_unavailable", "overloaded"],
  ["timeout", "timeout"],
  ["deadline_exceeded", "timeout"],
  ["invalid_request_error", "invalid"],
  ["invalid_argument", "invalid"],
  ["not_found", "invalid"],
  ["not_found_error", "invalid"],
  ["model_not_found", "invalid"],
]);

/** The code under which the Messages API puts everything that it will not do. */
export const UNTELLING_CODE = "invalid_request_error";

/**
 * Causes that the Messages API states in nothing but the message of an error 400 with the code above. Only the beginning
 * counts: it is the server's own, while what follows may quote the request, and with it the text of a tool (Q5.7).
 */
export const STATED_CAUSES: readonly (readonly [beginning: string, ErrorClass])[] = [
  ["prompt is too long", "context-overflow"],
  ["input length and `max_tokens` exceed context limit", "context-overflow"],
  ["Your credit balance is too low", "billing"],
  ["You have reached your specified API usage limits", "quota"],
];

const STATUSES: ReadonlyMap<number, ErrorClass> = new Map<number, ErrorClass>([
  [401, "auth"],
  [402, "billing"],
  [403, "auth"],
  [407, "auth"],
  [408, "timeout"],
  [409, "server"],
  [413, "context-overflow"],
  [425, "server"],
  [429, "rate-limit"],
  [502, "overloaded"],
  [503, "overloaded"],
  [504, "overloaded"],
  [522, "timeout"],
  [524, "timeout"],
  [529, "overloaded"],
]);

/** The class of an HTTP status; undefined for one that is no error. */
export function statusClass(status: number | undefined): ErrorClass | undefined {
  if (status === undefined || status < 400) return undefined;
  return STATUSES.get(status) ?? (status >= 500 ? "server" : "invalid");
}

const SLOW_CODES: ReadonlySet<string> = new Set([
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
]);

/** Errors of sockets, DNS, TLS, and of the HTTP parser of Node's fetch. */
const NETWORK_CODE = /^(?:E[A-Z]{3,}|EAI_[A-Z]+|UND_[A-Z_]+|HPE_[A-Z_]+|CERT_[A-Z_]+|ERR_(?:TLS|SSL)_[A-Z_]+)$/;
export const TLS_CODE = /CERT|TLS|SSL|^UNABLE_TO_/;

/** The class of a system error's code; undefined for one that has nothing to do with the network. */
export function systemClass(code: string | undefined): ErrorClass | undefined {
  if (code === undefined) return undefined;
  if (SLOW_CODES.has(code)) return "timeout";
  return NETWORK_CODE.test(code) || TLS_CODE.test(code) ? "network" : undefined;
}

/** `RATE-LIMIT Exceeded` and `rate_limit_exceeded` are one code. */
export function normalCode(code: string): string {
  return code
    .trim()
    .toLowerCase()
    .replaceAll(/[\s-]+/g, "_");
}
