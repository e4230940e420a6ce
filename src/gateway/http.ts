// Owns: the one port: routes, and how errors look from outside. What a route does is elsewhere.
import { createServer, type Server } from "node:http";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { z } from "zod";
import type { Clock } from "../kernel/clock.ts";
import { InvalidInput, LanewayError, messageOf } from "../kernel/errors.ts";
import { errorFields, type Log } from "../kernel/log.ts";
import type { Access, AccessRequest, Refusal } from "./access.ts";
import type { Assets } from "./assets.ts";
import type { Live } from "./live.ts";
import { type OpenAiDoor, openAiError } from "./openai.ts";
import { sseResponse } from "./sse.ts";
import { chatName, pullChannel, pullRoute, runVerb, type VerbDeps } from "./verbs.ts";

interface HttpDeps {
  readonly access: Access;
  readonly assets: Assets;
  readonly live: Live;
  readonly verbs: VerbDeps;
  readonly openai: OpenAiDoor;
  readonly readiness: () => { ready: boolean };
  readonly audit: (action: string, target: string, detail: Record<string, unknown>) => void;
  readonly clock: Clock;
  readonly log: Log;
  /** Without the web channel there is no page; the doors of CLI and API stay. */
  readonly page: boolean;
}

type Env = { Bindings: HttpBindings };
type Ctx = Context<Env>;

const MAX_API_BYTES = 1_048_576;
/** Histories of whole conversations come through the OpenAI door. */
const MAX_COMPLETION_BYTES = 16 * 1_048_576;
/** A client that has not sent its request by then is no client (NET-R6). */
const REQUEST_TIMEOUT_MS = 30_000;
const HEADERS_TIMEOUT_MS = 10_000;

export function makeServer(deps: HttpDeps): Server {
  const app = makeApp(deps);
  const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }));
  server.headersTimeout = HEADERS_TIMEOUT_MS;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  return server;
}

function makeApp(deps: HttpDeps): Hono<Env> {
  const app = new Hono<Env>();
  const { access } = deps;

  app.use(async (c, next) => {
    const refused = access.screen(accessRequest(c));
    if (refused === undefined) return next();
    if (refused.code === "wrong_origin") deps.audit("origin.refused", c.req.path, { origin: c.req.header("origin") });
    return refuse(c, refused);
  });
  app.get("/healthz", (c) => c.json({ ok: true }));
  app.get("/readyz", (c) => {
    const state = deps.readiness();
    return c.json(state, state.ready ? 200 : 503);
  });
  if (deps.page) pageRoutes(app, deps);

  app.post("/api/login", bodyLimit({ maxSize: 4_096, onError: tooLarge }), async (c) => {
    const { code } = parse(z.strictObject({ code: z.string().max(200) }), await jsonBody(c));
    const result = access.redeem(code, sourceOf(c));
    if (!("cookie" in result)) return refuse(c, result);
    c.header("set-cookie", result.cookie);
    return c.body(null, 204);
  });
  app.use("/api/*", async (c, next) => {
    const refused = access.authenticate(accessRequest(c), true);
    return refused === undefined ? next() : refuse(c, refused);
  });
  app.get("/api/events", (c) => events(c, deps));
  app.post("/api/:verb", bodyLimit({ maxSize: MAX_API_BYTES, onError: tooLarge }), async (c) => {
    const result = await runVerb(c.req.param("verb"), await jsonBody(c), deps.verbs, c.req.raw.signal);
    return c.json(result.body ?? {}, result.status);
  });

  app.use("/v1/*", async (c, next) => {
    const refused = access.authenticate(accessRequest(c), false);
    return refused === undefined ? next() : c.json(openAiError(refused), refused.status);
  });
  app.get("/v1/models", (c) => c.json(deps.openai.models()));
  app.get("/v1/models/*", (c) => c.json(deps.openai.model(decodeURIComponent(c.req.path.slice("/v1/models/".length)))));
  app.post("/v1/chat/completions", bodyLimit({ maxSize: MAX_COMPLETION_BYTES, onError: tooLarge }), async (c) =>
    deps.openai.complete(await c.req.text(), (name) => c.req.header(name), c.req.raw.signal),
  );

  app.notFound((c) => refuse(c, { status: 404, code: "not_found", message: `there is nothing at ${c.req.path}` }));
  app.onError((thrown, c) => failure(c, thrown, deps.log));
  return app;
}

