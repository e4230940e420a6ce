// Owns: what a failed call states about itself, in structured fields only: HTTP status and headers, code and type fields of
// its error body, system error codes, names of errors. Judges nothing; never reads an answer or the text of a tool (Q5.7).
import { z } from "zod";
import { normalCode } from "./error-codes.ts";

export interface Evidence {
  readonly status: number | undefined;
  /** Codes of the error body, most telling first, as `normalCode` writes them. */
  readonly codes: readonly string[];
  /** `ECONNREFUSED` and the like, outermost first. */
  readonly systemCodes: readonly string[];
  /** Names of the error and its causes, innermost first; empty for an error that came inside the stream. */
  readonly errorNames: readonly string[];
  /** The reason in the other side's words: shown, and judged by only where there is nothing else (`STATED_CAUSES`). */
  readonly text: string | undefined;
  readonly retryAfterMs: number | undefined;
}

/** Longer chains of causes are loops. */
const MAX_CAUSES = 8;

/** @param thrown an error that a call threw, or the error object that came inside the stream. Never throws. */
export function evidenceOf(thrown: unknown): Evidence {
  if (thrown instanceof Error) return ofErrors(causesOf(thrown));
  const body = bodyFacts(typeof thrown === "string" ? { error: thrown } : thrown);
  return { ...body, systemCodes: [], errorNames: [], retryAfterMs: undefined };
}

/** The error and its causes: the outer ones know the call, the inner ones the socket. */
function causesOf(outermost: Error): Error[] {
  const chain: Error[] = [];
  for (let error: unknown = outermost; error instanceof Error && chain.length < MAX_CAUSES; error = error.cause) {
    chain.push(error);
  }
  return chain;
}

const text = z.string().min(1).optional().catch(undefined);

const ErrorFields = z.looseObject({
  name: text,
  message: text,
  code: text,
  statusCode: z.number().optional().catch(undefined),
  responseHeaders: z.record(z.string(), z.string()).optional().catch(undefined),
  responseBody: text,
});
type ErrorFields = z.infer<typeof ErrorFields>;

function ofErrors(chain: readonly Error[]): Evidence {
  const errors = chain.map((error) => ErrorFields.parse(error));
  const bodies = errors.map(errorBody).filter((body) => body !== undefined);
  const facts = bodies.map(bodyFacts);
  const statuses = errors.map((error) => error.statusCode).filter((status) => status !== undefined && status >= 400);
  const systemCodes = errors.flatMap((error) => error.code ?? []);
  const errorNames = errors.map((error) => error.name ?? "Error").reverse();
  // The provider's own messages quote what it received; other errors say what went wrong here.
  const isForeign = systemCodes.length > 0 || errorNames.some((name) => name.startsWith("AI_"));
  return {
    status: statuses[0] ?? first(facts, (fact) => fact.status),
    codes: facts.flatMap((fact) => fact.codes),
    systemCodes,
    errorNames,
    text: first(facts, (fact) => fact.text) ?? (isForeign ? undefined : errors[0]?.message),
    retryAfterMs: first(errors, ({ responseHeaders }) => responseHeaders && retryAfterMs(responseHeaders)),
  };
}

function first<T, R>(items: readonly T[], look: (item: T) => R | undefined): R | undefined {
  for (const item of items) {
    const found = look(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The body of an HTTP error, or what stood in the stream where a part of the answer should be: some servers put errors there. */
function errorBody(error: ErrorFields): unknown {
  if (error.responseBody !== undefined) return parseJson(error.responseBody);
  return error.name === "AI_TypeValidationError" ? error["value"] : undefined;
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

type BodyFacts = Pick<Evidence, "status" | "codes" | "text">;

const codeField = z.union([z.string(), z.number()]).optional().catch(undefined);
const Detail = z.looseObject({
  message: text,
  detail: text,
  type: text,
  code: codeField,
  status: codeField,
  innererror: z.looseObject({ code: text }).optional().catch(undefined),
  details: z.looseObject({ error_code: text }).optional().catch(undefined),
});
const Body = z.looseObject({ error: z.union([z.string(), Detail]).optional().catch(undefined) });

/** The error object of an answer, in the shapes that OpenAI, Anthropic, Azure, Google, vLLM, llama.cpp and Ollama use. */
function bodyFacts(raw: unknown): BodyFacts {
  const body = Body.safeParse(Array.isArray(raw) ? raw[0] : raw);
  if (!body.success) return { status: undefined, codes: [], text: undefined };
  if (typeof body.data.error === "string") return { status: undefined, codes: [], text: body.data.error };
  const detail = body.data.error ?? Detail.parse(body.data);
  const inner = [detail.innererror?.code, detail.details?.error_code];
  const stated = [...inner, detail.code, detail.status, detail.type].filter((code) => code !== undefined);
  return {
    status: stated.map(Number).find((code) => Number.isInteger(code) && code >= 400 && code < 600),
    codes: stated.filter((code) => Number.isNaN(Number(code))).map((code) => normalCode(String(code))),
    text: detail.message ?? detail.detail,
  };
}

/**
 * The wait that the other side asked for. A date is read against the answer's own `Date` header, so that neither clock
 * has to be right; without one it is ignored.
 */
function retryAfterMs(headers: Readonly<Record<string, string>>): number | undefined {
  const exact = headers["retry-after-ms"];
  const plain = headers["retry-after"];
  const ms = exact === undefined ? Number(plain ?? Number.NaN) * 1000 : Number(exact);
  if (Number.isFinite(ms)) return Math.max(0, Math.round(ms));
  const wait = Date.parse(plain ?? "") - Date.parse(headers["date"] ?? "");
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined;
}
