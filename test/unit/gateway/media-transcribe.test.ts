import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { makeTranscribe } from "../../../src/gateway/transcribe.ts";
import { fakeClock } from "../../support/clock.ts";
import { temporaryFolder } from "../../support/files.ts";

// Voice to text, by a real endpoint and by real processes.

const AUDIO = { bytes: new Uint8Array([1, 2, 3, 4, 5]), mediaType: "audio/ogg" };
const base = { baseUrl: "http://127.0.0.1:9", model: "whisper-1" };
const live = new AbortController().signal;

interface Seen {
  readonly url: string | undefined;
  readonly authorization: string | undefined;
  readonly form: FormData;
}

async function endpoint(answer: (response: ServerResponse) => void) {
  const seen: Seen[] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { url, headers } = request;
    const type = { "content-type": headers["content-type"] ?? "" };
    seen.push({
      url,
      authorization: headers.authorization,
      form: await new Response(Buffer.concat(chunks), { headers: type }).formData(),
    });
    answer(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { seen, baseUrl: `http://127.0.0.1:${port}/v1/`, [Symbol.asyncDispose]: close };
}

const json = (body: unknown) => (response: ServerResponse) =>
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));

test("an endpoint gets the audio as a file of its kind, the model and the key; its text is taken", async () => {
  await using server = await endpoint(json({ text: "hello" }));
  const transcribe = makeTranscribe({ ...base, baseUrl: server.baseUrl, apiKey: "key" }, fakeClock());
  expect(await transcribe({ ...AUDIO, mediaType: "audio/x-wav" }, live)).toBe("hello");
  const [{ url, authorization, form } = { form: new FormData() }] = server.seen;
  expect([url, authorization, form.get("model")]).toEqual(["/v1/audio/transcriptions", "Bearer key", "whisper-1"]);
  const file = form.get("file") as File;
  expect([file.name, file.size]).toEqual(["audio.wav", 5]);
});

test("an endpoint that answers plain text is understood too", async () => {
  await using server = await endpoint((response) =>
    response.writeHead(200, { "content-type": "text/plain" }).end("hello"),
  );
  expect(await makeTranscribe({ ...base, baseUrl: server.baseUrl }, fakeClock())(AUDIO, live)).toBe("hello");
});

test.each([
  {
    what: "refuses",
    answer: (response: ServerResponse) => response.writeHead(401).end("secret detail"),
    says: "answered 401",
  },
  { what: "answers another form", answer: json({ nothing: 1 }), says: "text" },
  {
    what: "breaks off",
    answer: (response: ServerResponse) =>
      response.writeHead(200, { "content-length": "99" }).write("x", () => response.destroy()),
    says: "",
  },
])("an endpoint that $what rejects with what is wrong, and not with what it wrote", async ({ answer, says }) => {
  await using server = await endpoint(answer);
  const thrown = await makeTranscribe({ ...base, baseUrl: server.baseUrl }, fakeClock())(AUDIO, live).catch(
    (error: Error) => error,
  );
  expect(thrown).toBeInstanceOf(Error);
  expect(String(thrown)).toContain(says);
  expect(String(thrown)).not.toContain("secret detail");
});

test("an endpoint that is not there rejects", async () => {
  await expect(makeTranscribe(base, fakeClock())(AUDIO, live)).rejects.toThrow();
});

test("an endpoint that never answers is given up after two minutes", async () => {
  const clock = fakeClock();
  const asked = Promise.withResolvers<void>();
  await using server = await endpoint(() => asked.resolve());
  const text = makeTranscribe({ ...base, baseUrl: server.baseUrl }, clock)(AUDIO, live);
  await asked.promise;
  const rejected = expect(text).rejects.toThrow("longer than 120 s");
  await clock.advance(120_000);
  await rejected;
  expect(clock.waiting()).toBe(0);
});

const node = (script: string) => makeTranscribe({ ...base, command: [process.execPath, "-e", script] }, fakeClock());

test("a command gets the audio on its input, and its output is the text", async () => {
  const script =
    "let n = 0; process.stdin.on('data', (c) => { n += c.length; }).on('end', () => console.log('heard ' + n + ' bytes: ü'))";
  expect(await node(script)(AUDIO, live)).toBe("heard 5 bytes: ü\n");
});

test("a command that does not read its input is no error", async () => {
  const large = { ...AUDIO, bytes: new Uint8Array(5_000_000) };
  expect(await node("process.stdin.destroy(); console.log('done')")(large, live)).toBe("done\n");
});

test("a command that fails, or that is not there, rejects with what is wrong and leaves nothing unhandled", async () => {
  await expect(node("process.exit(3)")(AUDIO, live)).rejects.toThrow("ended with code 3");
  const none = makeTranscribe({ ...base, command: ["/no/such/program"] }, fakeClock());
  await expect(none(AUDIO, live)).rejects.toThrow("could not be run");
});

test("no shell looks at the arguments", async () => {
  const echo = makeTranscribe(
    { ...base, command: [process.execPath, "-p", "process.argv[1]", "$HOME; `id`"] },
    fakeClock(),
  );
  expect(await echo(AUDIO, live)).toBe("$HOME; `id`\n");
});

test("of a command that writes without end the beginning is taken, as long as a text may be", async () => {
  const script = "const x = Buffer.alloc(1_000_000, 'x'); for (let n = 0; n < 30; n++) require('fs').writeSync(1, x)";
  expect(await node(script)(AUDIO, live)).toHaveLength(50_000);
});

test("a stop ends the command and what it has started, and is not waited for (G18)", async () => {
  await using folder = await temporaryFolder();
  const child = `require('fs').writeFileSync(${JSON.stringify(folder.at("pid"))}, String(process.pid)); setInterval(() => {}, 1000)`;
  const script = `
    process.on('SIGTERM', () => {});
    const child = require('child_process').spawn(process.execPath, ['-e', ${JSON.stringify(child)}], { stdio: 'inherit' });
    setInterval(() => { if (require('fs').existsSync(${JSON.stringify(folder.at("pid"))})) console.log('up'); }, 20)`;
  const stop = new AbortController();
  const text = node(script)(AUDIO, stop.signal);
  const pid = await untilWritten(folder.at("pid"));
  stop.abort(new Error("stopped by a person"));
  await expect(text).rejects.toThrow("stopped by a person");
  await untilGone(pid);
});

/** Waits for a condition that no event tells of; the test's own limit is the guard. */
async function untilWritten(file: string): Promise<number> {
  const { readFile } = await import("node:fs/promises");
  for (;;) {
    const pid = Number(await readFile(file, "utf8").catch(() => ""));
    if (pid > 0) return pid;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function untilGone(pid: number): Promise<void> {
  const { readFile } = await import("node:fs/promises");
  for (;;) {
    const state = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
    if (state === undefined || /\) [ZX] /.test(state)) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
