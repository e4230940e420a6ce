import { expect, test } from "vitest";
import { nearest } from "../../../src/settings/known-keys.ts";
import { checkSettings, formatProblems } from "../../../src/settings/load.ts";
import { testHome } from "./home-fixture.ts";

const WRONG = `gateway: { host: 127.0.0.1, prot: 7411, allowedOrigins: [ "*", "https://ok.example/" ] }
agents:
  main: { backends: [ locla, 4 ], workspace: .., tols: [] }
  "A b": {}
backends:
  local: { kind: opnai, model: qwen3 }
  cloud:
    kind: openai
    model: 5
    baseUrl: ftp://x
    apiKey: 123456
    apiKeyFile: nowhere
lanes: { total: 2, mainReserved: 2, main: 0, cron: 1.5, agingMs: -1 }
turns:
  attempts: 9
  idleMs: 1
  idleMs: 2
log: { level: wran }
channels: { web: { enabled: yes please } }
owner: [ "telegram:bob", "telegram:12" ]
budget: []
logg: 1
constructor: 1
`;

test("all problems are listed at once, each with its line, what was expected, what came and the nearest known name (Q8.1)", async () => {
  await using home = await testHome();
  const message = await home.refusal(WRONG);
  expect(message.split("\n")).toEqual([
    `the settings in ${home.paths.settings} are refused:`,
    'gateway.prot (line 1): unknown key; did you mean "port"?',
    'gateway.allowedOrigins[0] (line 1): expected an exact origin such as "https://assistant.example", without a path, but got "*"',
    'gateway.allowedOrigins[1] (line 1): expected an exact origin such as "https://assistant.example", without a path, but got "https://ok.example/"',
    'agents.main.backends[0] (line 3): expected the name of a backend, but got "locla"; did you mean "local"?',
    "agents.main.backends[1] (line 3): expected text, but got 4; put it in quotes",
    expect.stringMatching(/^agents\.main\.workspace \(line 3\): expected a folder beside or below the home /),
    'agents.main.tols (line 3): unknown key; did you mean "tools"?',
    'agents."A b" (line 4): expected a name of small letters, digits, - and _ that begins with a letter',
    'backends.local.kind (line 6): expected one of openai, anthropic, offline, but got "opnai"; did you mean "openai"?',
    "backends.cloud.model (line 9): expected text, but got 5; put it in quotes",
    'backends.cloud.baseUrl (line 10): expected an http or https address such as "http://127.0.0.1:11434/v1", but got "ftp://x"',
    "backends.cloud.apiKey (line 11): expected text, but got 6 characters (not shown); put it in quotes",
    "backends.cloud.apiKeyFile (line 12): expected apiKey or apiKeyFile, but got both",
    "lanes.total (line 13): expected total (2) to be larger than mainReserved (2), or the other lanes never run",
    "lanes.main (line 13): expected at least 1, but got 0",
    "lanes.cron (line 13): expected a whole number, but got 1.5",
    "lanes.agingMs (line 13): expected at least 0, but got -1",
    "turns.attempts (line 15): expected at most 5, but got 9",
    "turns.idleMs (line 17): the key is written twice, first on line 16",
    'log.level (line 18): expected one of debug, info, warn, error, but got "wran"; did you mean "warn"?',
    'channels.web.enabled (line 19): expected true or false, but got "yes please"',
    'owner[0] (line 20): expected "channel:numeric id" such as "telegram:123456789" (names change hands, so they grant nothing), but got "telegram:bob"',
    "budget (line 21): expected a mapping, but got an empty list",
    'logg (line 22): unknown key; did you mean "log"?',
    "constructor (line 23): unknown key; known here: gateway, owner, agents, backends, lanes, queue, turns, budget, media, channels, log",
  ]);
});

test("a problem carries its column", async () => {
  await using home = await testHome();
  await home.write("laneway.yaml", "gateway: { host: 127.0.0.1, port: 70000, prot: 1 }\n");
  expect(checkSettings({ file: undefined, paths: home.paths, env: {} })).toEqual([
    { path: "gateway.port", line: 1, column: 35, message: "expected at most 65535, but got 70000" },
    { path: "gateway.prot", line: 1, column: 42, message: 'unknown key; did you mean "port"?' },
  ]);
});

