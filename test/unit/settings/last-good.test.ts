import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { expect, test } from "vitest";
import { loadSettings } from "../../../src/settings/load.ts";
import { testHome } from "./home-fixture.ts";

const GOOD = "# mine\ngateway: { port: 7500 }\n";

test("settings that load are copied word for word into a private file, and nothing else is left behind (Q8.1)", async () => {
  await using home = await testHome();
  await home.load(GOOD, 0o644);
  expect(readFileSync(home.paths.lastGood, "utf8")).toBe(GOOD);
  expect(statSync(home.paths.lastGood).mode & 0o777).toBe(0o600);
  expect(readdirSync(home.paths.home).sort()).toEqual(["laneway.last-good.yaml", "laneway.yaml"]);
});

test("the copy is written only when it differs", async () => {
  await using home = await testHome();
  await home.load(GOOD);
  const before = statSync(home.paths.lastGood);
  await home.load(GOOD);
  expect(statSync(home.paths.lastGood).ino).toBe(before.ino);
  await home.load(GOOD.replace("7500", "7501"));
  expect(readFileSync(home.paths.lastGood, "utf8")).toContain("7501");
});

test("broken settings start the last good ones and say what is wrong; the broken file is not touched (Q8.1)", async () => {
  await using home = await testHome();
  await home.load(GOOD);
  for (const broken of ["gateway: { port: 99999 }", "gateway: {", "::: not yaml [", "lanes: { mian: 3 }"]) {
    const loaded = await home.load(broken);
    expect(loaded.state).toBe("last-good");
    expect(loaded.path).toBe(home.paths.settings);
    expect(loaded.settings.gateway.port).toBe(7500);
    expect(loaded.problems.length).toBeGreaterThan(0);
    expect(readFileSync(home.paths.settings, "utf8")).toBe(broken);
    expect(readFileSync(home.paths.lastGood, "utf8")).toBe(GOOD);
  }
});

test("broken settings without a usable copy are refused (exit 78, Q8.1)", async () => {
  await using home = await testHome();
  expect(await home.refusal("gateway: { port: 99999 }")).toContain("gateway.port (line 1): expected at most 65535");
  await home.write("laneway.last-good.yaml", "gateway: { port: -1 }");
  expect(await home.refusal("gateway: { port: 99999 }")).toContain("gateway.port (line 1): expected at most 65535");
});

test("files that the copy names are looked for where the settings file is", async () => {
  await using home = await testHome();
  await home.write("conf/prompt.md", "Hello.");
  const text = "backends: { a: { kind: offline } }\nagents: { main: { backends: [ a ], systemPromptFile: prompt.md } }";
  const file = await home.write("conf/mine.yaml", text);
  loadSettings({ file, paths: home.paths, env: home.env });
  await home.write("conf/mine.yaml", "broken: true");
  const loaded = loadSettings({ file, paths: home.paths, env: home.env });
  expect(loaded.state).toBe("last-good");
  expect(loaded.settings.agents["main"]?.systemPrompt).toBe("Hello.");
});

test("a copy that cannot be written is reported and does not stop the start", async () => {
  await using home = await testHome();
  mkdirSync(home.paths.lastGood);
  const loaded = await home.load(GOOD);
  expect(loaded.state).toBe("file");
  expect(loaded.problems[0]?.message).toContain("could not be written");
});

test("an open copy is closed again", async () => {
  await using home = await testHome();
  await home.load(GOOD);
  chmodSync(home.paths.lastGood, 0o644);
  await home.load(GOOD);
  expect(statSync(home.paths.lastGood).mode & 0o777).toBe(0o600);
});

test("without a settings file the copy is not used: whoever deletes the file wants the defaults", async () => {
  await using home = await testHome();
  await home.load(GOOD);
  rmSync(home.paths.settings);
  expect(loadSettings({ file: undefined, paths: home.paths, env: home.env }).state).toBe("defaults");
});
