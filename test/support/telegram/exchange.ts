// Owns: one HTTP request from its arrival to its answer: token, flood control, planned faults, the method, the record of it.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../../../src/kernel/clock.ts";
import type { Fault, Faults } from "./faults.ts";
import type { Flood } from "./flood.ts";
import type { CallRecord, Journal } from "./journal.ts";
import type { Method } from "./method.ts";
import { download } from "./methods-files.ts";
import { Refused, readCall, sendRefusal, sendResult, type WireCall } from "./wire.ts";
import type { World } from "./world.ts";

export interface ExchangeDeps {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly faults: Faults;
  readonly flood: Flood;
  readonly world: World;
  readonly methods: Readonly<Record<string, Method>>;
  /** The token that is right now. */
  token(): string;
}

interface Exchange {
  readonly record: CallRecord;
  readonly call: WireCall;
  readonly response: ServerResponse;
  readonly gone: AbortSignal;
}

export async function answer(deps: ExchangeDeps, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", "http://fake");
  const [, file, token, rest = ""] = /^\/(file\/)?bot([^/]*)\/(.*)$/.exec(url.pathname) ?? [];
  if (file !== undefined) return answerFile(deps, response, token, rest);
  // Names of methods are case-insensitive.
  const name = Object.keys(deps.methods).find((known) => known.toLowerCase() === rest.toLowerCase()) ?? rest;
  const gone = new AbortController();
  response.on("close", () => response.writableFinished || gone.abort());
  let call: WireCall = { method: name, params: {}, files: new Map() };
  let wrong: Refused | undefined;
  try {
    call = await readCall(request, name, url.searchParams);
  } catch (error) {
    if (!(error instanceof Refused)) return;
    wrong = error;
  }
  const exchange = { record: deps.journal.open(call), call, response, gone: gone.signal };
  if (token !== deps.token())
    wrong = new Refused(token === undefined ? 404 : 401, token === undefined ? "Not Found" : "Unauthorized");
  if (wrong !== undefined) return refused(deps, exchange, wrong);
  await perform(deps, exchange);
}

async function perform(deps: ExchangeDeps, exchange: Exchange): Promise<void> {
  const { record, call, gone } = exchange;
  const chat = call.params["chat_id"] === undefined ? undefined : Number(call.params["chat_id"]);
  const early = deps.flood.check(call.method, chat);
  if (early !== undefined) {
    if (early.offence) deps.journal.violated(record, "called inside the window of a 429");
    return refused(deps, exchange, early.refused);
  }
  const fault = deps.faults.take(call.method);
  if (fault?.kind === "fail") {
    const retryAfter = fault.refused.parameters?.retry_after;
    if (fault.refused.status === 429 && retryAfter !== undefined) deps.flood.opened(chat, retryAfter);
    return refused(deps, exchange, fault.refused);
  }
  if (fault !== undefined && !fault.accepted) return spoil(deps, exchange, fault, false);
  const { beforeMs, afterMs } = deps.faults.latency(call.method);
  if (beforeMs > 0) await new Promise<void>((resolve) => deps.clock.after(beforeMs, resolve));
  const result = await outcomeOf(deps, exchange);
  if (!(result instanceof Refused)) deps.flood.count(call.method, chat);
  if (fault !== undefined) return spoil(deps, exchange, fault, !(result instanceof Refused));
  await held(deps, afterMs, gone);
  if (gone.aborted) return deps.journal.close(record, lost(call.method, result));
  if (result instanceof Refused) return refused(deps, exchange, result);
  deps.journal.close(record, { kind: "ok", result });
  sendResult(exchange.response, result);
}

/** The client did not wait for the answer. */
function lost(method: string, result: unknown) {
  if (method === "getUpdates") return { kind: "gone" } as const;
  return { kind: "dropped", accepted: !(result instanceof Refused) } as const;
}

async function outcomeOf({ methods }: ExchangeDeps, { record, call, gone }: Exchange): Promise<unknown> {
  try {
    const run = Object.hasOwn(methods, call.method) ? methods[call.method] : undefined;
    if (run === undefined) throw new Refused(404, "Not Found", { breach: true });
    return await run({ record, files: call.files, gone });
  } catch (error) {
    if (error instanceof Refused) return error;
    // A fault of the fake itself: the test must see it, not the client alone.
    return new Refused(500, `the fake broke: ${error instanceof Error ? error.stack : error}`, { breach: true });
  }
}

async function held({ clock }: ExchangeDeps, ms: number, gone: AbortSignal): Promise<void> {
  if (ms > 0) await clock.sleep(ms, gone).catch(() => undefined);
}

function refused({ journal }: ExchangeDeps, { record, response }: Exchange, refusal: Refused): void {
  const { status, description } = refusal;
  if (refusal.breach) journal.violated(record, description);
  journal.close(record, { kind: "refused", status, description });
  sendRefusal(response, refusal);
}

function spoil(
  { journal }: ExchangeDeps,
  { record, response }: Exchange,
  fault: Exclude<Fault, { kind: "fail" }>,
  accepted: boolean,
): void {
  switch (fault.kind) {
    case "drop":
      journal.close(record, { kind: "dropped", accepted });
      response.destroy();
      return;
    case "hang":
      journal.close(record, { kind: "hung", accepted });
      return;
    case "spoil":
      journal.close(record, { kind: "spoilt", accepted });
      response.writeHead(fault.status, { "content-type": fault.status === 200 ? "application/json" : "text/html" });
      response.end(fault.body);
      return;
    default:
      fault satisfies never;
  }
}

function answerFile(
  { world, token: right }: ExchangeDeps,
  response: ServerResponse,
  token: string | undefined,
  path: string,
): void {
  try {
    if (token !== right()) throw new Refused(401, "Unauthorized");
    const bytes = download(world, path);
    response.writeHead(200, { "content-type": "application/octet-stream", "content-length": bytes.length });
    response.end(bytes);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    sendRefusal(response, error);
  }
}
