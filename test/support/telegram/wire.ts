// Owns: the form of the Bot API on the wire: how a call's parameters are read, what an answer looks like, what a refusal is.
// It knows no method and no state.
import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { z } from "zod";

/** A file that came in a multipart form. */
export interface Upload {
  readonly name: string;
  readonly type: string;
  readonly bytes: Uint8Array;
}

export interface WireCall {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly files: ReadonlyMap<string, Upload>;
}

/** More about a refusal; core.telegram.org/bots/api#responseparameters. */
export interface RefusalParameters {
  readonly retry_after?: number;
  readonly migrate_to_chat_id?: number;
}

/** A call that ends with ok: false. `breach`: a correct client never makes such a call. */
export class Refused extends Error {
  readonly status: number;
  readonly description: string;
  readonly parameters: RefusalParameters | undefined;
  readonly breach: boolean;

  constructor(status: number, description: string, more: { parameters?: RefusalParameters; breach?: boolean } = {}) {
    super(description);
    this.status = status;
    this.description = description;
    this.parameters = more.parameters;
    this.breach = more.breach ?? false;
  }
}

/** What the client could not know in advance: a chat that is gone, a message that was deleted. */
export function refuse(description: string): never {
  throw new Refused(400, `Bad Request: ${description}`);
}

/** What a correct client never sends. */
export function breach(description: string): never {
  throw new Refused(400, `Bad Request: ${description}`, { breach: true });
}

// core.telegram.org/bots/api#sending-files: up to 50 MB may be uploaded.
const MAX_REQUEST_BYTES = 51 * 1024 * 1024;

/**
 * Reads the parameters of a call in each of the four forms of core.telegram.org/bots/api#making-requests: query string,
 * urlencoded, JSON (not for files) and multipart.
 */
export async function readCall(request: IncomingMessage, method: string, query: URLSearchParams): Promise<WireCall> {
  const params: Record<string, unknown> = Object.fromEntries(query);
  const files = new Map<string, Upload>();
  const body = await buffer(request);
  const type = request.headers["content-type"] ?? "";
  if (body.length > MAX_REQUEST_BYTES) throw new Refused(413, "Request Entity Too Large", { breach: true });
  if (body.length === 0) return { method, params, files };
  if (type.startsWith("application/json")) {
    Object.assign(params, jsonObject(body.toString()));
  } else if (type.startsWith("application/x-www-form-urlencoded") || type.startsWith("multipart/form-data")) {
    for (const [name, value] of await form(body, type)) {
      if (typeof value === "string") params[name] = value;
      else files.set(name, { name: value.name, type: value.type, bytes: new Uint8Array(await value.arrayBuffer()) });
    }
  } else {
    breach(`unsupported content type ${type}`);
  }
  return { method, params, files };
}

async function form(body: Buffer<ArrayBuffer>, type: string): Promise<FormData> {
  try {
    return await new Response(body, { headers: { "content-type": type } }).formData();
  } catch {
    breach("can't parse the form");
  }
}

function jsonObject(text: string): object {
  const value = parsed(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) breach("can't parse request JSON object");
  return value;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Answers in the form of core.telegram.org/bots/api#making-requests. */
export function sendResult(response: ServerResponse, result: unknown): void {
  send(response, 200, { ok: true, result });
}

export function sendRefusal(response: ServerResponse, refused: Refused): void {
  const { status, description, parameters } = refused;
  send(response, status, { ok: false, error_code: status, description, ...(parameters && { parameters }) });
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

// Outside JSON every value comes as a string, objects "JSON-serialized" (core.telegram.org/bots/api#making-requests).

export const int = z.preprocess(
  (value) => (typeof value === "string" && /^-?\d+$/.test(value) ? Number(value) : value),
  z.number().int(),
);

export const bool = z.preprocess(
  (value) => (typeof value === "string" ? ["true", "1"].includes(value.toLowerCase()) : value),
  z.boolean(),
);

/** A string of whole characters: "strings must be encoded in UTF-8" rules a lone surrogate out. */
export const text = z.string().refine((value) => value.isWellFormed(), "strings must be encoded in UTF-8");

export function json<T>(schema: z.ZodType<T>) {
  return z.preprocess((value) => (typeof value === "string" ? parsed(value) : value), schema);
}

/** The parameters of a method as its schema says; anything else is a breach. */
export function readParams<T>(schema: z.ZodType<T>, params: Readonly<Record<string, unknown>>): T {
  const result = schema.safeParse(params);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  breach(`parameter "${issue?.path.join(".")}": ${issue?.message}`);
}
