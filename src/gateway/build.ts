// Owns: the order in which the host is built and taken down. Everything that is started here is stopped here, in reverse.
import { once } from "node:events";
import type { Server } from "node:http";
import { makeAssistant } from "../agents/assistant.ts";
import type { Delivery } from "../agents/delivery.ts";
import { agentOf } from "../agents/session.ts";
import type { Clock } from "../kernel/clock.ts";
import type { CrashPoint } from "../kernel/crashpoint.ts";
import { ConfigError, type DataUnusable, type FencedOff, messageOf } from "../kernel/errors.ts";
import { type Events, makeEvents } from "../kernel/events.ts";
import type { Ids } from "../kernel/ids.ts";
import { type Background, errorFields, type Log, makeBackground } from "../kernel/log.ts";
import { makeQueue, type Queue } from "../queue/queue.ts";
import type { HomePaths } from "../settings/home.ts";
import { type HostFile, readHostFile, removeHostFile, writeHostFile } from "../settings/host-file.ts";
import type { Settings } from "../settings/schema.ts";
import { deriveKey } from "../settings/token.ts";
import { openDatabase } from "../store/open.ts";
import { makeStore, type Store } from "../store/store.ts";
import { makeAccept } from "./accept.ts";
import { type Access, makeAccess } from "./access.ts";
import { type Agents, makeAgents } from "./agents.ts";
import { makeAssets } from "./assets.ts";
import { type Channels, entryOf, makeChannels, webhookHosts } from "./channels.ts";
import { checkHost } from "./checks.ts";
import { makeServer } from "./http.ts";
import { makeLive } from "./live.ts";
import { makeReadImage, makeReadMedia } from "./media.ts";
import { makeMetrics } from "./metrics/metrics.ts";
import { makeOpenAiDoor } from "./openai.ts";
import { makeRefusalAudit } from "./refusal-audit.ts";
import { hostStatus, readiness, type StaticFacts, watchBackends } from "./status.ts";
import { makeTalk } from "./talk.ts";
import { makeTranscribe } from "./transcribe.ts";
import { startUpkeep } from "./upkeep.ts";
import type { VerbDeps } from "./verbs.ts";

export interface HostOptions {
  readonly settings: Settings;
  /** How the settings were found, for status. */
  readonly settingsFacts: StaticFacts["settings"];
  readonly paths: HomePaths;
  readonly token: string;
  readonly version: string;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly crashPoint: CrashPoint;
  /** Another host has taken over, or the data is damaged: the process must end with the error's exit code. */
  readonly onFatal: (error: FencedOff | DataUnusable) => void;
}

export interface Host {
  /** As in `http://127.0.0.1:7411`. */
  readonly address: string;
  /** A fresh link to the page with a one-time code. */
  link(): string;
  /** What an earlier host left behind. */
  readonly recovered: { readonly requeued: number; readonly dead: number };
  /** Drains, closes everything and resolves. `ms` bounds the drain. */
  stop(ms: number): Promise<void>;
}

const PAGE_FOLDER = new URL("../dashboard/", import.meta.url);

/** Rejects with AlreadyRunning, DataUnusable or ConfigError; nothing is left open then. */
export async function startHost(options: HostOptions): Promise<Host> {
  const { paths, clock, log } = options;
  const startedAt = clock.now();
  const startedMono = clock.mono();
  const opened = openDatabase({ db: paths.db, lockDb: paths.lockDb, holder: () => holderOf(paths) });
  const events = makeEvents((thrown) => log.error("event.listener-failed", errorFields(thrown)));
  const store = makeStore({ opened, clock, log, events, crashPoint: options.crashPoint, onFatal: options.onFatal });
  try {
    writeHostFile(paths.hostFile, hostFileOf(options, startedAt));
    const host = await assemble(options, { store, events, startedAt, startedMono });
    log.info("host.ready", {
      address: host.address,
      generation: store.generation,
      tookMs: Math.round(clock.mono() - startedMono),
    });
    return host;
  } catch (thrown) {
    // Nothing was begun, so what the host before said of its end still holds for the next one.
    if (store.plannedStop) await planStop(store, log);
    store.close();
    removeHostFile(paths.hostFile);
    throw thrown;
  }
}

