import { mkdirSync, symlinkSync } from "node:fs";
import { expect, test } from "vitest";
import { ConfigError } from "../../../src/kernel/errors.ts";
import { loadSettings } from "../../../src/settings/load.ts";
import { settingsSchema } from "../../../src/settings/schema.ts";
import { testHome } from "./home-fixture.ts";

test("without a file the settings are the defaults, with no backend and an agent main that waits for one", async () => {
  await using home = await testHome();
  const loaded = loadSettings({ file: undefined, paths: home.paths, env: home.env });
  expect(loaded).toMatchObject({ state: "defaults", path: home.paths.settings, problems: [] });
  expect(loaded.settings.backends).toEqual({});
  expect(loaded.settings.agents).toEqual({ main: { backends: [], workspace: "workspace" } });
  expect(loaded.settings.lanes).toMatchObject({
    main: 8,
    "cron-nested": 4,
    total: 24,
    mainReserved: 1,
    agingMs: 60_000,
  });
  expect(loaded.settings.queue).toEqual({
    ...{ mode: "steer", debounceMs: 500, perChannel: {} },
    ...{ cap: 20, maxAgeMs: 7_200_000, hostCap: 10_000 },
  });
});

test("an empty file, an empty section and an empty value mean the defaults", async () => {
  await using home = await testHome();
  const defaults = settingsSchema.parse({});
  for (const text of ["", "# nothing\n", "gateway:\nlanes:\n  # main: 4\n", "gateway: { port: }\nagents:\n"]) {
    expect((await home.load(text)).settings).toEqual(defaults);
  }
});

test("what is written replaces its default and leaves the others", async () => {
  await using home = await testHome();
  const { settings } = await home.load("gateway: { port: 0 }\nlanes: { main: 2 }\nlog: { level: debug }");
  expect(settings.gateway).toMatchObject({ host: "127.0.0.1", port: 0 });
  expect(settings.lanes).toMatchObject({ main: 2, subagent: 8 });
  expect(settings.log.level).toBe("debug");
});

test("backends without agents make one agent that uses all of them in their order", async () => {
  await using home = await testHome();
  const { settings } = await home.load("backends: { zeta: { kind: offline }, alpha: { kind: offline } }");
  expect(settings.agents).toEqual({ main: { backends: ["zeta", "alpha"], workspace: "workspace" } });
});

test("a file named by --config is used, and it must exist (exit 78)", async () => {
  await using home = await testHome();
  const file = await home.write("other/mine.yaml", "gateway: { port: 7500 }");
  const loaded = loadSettings({ file, paths: home.paths, env: home.env });
  expect(loaded).toMatchObject({ state: "file", path: file, settings: { gateway: { port: 7500 } } });
  const missing = home.folder.at("other/none.yaml");
  const load = () => loadSettings({ file: missing, paths: home.paths, env: home.env });
  expect(load).toThrow(ConfigError);
  expect(load).toThrow(`expected a settings file at ${missing}, but there is none`);
});

test("a settings file that is a folder, a broken link, too large or not text is refused", async () => {
  await using home = await testHome();
  const load = (name: string) => () => loadSettings({ file: home.folder.at(name), paths: home.paths, env: home.env });
  mkdirSync(home.folder.at("folder.yaml"));
  symlinkSync("nowhere", home.folder.at("link.yaml"));
  await home.write("large.yaml", `# ${"x".repeat(1024 * 1024)}`);
  await home.folder.write("bytes.yaml", new Uint8Array([0x61, 0xff, 0xfe]));
  expect(load("folder.yaml")).toThrow("expected a file, but it is a folder or a device");
  expect(load("link.yaml")).toThrow("the file does not exist");
  expect(load("large.yaml")).toThrow("expected at most 1048576 bytes");
  expect(load("bytes.yaml")).toThrow("expected UTF-8 text");
});

test("a variable of the environment is filled in, also between braces and in part of a text", async () => {
  await using home = await testHome({ KEY: "k-123", HOST: "models.example", EMPTY: "" });
  const { settings } = await home.load(
    `backends: { a: { kind: openai, model: "m\${EMPTY}", baseUrl: "https://\${HOST}/v1", apiKey: \${KEY}, headers: { x-a: "A \${KEY}!" } } }`,
  );
  expect(settings.backends["a"]).toEqual({
    kind: "openai",
    model: "m",
    baseUrl: "https://models.example/v1",
    apiKey: "k-123",
    headers: { "x-a": "A k-123!" },
    vision: false,
  });
});

test("a backend of kind anthropic needs no more than a model: address, limits and sight have defaults", async () => {
  await using home = await testHome();
  const { settings } = await home.load("backends: { a: { kind: anthropic, model: claude-x, apiKey: k } }");
  expect(settings.backends["a"]).toEqual({
    kind: "anthropic",
    model: "claude-x",
    baseUrl: "https://api.anthropic.com/v1",
    apiKey: "k",
    contextTokens: 200_000,
    maxOutputTokens: 16_384,
    vision: true,
  });
});

test("a variable that is not set is a problem that names it, once", async () => {
  await using home = await testHome();
  const message = await home.refusal(
    `log: {}\nbackends:\n  a: { kind: openai, model: m, baseUrl: \${BASE}, apiKey: \${KEY} }`,
  );
  expect(message.split("\n").slice(1)).toEqual([
    `backends.a.baseUrl (line 3): the environment variable BASE is not set; write $\${ for a plain \${`,
    `backends.a.apiKey (line 3): the environment variable KEY is not set; write $\${ for a plain \${`,
  ]);
});

test("names that objects inherit are not variables, and a broken reference is a problem", async () => {
  await using home = await testHome();
  expect(
    await home.refusal(`agents: { main: { systemPrompt: "\${constructor} \${__proto__} \${toString}" } }`),
  ).toContain("the environment variable toString is not set");
  expect(await home.refusal(`agents: { main: { systemPrompt: "\${A:-b}" } }`)).toContain("expected a name of letters");
});

test("a doubled dollar keeps the text as it is", async () => {
  await using home = await testHome({ NAME: "Ada" });
  const { settings } = await home.load(`backends: { a: { kind: offline } }
agents: { main: { backends: [ a ], systemPrompt: "\${NAME}: $\${NAME}, $\${x y}, $5, {1}" } }`);
  expect(settings.agents["main"]?.systemPrompt).toBe(`Ada: \${NAME}, \${x y}, $5, {1}`);
});

test("a number or a switch may come from the environment, since it holds texts only", async () => {
  await using home = await testHome({ PORT: "7500", WEB: "false" });
  const { settings } = await home.load(`gateway: { port: \${PORT} }\nchannels: { web: { enabled: \${WEB} } }`);
  expect(settings.gateway.port).toBe(7500);
  expect(settings.channels.web.enabled).toBe(false);
  await using wrong = await testHome({ WRONG: "seven" });
  expect(await wrong.refusal(`gateway: { port: \${WRONG} }`)).toContain(
    "another value from the environment (not shown)",
  );
});

test("a system prompt is read from its file, relative to the settings file, in any mode", async () => {
  await using home = await testHome();
  await home.write("prompts/main.md", "You are Ada.\n", 0o644);
  const text =
    "backends: { a: { kind: offline } }\nagents: { main: { backends: [ a ], systemPromptFile: prompts/main.md } }";
  expect((await home.load(text)).settings.agents["main"]?.systemPrompt).toBe("You are Ada.");
  await using other = await testHome();
  expect(await other.refusal(text)).toMatch(
    /agents\.main\.systemPromptFile \(line 2\): .*main\.md: the file does not exist/,
  );
});
