// Owns: a host made of answers: a real HTTP server with a home that points to it, and the shell of a command in a test.
import { once } from "node:events";
import { chmod, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough, Readable, Writable } from "node:stream";
import { json } from "node:stream/consumers";
import { makeOutput, type Shell, type TerminalInput } from "../../../src/cli/shell.ts";
import { type Clock, systemClock } from "../../../src/kernel/clock.ts";
import { systemIds } from "../../../src/kernel/ids.ts";
import { homePaths } from "../../../src/settings/home.ts";
import { type TemporaryFolder, temporaryFolder } from "../../support/files.ts";

export const TOKEN = "a-token-for-the-tests-0123456789";

/** What a verb answers: a body, or everything by hand. */
type Answer = (input: Record<string, unknown>, call: Call) => unknown;

export interface Call {
  readonly verb: string;
  readonly input: Record<string, unknown>;
  readonly authorization: string | undefined;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

export class Refusal {
  readonly status: number;
  readonly error: Record<string, unknown>;
  constructor(status: number, error: Record<string, unknown>) {
    this.status = status;
    this.error = error;
  }
}

/** The answer was written by hand, or the connection broken. */
export const HANDLED = Symbol("handled");

export interface FakeHost extends AsyncDisposable {
  readonly home: TemporaryFolder;
  readonly address: string;
  readonly calls: Call[];
  /** Verbs by name; `events` takes the event stream. */
  readonly verbs: Record<string, Answer>;
  inputsOf(verb: string): Record<string, unknown>[];
}

/** A host that is running as far as the command line can tell. */
export async function fakeHost(verbs: Record<string, Answer> = {}): Promise<FakeHost> {
  const home = await privateHome();
  const calls: Call[] = [];
  const server = createServer((request, response) => void answer(request, response));

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://host");
    const verb = url.pathname.replace("/api/", "");
    const input = (request.method === "POST" ? await json(request) : Object.fromEntries(url.searchParams)) as Record<
      string,
      unknown
    >;
    const call: Call = { verb, input, authorization: request.headers.authorization, request, response };
    calls.push(call);
    const known = verbs[verb];
    if (known === undefined) return reply(response, 404, { error: { code: "not_found", message: `no verb ${verb}` } });
    const body = await known(input, call);
    if (body === HANDLED) return;
    if (body instanceof Refusal) return reply(response, body.status, { error: body.error });
    reply(response, 200, body);
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await writePrivate(
    home,
    "host.json",
    JSON.stringify({ pid: process.pid, address, startedAt: new Date(0).toISOString() }),
  );
  await writePrivate(home, "token", `${TOKEN}\n`);
  return {
    home,
    address,
    calls,
    verbs,
    inputsOf: (verb) => calls.filter((call) => call.verb === verb).map(({ input }) => input),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await home[Symbol.asyncDispose]();
    },
  };
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** A folder as the host makes its home. */
export async function privateHome(): Promise<TemporaryFolder> {
  const home = await temporaryFolder();
  await chmod(home.path, 0o700);
  return home;
}

export async function writePrivate(home: TemporaryFolder, name: string, content: string): Promise<void> {
  await writeFile(home.at(name), content, { mode: 0o600 });
}

export interface TestShell extends Shell {
  /** What was written so far. */
  readonly text: { out(): string; err(): string };
}

interface ShellOptions {
  readonly input?: string | TerminalInput;
  readonly env?: Record<string, string>;
  /** Columns of a terminal; absent: a pipe. */
  readonly columns?: number;
  readonly clock?: Clock;
}

export function testShell(home: string, options: ShellOptions = {}): TestShell {
  const { input = "", columns, clock = systemClock() } = options;
  const env = { HOME: home, LANEWAY_HOME: home, ...options.env };
  const out = collector(columns);
  const err = collector(columns);
  return {
    env,
    paths: homePaths(env),
    clock,
    ids: systemIds(),
    input: typeof input === "string" ? Readable.from([Buffer.from(input)].filter((chunk) => chunk.length > 0)) : input,
    out: makeOutput(out.stream, env),
    err: makeOutput(err.stream, env),
    text: { out: out.text, err: err.text },
  };
}

function collector(columns: number | undefined) {
  const chunks: string[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk.toString());
      done();
    },
  });
  const size = columns === undefined ? {} : { isTTY: true, columns };
  return { stream: Object.assign(stream, size), text: () => chunks.join("") };
}

/** The keyboard of a terminal. */
export function keyboard(): PassThrough & { isTTY: true; setRawMode(): void } {
  return Object.assign(new PassThrough(), { isTTY: true as const, setRawMode() {} });
}

/** Opens an event stream by hand. */
export function sendEvents(response: ServerResponse): (event: string, data: unknown, id?: number) => void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  return (event, data, id) => {
    response.write(`${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  };
}