function pageRoutes(app: Hono<Env>, { assets }: HttpDeps): void {
  app.get("/", (c) => assets("index.html") ?? c.notFound());
  app.get("/assets/:name", (c) => assets(c.req.param("name")) ?? c.notFound());
}

const eventsQuery = z.object({
  channel: pullChannel.default("web"),
  chat: chatName.default("main"),
  after: z.coerce.number().int().min(0).optional(),
});

function events(c: Ctx, { live, clock }: HttpDeps): Response {
  const query = parse(eventsQuery, c.req.query());
  const last = Number(c.req.header("last-event-id") ?? Number.NaN);
  const after = Number.isSafeInteger(last) ? last : (query.after ?? 0);
  return sseResponse(clock, (writer) =>
    live.watch(pullRoute(query.channel, query.chat), after, {
      send: ({ event, data, id }) => writer.event(event, data, id),
      hasRoom: writer.hasRoom,
      onRoom: writer.onRoom,
    }),
  );
}

function sourceOf(c: Ctx): string {
  return c.env.incoming.socket.remoteAddress ?? "unknown";
}

function accessRequest(c: Ctx): AccessRequest {
  return {
    url: new URL(c.req.url),
    host: c.req.header("host"),
    origin: c.req.header("origin"),
    authorization: c.req.header("authorization"),
    cookie: c.req.header("cookie"),
    source: sourceOf(c),
  };
}

async function jsonBody(c: Ctx): Promise<unknown> {
  const type = c.req.header("content-type") ?? "";
  if (!/^application\/json\b/i.test(type)) {
    throw new InvalidInput(`expected a JSON body (content-type application/json), got ${JSON.stringify(type)}`);
  }
  const text = await c.req.text();
  try {
    return JSON.parse(text === "" ? "{}" : text);
  } catch (thrown) {
    throw new InvalidInput(`the body is not JSON: ${messageOf(thrown)}`, { cause: thrown });
  }
}

function parse<T>(schema: z.ZodType<T>, raw: unknown): T {
  const parsed = schema.safeParse(raw);
  if (!parsed.success) throw new InvalidInput(z.prettifyError(parsed.error));
  return parsed.data;
}

function tooLarge(c: Context): Response {
  return c.json({ error: { code: "too_large", message: "the body is larger than this route takes" } }, 413);
}

/** The status of an error from outside: whose fault it is and whether to try again. */
const STATUS: Readonly<Record<string, ContentfulStatusCode>> = {
  invalid_input: 400,
  forbidden: 403,
  not_found: 404,
  queue_full: 429,
  store_unavailable: 503,
  fenced_off: 503,
};
/** After this a full queue or disk is worth another try. */
const RETRY_AFTER_S = "5";

function failure(c: Ctx, thrown: unknown, log: Log): Response {
  const known = thrown instanceof LanewayError ? thrown : undefined;
  const status = STATUS[known?.code ?? ""] ?? 500;
  if (known === undefined || status === 500) log.error("http.failed", { path: c.req.path, ...errorFields(thrown) });
  if (status === 429 || status === 503) c.header("retry-after", RETRY_AFTER_S);
  const refusal = known ?? {
    code: "internal",
    message: "Laneway failed on this request; its log says why",
    hint: undefined,
  };
  if (c.req.path.startsWith("/v1/")) return c.json(openAiError(refusal), status);
  return refuse(c, { ...withHint(refusal), status });
}

function withHint({ code, message, hint }: { code: string; message: string; hint: string | undefined }) {
  return hint === undefined ? { code, message } : { code, message, hint };
}

function refuse(c: Ctx, { status, ...error }: Omit<Refusal, "status"> & { status: ContentfulStatusCode }): Response {
  return c.json({ error }, status);
}
