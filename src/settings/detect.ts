// Owns: what the first start takes when no backend is set: a key in the environment, a local server, else the offline one.
// Never stores or shows a key, never starts an agent command by itself.
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { z } from "zod";
import type { Clock } from "../kernel/clock.ts";
import { Aborted } from "../kernel/errors.ts";
import { type Env, envText } from "./env.ts";
import { AGENT_COMMANDS, KEY_PROVIDERS, type KeyProvider, LOCAL_SERVERS, type LocalServer } from "./providers.ts";
import { type BackendSettings, backendSchema, type Settings } from "./schema.ts";

/** A local server answers in milliseconds; nobody should wait for one that is not there. */
const LOCAL_LIMIT_MS = 400;
/** The server of OPENAI_BASE_URL may be far away. */
const REMOTE_LIMIT_MS = 3_000;
/** Of a model list; a foreign server may send anything. */
const ANSWER_LIMIT = 1024 * 1024;

export interface DetectionSources {
  readonly env: Env;
  readonly fetch: typeof globalThis.fetch;
  /** Where the command is, `undefined` when it is not on the PATH. */
  readonly findOnPath: (command: string) => string | undefined;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

export interface Detection {
  readonly taken: { readonly name: string; readonly settings: BackendSettings; readonly why: string };
  /** Sentences about what else is there and was not taken. */
  readonly seen: readonly string[];
}

/**
 * Looks for a backend in the contract's order: keys, local servers, offline. Agent commands are only reported.
 * The offline backend never stands behind a real one: its answers would hide an outage.
 * @throws Aborted when the signal aborts; nothing else
 */
export async function detectBackends(sources: DetectionSources): Promise<Detection> {
  const commands = AGENT_COMMANDS.filter((command) => sources.findOnPath(command) !== undefined).map(
    (command) => `the agent command ${command} is on the PATH`,
  );
  const keys = keysIn(sources.env);
  const [best, ...others] = keys.usable;
  const unused = [...keys.refused, ...others.map(({ variable }) => `${variable} is set`), ...commands];
  if (best !== undefined) return { taken: await withKey(best, sources), seen: unused };
  const servers = await answeringServers(sources);
  const chosen = chooseServer(servers, envText(sources.env, "LANEWAY_MODEL"));
  if (chosen === undefined) return { taken: offline(), seen: unused };
  const idle = servers.filter(({ server }) => server.name !== chosen.name);
  return {
    taken: chosen,
    seen: [...idle.map(({ server }) => `${server.title} answers at ${server.baseUrl}`), ...unused],
  };
}

/** The settings with the backend that was found; agents without backends get it. */
export function withDetected(settings: Settings, { name, settings: backend }: Detection["taken"]): Settings {
  const agents = Object.entries(settings.agents).map(([agent, value]) => {
    return [agent, value.backends.length === 0 ? { ...value, backends: [name] } : value] as const;
  });
  return { ...settings, backends: { [name]: backend, ...settings.backends }, agents: Object.fromEntries(agents) };
}

function offline(): Detection["taken"] {
  return {
    name: "offline",
    settings: { kind: "offline" },
    why: "there is no API key in the environment and no local model server",
  };
}

interface FoundKey {
  readonly provider: KeyProvider;
  readonly variable: string;
  readonly key: string;
  readonly baseUrl: string;
  /** The address was given by the user, so the provider's usual model may be unknown there. */
  readonly ownAddress: boolean;
}

function keysIn(env: Env): { usable: FoundKey[]; refused: string[] } {
  const usable: FoundKey[] = [];
  const refused: string[] = [];
  for (const provider of KEY_PROVIDERS) {
    const variable = provider.keys.find((name) => envText(env, name) !== undefined);
    const key = variable === undefined ? undefined : envText(env, variable);
    if (variable === undefined || key === undefined) continue;
    const given = provider.baseUrlVariable === undefined ? undefined : envText(env, provider.baseUrlVariable);
    // A key must not go to another address than the one it was meant for.
    if (given !== undefined && !isWebAddress(given)) {
      refused.push(`${variable} is set, but ${provider.baseUrlVariable} is not an http or https address`);
    } else {
      const baseUrl = given === undefined ? provider.baseUrl : withVersion(given, provider);
      usable.push({ provider, variable, key, baseUrl, ownAddress: given !== undefined });
    }
  }
  return { usable, refused };
}

function isWebAddress(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.username + url.password + url.search + url.hash === "";
}

/** Anthropic's own client reads its variable as the address without the version; `/v1` is where every server has it. */
function withVersion(given: string, { kind }: KeyProvider): string {
  const plain = given.replace(/\/+$/, "");
  return kind === "openai" || /\/v\d+$/.test(plain) ? given : `${plain}/v1`;
}

async function withKey(found: FoundKey, sources: DetectionSources): Promise<Detection["taken"]> {
  const { provider, variable, key, baseUrl } = found;
  const named = envText(sources.env, "LANEWAY_MODEL");
  // A server that speaks the Messages API passes Claude's names on; only the others have models of their own.
  const asks = named === undefined && found.ownAddress && provider.kind === "openai";
  const listed = asks ? await listModels(sources, { baseUrl, key, limitMs: REMOTE_LIMIT_MS }) : [];
  const model = named ?? listed.find((id) => id === provider.model) ?? listed[0] ?? provider.model;
  return {
    name: provider.name,
    settings: backendSchema.parse({
      kind: provider.kind,
      model,
      baseUrl,
      apiKey: key,
      // Of another model than ours the kind's default is all that is known.
      ...(model === provider.model && { vision: provider.vision }),
    }),
    why: `${variable} is set in the environment`,
  };
}

interface AnsweringServer {
  readonly server: LocalServer;
  readonly models: readonly string[];
}

/** All are asked at once; those that answer with a model list, in the order of preference. */
async function answeringServers(sources: DetectionSources): Promise<AnsweringServer[]> {
  const answers = await Promise.all(
    LOCAL_SERVERS.map(async (server) => {
      const models = await listModels(sources, { baseUrl: server.baseUrl, key: undefined, limitMs: LOCAL_LIMIT_MS });
      return { server, models };
    }),
  );
  return answers.filter(({ models }) => models.length > 0);
}

function chooseServer(servers: readonly AnsweringServer[], named: string | undefined): Detection["taken"] | undefined {
  const found = servers.find(({ models }) => named !== undefined && models.includes(named)) ?? servers[0];
  if (found === undefined) return undefined;
  const { server, models } = found;
  const model = named ?? models[0];
  if (model === undefined) return undefined;
  return {
    name: server.name,
    // One machine works off one call faster than two side by side.
    settings: backendSchema.parse({ kind: "openai", model, baseUrl: server.baseUrl, maxConcurrent: 1 }),
    why: `${server.title} answers at ${server.baseUrl}`,
  };
}

const modelList = z.object({ data: z.array(z.object({ id: z.string().min(1) })) });

/** Local servers list embedding models among the others; they cannot chat. */
const CANNOT_CHAT = /embed|rerank/i;

/** The chat models that a server lists; none when it does not answer in time or answers something else. */
async function listModels(
  { fetch, signal, clock }: DetectionSources,
  ask: { baseUrl: string; key: string | undefined; limitMs: number },
): Promise<string[]> {
  const late = new AbortController();
  const stop = clock.after(ask.limitMs, () => late.abort());
  try {
    const response = await fetch(`${ask.baseUrl.replace(/\/+$/, "")}/models`, {
      headers: ask.key === undefined ? {} : { authorization: `Bearer ${ask.key}` },
      // A redirect would carry the question, and with it a key, to an address nobody named.
      redirect: "error",
      signal: AbortSignal.any([signal, late.signal]),
    });
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    const answer = modelList.parse(JSON.parse(await shortText(response)));
    return answer.data.map(({ id }) => id).filter((id) => !CANNOT_CHAT.test(id));
  } catch {
    if (signal.aborted) throw new Aborted(signal.reason);
    return [];
  } finally {
    stop();
    late.abort();
  }
}

async function shortText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > ANSWER_LIMIT) throw new Error(`expected at most ${ANSWER_LIMIT} bytes`);
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}

/** Looks a command up as a shell would. */
export function pathFinder(env: Env): (command: string) => string | undefined {
  const folders = (envText(env, "PATH") ?? "").split(delimiter).filter((folder) => folder !== "");
  const endings = process.platform === "win32" ? [".exe", ".cmd", ".bat"] : [""];
  const places = (command: string) =>
    folders.flatMap((folder) => endings.map((ending) => join(folder, command + ending)));
  return (command) => places(command).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