function hostFileOf({ paths, settingsFacts }: HostOptions, startedAt: number): HostFile {
  const own = settingsFacts.path === paths.settings ? {} : { settings: settingsFacts.path };
  return { pid: process.pid, startedAt: new Date(startedAt).toISOString(), ...own };
}

function holderOf(paths: HomePaths): string | undefined {
  const other = readHostFile(paths.hostFile);
  return other === undefined
    ? undefined
    : [`pid ${other.pid}`, other.address].filter((part) => part !== undefined).join(", ");
}

interface Parts {
  readonly store: Store;
  readonly events: Events;
  readonly startedAt: number;
  readonly startedMono: number;
}

async function assemble(options: HostOptions, { store, events, startedAt, startedMono }: Parts): Promise<Host> {
  const { settings, paths, clock, ids, log, version } = options;
  const background = makeBackground(log);
  const agents = makeAgents(settings, paths);
  const channels = await makeChannels({ ...options, background });
  const talk = makeTalk({ channels, settings, store, clock, ids, log, events, background });
  const { delivery } = talk;
  const queue = makeWorkingQueue({ ...options, store, events, background, agents, channels, delivery });
  const backendState = watchBackends(events);
  const facts: StaticFacts = {
    version,
    startedAt,
    startedMono,
    settings: options.settingsFacts,
    ...named(settings, agents),
  };
  const describe = () => ({
    version,
    upMs: clock.mono() - startedMono,
    backends: facts.backends.map(({ name, model }) => `${name} (${model})`),
  });
  const chatCommands = { queue, clock, describe, delivery, backends: facts.backends };
  const acceptDeps = { store, queue, clock, events, chatCommands, busy: () => settings.queue };
  const accept = makeAccept(acceptDeps);
  const live = makeLive({ store, events, queue, hello: () => ({ version, agent: "main", ...hello(facts, store) }) });
  let address = "";
  let draining = false;
  const access = makeHostAccess(options, () => Number(new URL(address).port));
  const link = () => `${address}/#${access.newCode()}`;
  const status = () => hostStatus({ store, queue, clock, facts, backendState, channels: talk.status });
  const metrics = makeMetrics({ events, status });
  const verbs: VerbDeps = {
    ...{ store, queue, clock, ids, events, accept, link, delivery, status },
    doctor: () => checkHost({ store, paths, clock }),
  };
  const openai = makeOpenAiDoor({
    store,
    queue,
    clock,
    ids,
    events,
    background,
    accept,
    agents: [...agents.keys()],
    startedAt,
  });
  const audit = makeRefusalAudit({ store, clock, background });
  const started = Promise.withResolvers<void>();
  const server = makeServer({
    ...{ access, live, verbs, openai, audit, metrics, clock, log, started: started.promise },
    assets: makeAssets(PAGE_FOLDER),
    readiness: () => readiness({ store, queue, channels: talk.status }, draining),
    telegramWebhook: talk.webhook,
    page: settings.channels.web.enabled,
  });
  // The port first: a start that fails at it must not have begun any work, or it would count against that work (G8).
  address = await listen(server, settings.gateway);
  const begin = async () => {
    const found = await queue.start();
    metrics.gaveUp(found.dead.length);
    await talk.start(acceptDeps);
    return found;
  };
  const recovered = await begin().catch(async (thrown: unknown) => {
    await closeServer(server);
    throw thrown;
  });
  started.resolve();
  writeHostFile(paths.hostFile, { ...hostFileOf(options, startedAt), address });
  const stopUpkeep = startUpkeep({ store, clock, background });
  return {
    address,
    link,
    recovered: { requeued: recovered.requeued, dead: recovered.dead.length },
    async stop(ms) {
      draining = true;
      await planStop(store, log);
      await talk.stopReceiving();
      await queue.drain(ms);
      await talk.stop();
      live.stop();
      metrics.stop();
      stopUpkeep();
      await closeServer(server);
      store.close();
      removeHostFile(paths.hostFile);
    },
  };
}

