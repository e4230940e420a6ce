// Owns: from a failed model call to a class and one line for people. The class follows from what evidence.ts found, by the
// tables of error-codes.ts, and never from a text that another than the server may have written (Q5.7).
import {
  STATED_CAUSES,
  statusClass,
  systemClass,
  TELLING_CODES,
  TLS_CODE,
  UNTELLING_CODE,
  VAGUE_CODES,
} from "./error-codes.ts";
import { type Evidence, evidenceOf } from "./evidence.ts";
import type { BackendFailure, ErrorClass } from "./port.ts";
import { oneLine, scrub } from "./scrub.ts";

/** What a message may say about the other side, and what it must not. */
export interface Endpoint {
  readonly baseUrl: string;
  readonly model: string;
  readonly hasKey: boolean;
  /** Values that no message may hold. */
  readonly secrets: readonly string[];
}

const MAX_MESSAGE_CHARS = 300;

/**
 * Why a call failed, from whatever was thrown or came as an error inside the stream. Never throws.
 * An abort is for the caller to see: the signal knows, the error may not.
 */
export function classifyFailure(thrown: unknown, endpoint: Endpoint): BackendFailure {
  const evidence = evidenceOf(thrown);
  const errorClass = classOf(evidence);
  const failure = describe(errorClass, explain(errorClass, evidence, endpoint), endpoint);
  const { status, retryAfterMs } = evidence;
  return {
    ...failure,
    ...(status === undefined ? {} : { status }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

/** A failure whose class is known, with a message that is fit to be shown. */
export function describe(errorClass: ErrorClass, message: string, endpoint: Endpoint): BackendFailure {
  return { class: errorClass, message: oneLine(scrub(message, endpoint.secrets), MAX_MESSAGE_CHARS) };
}

function classOf(evidence: Evidence): ErrorClass {
  // A request that is too large stays so, whatever code comes with it; only a shorter one helps.
  if (evidence.status === 413) return "context-overflow";
  return (
    firstKnown(evidence.codes, (code) => TELLING_CODES.get(code)) ??
    statedCause(evidence) ??
    statusClass(evidence.status) ??
    firstKnown(evidence.codes, (code) => VAGUE_CODES.get(code)) ??
    firstKnown(evidence.systemCodes, systemClass) ??
    firstKnown(evidence.errorNames, (name) => ERROR_NAMES.get(name)) ??
    (evidence.errorNames.length === 0 ? "server" : "invalid")
  );
}

function statedCause({ status, codes, text = "" }: Evidence): ErrorClass | undefined {
  if (status !== 400 || !codes.includes(UNTELLING_CODE)) return undefined;
  return STATED_CAUSES.find(([beginning]) => text.startsWith(beginning))?.[1];
}

/** Errors of the provider package and of fetch that have no code. */
const ERROR_NAMES: ReadonlyMap<string, ErrorClass> = new Map<string, ErrorClass>([
  ["AI_JSONParseError", "server"],
  ["AI_TypeValidationError", "server"],
  ["AI_InvalidResponseDataError", "server"],
  ["AI_EmptyResponseBodyError", "server"],
  ["AI_APICallError", "network"],
  ["AbortError", "network"],
  ["TimeoutError", "timeout"],
]);

function firstKnown(keys: readonly string[], look: (key: string) => ErrorClass | undefined): ErrorClass | undefined {
  for (const key of keys) {
    const found = look(key);
    if (found !== undefined) return found;
  }
  return undefined;
}

function explain(errorClass: ErrorClass, evidence: Evidence, endpoint: Endpoint): string {
  const status = evidence.status === undefined ? "" : ` (${evidence.status})`;
  const reason = evidence.text === undefined ? "" : `: ${evidence.text}`;
  switch (errorClass) {
    case "auth":
      // The other side's words are left out: they tend to quote the key.
      if (evidence.status === 403) return `access was refused${status}`;
      return endpoint.hasKey ? `the key was refused${status}` : `the server asks for a key${status}`;
    case "billing":
      return `the account has no credit left${status}`;
    case "quota":
      return `the quota is used up${status}`;
    case "rate-limit":
      return `the server was asked too often${status}`;
    case "overloaded":
      return `the server is overloaded${status}`;
    case "timeout":
      return `${originOf(endpoint)} did not answer in time${status}`;
    case "network":
      return explainNetwork(
        evidence.systemCodes.find((code) => systemClass(code) === "network"),
        endpoint,
      );
    case "context-overflow":
      return `the conversation is too long for the model ${endpoint.model}${status}`;
    case "refusal":
      return `the content was refused${status}${reason}`;
    case "aborted":
      return "the call was stopped";
    case "server":
      return evidence.errorNames.some((name) => name.startsWith("AI_") && name !== "AI_APICallError") && reason === ""
        ? `${originOf(endpoint)} sent something that is no model stream`
        : `the server failed${status}${reason}`;
    case "invalid":
      return explainInvalid(evidence, endpoint, `${status}${reason}`);
    default:
      return errorClass satisfies never;
  }
}

function explainInvalid(evidence: Evidence, endpoint: Endpoint, suffix: string): string {
  // A bare "Not Found" is what web frameworks say of a path; a server that was asked for a model says more.
  const named = evidence.codes.length > 0 || (evidence.text !== undefined && evidence.text !== "Not Found");
  if (evidence.codes.includes("model_not_found") || (evidence.status === 404 && named)) {
    return `the server does not know the model ${endpoint.model}${suffix}`;
  }
  if (evidence.status === 404 || evidence.status === 405) {
    return `${originOf(endpoint)} has no model endpoint at this baseUrl${suffix}`;
  }
  return evidence.status === undefined
    ? `the request cannot be made${suffix}`
    : `the server refused the request${suffix}`;
}

function explainNetwork(code: string | undefined, endpoint: Endpoint): string {
  const origin = originOf(endpoint);
  if (code === "ECONNREFUSED") return `nothing listens at ${origin}`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return `the host of ${origin} cannot be found (${code})`;
  if (code !== undefined && TLS_CODE.test(code)) return `the certificate of ${origin} was not accepted (${code})`;
  return `the connection to ${origin} broke${code === undefined ? "" : ` (${code})`}`;
}

/** Scheme, host and port: without a path, a query or a password. */
function originOf(endpoint: Endpoint): string {
  return URL.canParse(endpoint.baseUrl) ? new URL(endpoint.baseUrl).origin : "the server";
}
