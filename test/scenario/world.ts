// Owns: what every scenario needs: a host process on a home of its own, a third-party model endpoint, and talking to the host
// as a client does. Never looks into the host other than through its doors.
import { setTimeout as sleep } from "node:timers/promises";
import { LLMock } from "@copilotkit/aimock";
import { type TemporaryFolder, temporaryFolder } from "../support/files.ts";
import { type HostProcess, settingsFor, startHostProcess, writeSettings } from "../support/host.ts";

/** Bodies of the host's own answers: their shape is what the tests assert. */
// biome-ignore lint/suspicious/noExplicitAny: see above
export type Json = any;

export interface World extends AsyncDisposable {
  readonly folder: TemporaryFolder;
  readonly home: string;
  /** The host that runs now. */
  host(): HostProcess;
  /** Starts the next host on the same home; the one before must have ended. */
  start(env?: Record<string, string>): Promise<HostProcess>;
}

/** A home with the given settings (YAML) and a host on it. Disposing kills the host and removes the home. */
export async function startWorld(yaml: string, env: Record<string, string> = {}): Promise<World> {
  const folder = await temporaryFolder();
  await writeSettings(folder.path, yaml);
  const hosts: HostProcess[] = [];
  const start: World["start"] = async (next = env) => {
    const host = await startHostProcess(folder.path, next);
    hosts.push(host);
    return host;
  };
  const dispose = async () => {
    await Promise.all(hosts.map((host) => host.kill()));
    await folder[Symbol.asyncDispose]();
  };
  try {
    await start();
  } catch (thrown) {
    await dispose();
    throw thrown;
  }
  return { folder, home: folder.path, host: () => last(hosts), start, [Symbol.asyncDispose]: dispose };
}

export function last<T>(list: readonly T[]): T {
  const found = list.at(-1);
  if (found === undefined) throw new Error("the list is empty");
  return found;
}

/** An independent implementation of OpenAI's endpoint, without any answer yet. */
export async function startMock(): Promise<LLMock> {
  const mock = new LLMock({ port: 0, chunkSize: 8 });
  await mock.start();
  return mock;
}

/** Settings with two backends at one endpoint, told apart by their model: `primary` is asked first, then `fallback`. */
export function pairSettings(baseUrl: string, more = ""): string {
  const backend = (model: string) =>
    `{ kind: openai, model: ${model}, baseUrl: "${baseUrl}", apiKey: "${BACKEND_KEY}" }`;
  return `gateway: { port: 0 }
backends:
  first: ${backend("primary")}
  second: ${backend("fallback")}
${more}
`;
}

/** A secret that no log line and no answer may hold. */
export const BACKEND_KEY = "sk-test-backend-key-4711";

export function oneBackend(mock: LLMock, more = ""): string {
  return settingsFor(`${mock.url}/v1`, more);
}

let keys = 0;
export function freshKey(): string {
  keys += 1;
  return `key-${process.pid}-${keys}`;
}

export interface SendOptions {
  readonly chat?: string;
  readonly key?: string;
  readonly channel?: "web" | "terminal";
}

/** Sends a message; rejects unless the host has accepted it. Gives the number of its command. */
export async function send(host: HostProcess, text: string, options: SendOptions = {}): Promise<number> {
  const answer = await host.api("send", { text, key: freshKey(), ...options });
  if (answer.status !== 202) throw new Error(`send was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  return answer.body.command as number;
}

export interface Ended {
  readonly command: number;
  readonly state: string;
  readonly outcome: Json;
  readonly parts: readonly { seq: number; class: string; text: string }[];
  /** The text of its first part, "" without one. */
  readonly text: string;
}

/** Waits for the end of a command, however long it takes; the test's own limit is the hang guard. */
export async function ended(host: HostProcess, command: number): Promise<Ended> {
  for (;;) {
    const { status, body } = await host.api("wait", { command, timeoutMs: 20_000 });
    if (status !== 200) throw new Error(`wait was answered ${status}: ${JSON.stringify(body)}`);
    if (body.final) return { ...body, text: body.parts[0]?.text ?? "" };
  }
}

export async function ask(host: HostProcess, text: string, options: SendOptions = {}): Promise<Ended> {
  return ended(host, await send(host, text, options));
}

/** Asks again and again until `look` gives something other than undefined or false. Names what it waits for when it gives up. */
export async function eventually<T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> {
  const giveUp = performance.now() + 45_000;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== null && seen !== false) return seen;
    if (performance.now() > giveUp) throw new Error(`waited in vain: ${what}`);
    await sleep(20);
  }
}

export interface WireMessage {
  readonly role: string;
  readonly content: string;
  readonly tool_calls?: readonly { id: string; function: { name: string; arguments: string } }[];
  readonly tool_call_id?: string;
}

/** The messages of each request that the endpoint has seen, oldest first. */
export function transcripts(requests: readonly { body: Json }[]): WireMessage[][] {
  return requests.flatMap(({ body }) => (Array.isArray(body?.messages) ? [body.messages as WireMessage[]] : []));
}

/** The transcripts whose last user message is this text. */
export function requestsFor(requests: readonly { body: Json }[], text: string): WireMessage[][] {
  return transcripts(requests).filter((messages) => messages.findLast((one) => one.role === "user")?.content === text);
}
