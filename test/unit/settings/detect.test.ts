import { once } from "node:events";
import { chmodSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/kernel/clock.ts";
import { Aborted } from "../../../src/kernel/errors.ts";
import { type DetectionSources, detectBackends, pathFinder, withDetected } from "../../../src/settings/detect.ts";
import type { Env } from "../../../src/settings/env.ts";
import { settingsSchema } from "../../../src/settings/schema.ts";
import { fakeClock } from "../../support/clock.ts";
import { temporaryFolder } from "../../support/files.ts";

interface FakeServer extends AsyncDisposable {
  readonly url: string;
  readonly requests: { url: string | undefined; authorization: string | undefined }[];
}

async function serve(answer: RequestListener): Promise<FakeServer> {
  const requests: FakeServer["requests"] = [];
  const server: Server = createServer((request, response) => {
    requests.push({ url: request.url, authorization: request.headers.authorization });
    answer(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const models = (...ids: string[]): RequestListener => {
  return (_, response) =>
    response.end(JSON.stringify({ object: "list", data: ids.map((id) => ({ id, object: "model" })) }));
};

/** Real HTTP, but the well-known ports lead to the test's own servers; the others refuse the connection. */
function detect(env: Env, ports: Record<number, FakeServer> = {}, more: Partial<DetectionSources> = {}) {
  const asked: string[] = [];
  const run = detectBackends({
    env,
    fetch: (input, init) => {
      const url = new URL(String(input));
      asked.push(url.href);
      const server = ports[Number(url.port)];
      if (server === undefined)
        return Object.values(ports).some(({ url }) => String(input).startsWith(url)) ? fetch(input, init) : refused();
      return fetch(server.url + url.pathname, init);
    },
    findOnPath: () => undefined,
    signal: new AbortController().signal,
    clock: systemClock(),
    ...more,
  });
  return Object.assign(run, { asked });
}

const refused = () => Promise.reject(new TypeError("fetch failed"));

test("with nothing there the offline backend is taken and named", async () => {
  const { taken, seen } = await detect({});
  expect(taken).toMatchObject({ name: "offline", settings: { kind: "offline" } });
  expect(taken.why).toBe("there is no API key in the environment and no local model server");
  expect(seen).toEqual([]);
});

test.each([
  ["OPENAI_API_KEY", "openai", "openai", "https://api.openai.com/v1"],
  ["ANTHROPIC_API_KEY", "anthropic", "anthropic", "https://api.anthropic.com/v1"],
  ["OPENROUTER_API_KEY", "openrouter", "openai", "https://openrouter.ai/api/v1"],
  ["GEMINI_API_KEY", "gemini", "openai", "https://generativelanguage.googleapis.com/v1beta/openai"],
  ["GOOGLE_API_KEY", "gemini", "openai", "https://generativelanguage.googleapis.com/v1beta/openai"],
  ["MISTRAL_API_KEY", "mistral", "openai", "https://api.mistral.ai/v1"],
  ["GROQ_API_KEY", "groq", "openai", "https://api.groq.com/openai/v1"],
  ["DEEPSEEK_API_KEY", "deepseek", "openai", "https://api.deepseek.com/v1"],
])("%s is taken with the provider's own address, without asking anyone", async (variable, name, kind, baseUrl) => {
  const run = detect({ [variable]: " sk-s3cret " });
  const { taken, seen } = await run;
  expect(taken).toMatchObject({ name, settings: { kind, baseUrl, apiKey: "sk-s3cret" } });
  expect(settingsSchema.parse({ backends: { [name]: taken.settings } }).backends[name]).toEqual(taken.settings);
  expect(run.asked).toEqual([]);
  expect(JSON.stringify([taken.why, seen])).not.toContain("s3cret");
});

test("of several keys the first in order is taken, the others are reported; a key goes before a local server", async () => {
  await using ollama = await serve(models("qwen3"));
  const { taken, seen } = await detect(
    { GROQ_API_KEY: "g", ANTHROPIC_API_KEY: "a", OPENAI_API_KEY: "" },
    { 11434: ollama },
  );
  expect(taken).toMatchObject({ name: "anthropic", why: "ANTHROPIC_API_KEY is set in the environment" });
  expect(seen).toEqual(["GROQ_API_KEY is set"]);
  expect(ollama.requests).toEqual([]);
});

test("LANEWAY_MODEL chooses the model of whatever is taken", async () => {
  await using ollama = await serve(models("qwen3", "llama3"));
  expect((await detect({ LANEWAY_MODEL: "gpt-x", OPENAI_API_KEY: "k" })).taken.settings).toMatchObject({
    model: "gpt-x",
  });
  expect((await detect({ LANEWAY_MODEL: "llama3" }, { 11434: ollama })).taken.settings).toMatchObject({
    model: "llama3",
  });
});

test("OPENAI_BASE_URL is used, and its server is asked for a model", async () => {
  await using own = await serve(models("text-embedding-x", "own-model"));
  const env = { OPENAI_API_KEY: "sk-1", OPENAI_BASE_URL: `${own.url}/api/v1` };
  const { taken } = await detect(env, { 1: own });
  expect(taken.settings).toEqual({
    kind: "openai",
    model: "own-model",
    baseUrl: `${own.url}/api/v1`,
    apiKey: "sk-1",
    vision: false,
  });
  expect(own.requests).toEqual([{ url: "/api/v1/models", authorization: "Bearer sk-1" }]);
});

test.each([
  ["https://proxy.example", "https://proxy.example/v1"],
  ["https://proxy.example/claude/", "https://proxy.example/claude/v1"],
  ["https://proxy.example/v1", "https://proxy.example/v1"],
])(
  "the key goes to ANTHROPIC_BASE_URL %s and nowhere else, and nobody is asked for a model",
  async (given, baseUrl) => {
    const run = detect({ ANTHROPIC_API_KEY: "sk-1", ANTHROPIC_BASE_URL: given });
    const { settings } = (await run).taken;
    expect(settings).toMatchObject({ kind: "anthropic", model: "claude-sonnet-4-5", baseUrl, apiKey: "sk-1" });
    expect(run.asked).toEqual([]);
  },
);

test("a model that is known to see is taken with its eyes, of another only the kind's default is known", async () => {
  const visionWith = async (env: Env) => {
    const { settings } = (await detect(env)).taken;
    return "vision" in settings && settings.vision;
  };
  expect(await visionWith({ OPENAI_API_KEY: "k" })).toBe(true);
  expect(await visionWith({ OPENAI_API_KEY: "k", LANEWAY_MODEL: "gpt-x" })).toBe(false);
  expect(await visionWith({ GROQ_API_KEY: "k" })).toBe(false);
  expect(await visionWith({ ANTHROPIC_API_KEY: "k", LANEWAY_MODEL: "claude-x" })).toBe(true);
});

test("a key whose OPENAI_BASE_URL is no address goes nowhere else", async () => {
  const { taken, seen } = await detect({ OPENAI_API_KEY: "sk-1", OPENAI_BASE_URL: "localhost:99" });
  expect(taken.name).toBe("offline");
  expect(seen).toEqual(["OPENAI_API_KEY is set, but OPENAI_BASE_URL is not an http or https address"]);
});

test("a local server is taken with the first model that can chat", async () => {
  await using ollama = await serve(models("nomic-embed-text", "qwen3", "llama3"));
  const { taken } = await detect({}, { 11434: ollama });
  expect(taken).toEqual({
    name: "ollama",
    settings: {
      kind: "openai",
      model: "qwen3",
      baseUrl: "http://127.0.0.1:11434/v1",
      vision: false,
      maxConcurrent: 1,
    },
    why: "Ollama answers at http://127.0.0.1:11434/v1",
  });
  expect(ollama.requests).toEqual([{ url: "/v1/models", authorization: undefined }]);
});

test("the three local servers are asked at the same time, and their order decides", async () => {
  let waiting = 0;
  const { promise: allAsked, resolve } = Promise.withResolvers<void>();
  const patient =
    (id: string): RequestListener =>
    async (request, response) => {
      if (++waiting === 3) resolve();
      await allAsked;
      models(id)(request, response);
    };
  await using ollama = await serve(patient("a"));
  await using studio = await serve(patient("b"));
  await using llama = await serve(patient("c"));
  // No time passes on this clock: one server after the other would wait for ever.
  const { taken, seen } = await detect({}, { 8080: llama, 1234: studio, 11434: ollama }, { clock: fakeClock() });
  expect(taken.settings).toMatchObject({ model: "a" });
  expect(seen).toEqual([
    "LM Studio answers at http://127.0.0.1:1234/v1",
    "llama.cpp answers at http://127.0.0.1:8080/v1",
  ]);
});

test.each<[string, RequestListener]>([
  ["a page", (_, response) => response.end("<html>hello</html>")],
  ["another JSON", (_, response) => response.end('{"data":"x"}')],
  ["an empty list", models()],
  ["only embedding models", models("nomic-embed-text", "bge-reranker")],
  ["an error", (_, response) => response.writeHead(500).end('{"data":[{"id":"m"}]}')],
  ["too much", (_, response) => response.end(`{"data":[{"id":"m"}],"x":"${"x".repeat(2_000_000)}"}`)],
  ["nothing, closing", (request) => request.socket.destroy()],
])("a server that answers with %s is ignored", async (_, answer) => {
  await using foreign = await serve(answer);
  expect((await detect({}, { 8080: foreign })).taken.name).toBe("offline");
  expect(foreign.requests).toHaveLength(1);
});

test("a server that points elsewhere is ignored, and nobody is asked there", async () => {
  await using elsewhere = await serve(models("m"));
  await using foreign = await serve((_, response) =>
    response.writeHead(302, { location: `${elsewhere.url}/v1/models` }).end(),
  );
  expect((await detect({}, { 8080: foreign })).taken.name).toBe("offline");
  expect(foreign.requests).toHaveLength(1);
  expect(elsewhere.requests).toEqual([]);
});

test("a server that never ends its answer is given up after 400 ms", async () => {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  await using slow = await serve((_, response) => {
    response.write('{"data":');
    resolve();
  });
  const clock = fakeClock();
  const run = detect({}, { 1234: slow }, { clock });
  await asked;
  await clock.advance(399);
  expect(clock.waiting()).toBe(1);
  await clock.advance(1);
  expect((await run).taken.name).toBe("offline");
  expect(clock.waiting()).toBe(0);
});

test("a start that is stopped stops looking", async () => {
  const stop = new AbortController();
  await using silent = await serve(() => stop.abort());
  await expect(detect({}, { 1234: silent }, { signal: stop.signal, clock: fakeClock() })).rejects.toThrow(Aborted);
});

test("agent commands on the PATH are reported and never chosen", async () => {
  await using folder = await temporaryFolder();
  for (const [name, mode] of [
    ["claude", 0o755],
    ["gemini", 0o755],
    ["codex", 0o644],
  ] as const) {
    chmodSync(await folder.write(name, "#!/bin/sh\n"), mode);
  }
  await folder.write("opencode/file", "");
  const { taken, seen } = await detect({}, {}, { findOnPath: pathFinder({ PATH: `/nowhere:${folder.path}` }) });
  expect(taken.name).toBe("offline");
  expect(seen).toEqual(["the agent command claude is on the PATH", "the agent command gemini is on the PATH"]);
});

test("what was found becomes the only backend: the offline one never stands behind it and hides an outage", async () => {
  const { taken } = await detect({ OPENAI_API_KEY: "sk-1" });
  const settings = withDetected(settingsSchema.parse({ gateway: { port: 0 } }), taken);
  expect(settings.backends).toEqual({ openai: taken.settings });
  expect(settings.agents).toEqual({ main: { backends: ["openai"], workspace: "workspace" } });
  expect(settings.gateway.port).toBe(0);
});
