// Owns: the one port and its routes. What a route does is elsewhere.
import { createServer, type Server } from "node:http";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { z } from "zod";
import type { Clock } from "../kernel/clock.ts";
import type { Log } from "../kernel/log.ts";
import type { Access, AccessRequest, Refusal } from "./access.ts";
import type { Assets } from "./assets.ts";
import { jsonBody, parse, textBody } from "./bodies.ts";
import type { Live } from "./live.ts";
import type { Metrics } from "./metrics/metrics.ts";
import type { OpenAiDoor } from "./openai.ts";
import { limitPending } from "./pending.ts";
import { failure, refuse, tooLarge } from "./refusal.ts";
import type { AuditRefusal } from "./refusal-audit.ts";
import { sseResponse } from "./sse.ts";
import { chatName, pullChannel, pullRoute, runVerb, type VerbDeps } from "./verbs.ts";

export interface HttpDeps {
  readonly access: Access;
  readonly assets: Assets;
  readonly live: Live;
  readonly verbs: VerbDeps;
  readonly openai: OpenAiDoor;
  /** A call of Telegram's for an account; undefined when it has no webhook. */
  readonly telegramWebhook: (
    account: string,
    secret: string | undefined,
    body: Uint8Array,
  ) => Promise<{ readonly status: number }> | undefined;
  readonly readiness: () => { ready: boolean };
  readonly metrics: Pick<Metrics, "scrape">;
  /** Requests wait for it: the port is taken before the host has read its rows. */
  readonly started: Promise<void>;
  readonly audit: AuditRefusal;
  readonly clock: Clock;
  readonly log: Log;
  /** Without the web channel there is no page; the doors of CLI and API stay. */
  readonly page: boolean;
}

type Env = { Bindings: HttpBindings; Variables: { asked: AccessRequest } };
type Ctx = Context<Env>;

const MAX_API_BYTES = 1_048_576;
/** Histories of whole conversations come through the OpenAI door. */
const MAX_COMPLETION_BYTES = 16 * 1_048_576;
/**
 * A client that has not sent its request by then is no client (NET-R6). Node looks at open requests every 30 s: looking more often
 * was half of the work of an idle host. What has not even sent a head is cut sooner, in pending.ts.
 */
const REQUEST_TIMEOUT_MS = 30_000;
const HEADERS_TIMEOUT_MS = 10_000;
/** Far more than a person's pages and clients need, far fewer than a process may have files. */
const MAX_CONNECTIONS = 1_000;

export function makeServer(deps: HttpDeps): Server {
  const app = makeApp(deps);
  const limits = { headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS };
  const server = createServer(limits, getRequestListener(app.fetch, { overrideGlobalObjects: false }));
  server.maxConnections = MAX_CONNECTIONS;
  limitPending(server, deps.clock);
  return server;
}

function makeApp(deps: HttpDeps): Hono<Env> {
  const app = new Hono<Env>();
  const { access } = deps;
  const turnAway = (c: Ctx, refused: Refusal) => {
    const { host, origin } = c.req.header();
    if (refused.audit !== undefined) deps.audit(refused.audit, c.req.path, { source: sourceOf(c), host, origin });
    return refuse(c, refused);
  };

  app.use(async (c, next) => {
    const asked = accessRequest(c);
    c.set("asked", asked);
    const refused = access.screen(asked);
    if (refused !== undefined) return turnAway(c, refused);
    await deps.started;
    return next();
  });
  app.get("/healthz", (c) => c.json({ ok: true }));
  app.get("/readyz", (c) => {
    const state = deps.readiness();
    return c.json(state, state.ready ? 200 : 503);
  });
  app.get("/metrics", async (c) => {
    const refused = access.authenticate(c.get("asked"), false);
    if (refused !== undefined) return turnAway(c, refused);
    const { contentType, text } = await deps.metrics.scrape();
    return c.body(text, 200, { "content-type": contentType });
  });
  if (deps.page) pageRoutes(app, deps);

  app.post("/api/login", bodyLimit({ maxSize: 4_096, onError: tooLarge }), async (c) => {
    const { code } = parse(z.strictObject({ code: z.string().max(200) }), await jsonBody(c));
    const result = access.redeem(code, sourceOf(c));
    if (!("cookie" in result)) return turnAway(c, result);
    c.header("set-cookie", result.cookie);
    return c.body(null, 204);
  });
  app.use("/api/*", async (c, next) => {
    const refused = access.authenticate(c.get("asked"), true);
    return refused === undefined ? next() : turnAway(c, refused);
  });
  app.get("/api/events", (c) => events(c, deps));
  app.post("/api/:verb", bodyLimit({ maxSize: MAX_API_BYTES, onError: tooLarge }), async (c) => {
    const result = await runVerb(c.req.param("verb"), await jsonBody(c), deps.verbs, c.req.raw.signal);
    return c.json(result.body ?? {}, result.status);
  });

  // Its caller shows a secret of its own, never the token (NET-R5); the channel checks it before it reads anything.
  app.post(
    "/channels/telegram/webhook/:account?",
    bodyLimit({ maxSize: MAX_API_BYTES, onError: tooLarge }),
    async (c) => {
      const body = new Uint8Array(await c.req.arrayBuffer());
      const secret = c.req.header("x-telegram-bot-api-secret-token");
      const taken = await deps.telegramWebhook(c.req.param("account") ?? "default", secret, body);
      if (taken === undefined) return c.notFound();
      return new Response(null, { status: taken.status });
    },
  );

  app.use("/v1/*", async (c, next) => {
    const refused = access.authenticate(c.get("asked"), false);
    return refused === undefined ? next() : turnAway(c, refused);
  });
  app.get("/v1/models", (c) => c.json(deps.openai.models()));
  app.get("/v1/models/*", (c) => c.json(deps.openai.model(decoded(c.req.path.slice("/v1/models/".length)))));
  app.post("/v1/chat/completions", bodyLimit({ maxSize: MAX_COMPLETION_BYTES, onError: tooLarge }), async (c) =>
    deps.openai.complete(await textBody(c), (name) => c.req.header(name), c.req.raw.signal),
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
  // Hono runs a GET for it and lets the body go unread: a watcher that nobody would ever stop.
  if (c.req.method === "HEAD") return c.body(null);
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

/** A name with a broken escape is the name of nothing. */
function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