test("a missing key is reported at the mapping that lacks it", async () => {
  await using home = await testHome();
  const message = await home.refusal("log: {}\nbackends:\n  local:\n    kind: openai\n  bare:\n");
  expect(message).toContain("backends.local.model (line 4): expected text, but nothing came");
  expect(message).toContain("backends.local.baseUrl (line 4): ");
  expect(message).toContain("backends.bare (line 5): ");
});

test("agents without main are refused, and so are backends that nobody has set", async () => {
  await using home = await testHome();
  const message = await home.refusal("agents:\n  mian: { backends: [ local ] }\n");
  expect(message).toContain(
    'agents (line 1): expected one of the agents to be called main; did you mean it by "mian"?',
  );
  expect(message).toContain("agents.mian.backends[0] (line 2): ");
  expect(message).toContain('but got "local", and `backends` has none');
});

test("owners by name or handle are refused: only ids identify (ID-R1)", async () => {
  await using home = await testHome();
  for (const owner of ["telegram:@ada", "telegram:ada", "@ada", "12345678", "telegram:12a", ""]) {
    expect(await home.refusal(`owner: [ "${owner}" ]`)).toContain("names change hands, so they grant nothing");
  }
  const loaded = await home.load('owner: [ telegram:123456789, "discord:42", "telegram:-100123" ]');
  expect(loaded.settings.owner).toEqual(["telegram:123456789", "discord:42", "telegram:-100123"]);
});

test("names that every JavaScript object answers to are no names of backends or agents", async () => {
  await using home = await testHome();
  expect(await home.refusal("backends: { constructor: { kind: offline } }")).toContain("reserved by JavaScript");
  const message = await home.refusal(
    "backends: { a: { kind: offline } }\nagents: { main: { backends: [ toString ] } }",
  );
  expect(message).toContain("agents.main.backends[0] (line 2): ");
});

test("a workspace that holds the home is refused: tools would reach the token and the database (FILE-R2)", async () => {
  await using home = await testHome();
  const withWorkspace = (folder: string) =>
    `backends: { a: { kind: offline } }\nagents: { main: { backends: [ a ], workspace: "${folder}" } }`;
  for (const folder of [".", "..", "/", "workspace/..", home.paths.home]) {
    expect(await home.refusal(withWorkspace(folder))).toContain("agents.main.workspace (line 2): ");
  }
  for (const folder of ["workspace", "../elsewhere", "/srv/work", "..workspace"]) {
    expect((await home.load(withWorkspace(folder))).state).toBe("file");
  }
});

test("a base address with a password or a query is refused", async () => {
  await using home = await testHome();
  for (const url of ["http://u:p@h/v1", "http://h/v1?key=1", "http://h/v1#x", "h/v1", "file:///v1"]) {
    const message = await home.refusal(`backends: { a: { kind: openai, model: m, baseUrl: "${url}" } }`);
    expect(message).toContain("backends.a.baseUrl (line 1): expected an ");
  }
});

test("the nearest name forgives case, hyphens and swapped letters, and does not guess wildly", () => {
  const known = ["port", "host", "baseUrl", "attemptTimeoutMs", "log"];
  expect(nearest("prot", known)).toBe("port");
  expect(nearest("base_url", known)).toBe("baseUrl");
  expect(nearest("ATTEMPT-TIMEOUT-MS", known)).toBe("attemptTimeoutMs");
  expect(nearest("atemptTimout", known)).toBe("attemptTimeoutMs");
  expect(nearest("foo", known)).toBeUndefined();
  expect(nearest("telegram", known)).toBeUndefined();
});

test("a thousand problems are cut to a readable list", () => {
  const problems = Array.from({ length: 1000 }, (_, index) => ({ path: `k${index}`, line: index, message: "wrong" }));
  const lines = formatProblems(problems).split("\n");
  expect(lines).toHaveLength(101);
  expect(lines[0]).toBe("k0 (line 0): wrong");
  expect(lines.at(-1)).toBe("and 900 more");
});

test("Telegram: a webhook without its address, two tokens and a name instead of an id are told with their places", async () => {
  await using home = await testHome();
  const text = [
    "channels:",
    "  telegram:",
    '    token: "42:secret"',
    "    mode: webhook",
    '    allow: [ "@alice" ]',
    "    accounts:",
    '      second: { token: "43:secret", tokenFile: other }',
  ].join("\n");
  const told = await home.refusal(text);
  expect(told).toContain("webhookUrl");
  expect(told).toContain("token or tokenFile");
  expect(told).toContain("numeric id");
});