interface QueueParts extends HostOptions {
  readonly store: Store;
  readonly events: Events;
  readonly background: Background;
  readonly agents: Agents;
  readonly channels: Channels;
  readonly delivery: Delivery;
}

function makeWorkingQueue(parts: QueueParts): Queue {
  const { store, events, background, agents, channels, delivery, settings, clock, ids, log, paths } = parts;
  // The assistant tells the queue of progress, the queue gives the assistant its work: one of them comes second.
  const later: { queue?: Queue } = {};
  const runner = makeAssistant({
    ...{ store, clock, log, events, delivery },
    readImage: makeReadImage(paths.media),
    readMedia: makeReadMedia({
      folder: paths.media,
      channel: (command) => entryOf(channels, command.route)?.channel,
      transcribe:
        settings.media.transcribe === undefined ? undefined : makeTranscribe(settings.media.transcribe, clock),
      log,
    }),
    agent: (command) => {
      const agent = agents.get(agentOf(command.session));
      if (agent === undefined) throw new ConfigError(`there is no agent ${agentOf(command.session)} any more`);
      return agent;
    },
    onProgress: (id, kind) => later.queue?.progressed(id, kind),
    steering: {
      absorbable: (turn, modes) => later.queue?.absorbable(turn, modes) ?? [],
      absorb: async (...args) => (await later.queue?.absorb(...args)) ?? [],
    },
    jitter: ids.fraction,
  });
  const { cap, hostCap, maxAgeMs } = settings.queue;
  // A turn ends within its own grace; the queue waits a little longer before it gives the slot away without it.
  const abortGraceMs = settings.turns.graceMs + 1_000;
  const queueSettings = { lanes: settings.lanes, cap, hostCap, maxAgeMs, abortGraceMs };
  later.queue = makeQueue({ store, clock, log, events, background, runner, settings: () => queueSettings });
  return later.queue;
}

function named(settings: Settings, agents: Agents): Pick<StaticFacts, "channels" | "backends"> {
  const used = new Set([...agents.values()].flatMap((agent) => agent.backends));
  const backends = [...used].map(({ name, kind, model }) => ({ name, kind, model }));
  return { channels: [...(settings.channels.web.enabled ? ["web"] : []), "terminal", "api"], backends };
}

function hello(facts: StaticFacts, store: Store) {
  const latest = Math.max(store.read.commands.lastId(), store.read.outbox.lastId());
  return { backends: facts.backends.map(({ name }) => name), generation: store.generation, latest };
}

function makeHostAccess({ token, settings, clock, ids }: HostOptions, port: () => number): Access {
  const { host, allowedOrigins } = settings.gateway;
  const allowedHosts = [...settings.gateway.allowedHosts, ...webhookHosts(settings)];
  const cookieKey = deriveKey(token, "cookie");
  return makeAccess({ token, cookieKey, clock, ids, ownHost: inUrl(host), allowedHosts, allowedOrigins, port });
}

/** An IPv6 address stands in brackets; one that means every address is reached by the loopback one. */
function inUrl(host: string): string {
  const plain = host.replace(/^\[|\]$/g, "");
  if (plain === "0.0.0.0" || plain === "::") return "127.0.0.1";
  return plain.includes(":") ? `[${plain}]` : plain;
}

async function listen(server: Server, { host, port }: Settings["gateway"]): Promise<string> {
  server.listen(port, host.replace(/^\[|\]$/g, ""));
  try {
    await once(server, "listening");
  } catch (thrown) {
    throw new ConfigError(`cannot listen on ${host}:${port}: ${messageOf(thrown)}`, {
      hint: "Stop the program that has the port, or set gateway.port in the settings file to a free one (0 takes any).",
      cause: thrown,
    });
  }
  const bound = server.address();
  const boundPort = typeof bound === "object" && bound !== null ? bound.port : port;
  return `http://${inUrl(host)}:${boundPort}`;
}

/** Committed before anything is stopped: what this host leaves running takes no strike (G8). */
async function planStop(store: Store, log: Log): Promise<void> {
  try {
    await store.write("plan-stop", (tx) => tx.meta.planStop(store.generation));
  } catch (thrown) {
    log.warn("host.stop-not-planned", errorFields(thrown));
  }
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}
