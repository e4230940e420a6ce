import { expect, test } from "vitest";
import { parsePath } from "../../../src/cli/config.ts";
import { run } from "../../../src/cli/program.ts";
import type { TemporaryFolder } from "../../support/files.ts";
import { privateHome, testShell, writePrivate } from "./fake-host.ts";

const GOOD = `
gateway: { port: 7500, token: a-very-secret-token-0123456789 }
backends:
  local: { kind: openai, model: qwen3, baseUrl: "http://127.0.0.1:11434/v1", apiKey: sk-hidden-key }
lanes: { main: 3 }
`;

async function home(yaml?: string): Promise<TemporaryFolder> {
  const made = await privateHome();
  if (yaml !== undefined) await writePrivate(made, "laneway.yaml", yaml);
  return made;
}

async function config(folder: TemporaryFolder, ...args: string[]) {
  const shell = testShell(folder.path);
  const code = await run(["config", ...args], shell);
  return { code, out: shell.text.out(), err: shell.text.err() };
}

test("check: good settings exit 0, and so does no settings file at all", async () => {
  await using good = await home(GOOD);
  expect(await config(good, "check")).toEqual({ code: 0, out: `ok  ${good.at("laneway.yaml")}\n`, err: "" });
  await using none = await home();
  expect((await config(none, "check")).code).toBe(0);
  expect(await config(none, "check", "--json")).toEqual({ code: 0, out: "", err: "" });
});

test("check: every problem at once with path, line and the nearest key, and exit 78 (Q8)", async () => {
  await using bad = await home("lanes: { mian: 3 }\nqueue: { cap: none }\n");
  const { code, out, err } = await config(bad, "check");
  expect({ code, out }).toEqual({ code: 78, out: "" });
  expect(err.split("\n")[0]).toBe(`laneway: 2 problems in ${bad.at("laneway.yaml")}`);
  expect(err).toMatch(/lanes\.mian \(line 1\): .*did you mean "main"/);
  expect(err).toMatch(/queue\.cap \(line 2\): expected a number/);
});

test("check --json: one problem a line", async () => {
  await using bad = await home("lanes: { mian: 3 }\nqueue: { cap: none }\n");
  const { code, out } = await config(bad, "check", "--json");
  expect(code).toBe(78);
  const problems = out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(problems).toMatchObject([
    { state: "wrong", path: "lanes.mian", line: 1 },
    { state: "wrong", path: "queue.cap", line: 2 },
  ]);
});

test("check --config: another file, which must then be there", async () => {
  await using folder = await home(GOOD);
  await writePrivate(folder, "other.yaml", "nonsense: 1\n");
  expect((await config(folder, "check", "--config", folder.at("other.yaml"))).code).toBe(78);
  expect((await config(folder, "check", "-c", folder.at("missing.yaml"))).err).toContain("the file does not exist");
});

test("check changes nothing in the home", async () => {
  const { readdir } = await import("node:fs/promises");
  await using good = await home(GOOD);
  await config(good, "check");
  expect(await readdir(good.path)).toEqual(["laneway.yaml"]);
});

test("schema: a JSON Schema of the settings", async () => {
  await using folder = await home();
  const { code, out } = await config(folder, "schema");
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ type: "object", properties: { lanes: {}, gateway: {} } });
});

test("get: everything with its defaults, one place a line that get takes again, secrets masked (SEC-3)", async () => {
  await using folder = await home(GOOD);
  const { code, out } = await config(folder, "get");
  expect(code).toBe(0);
  expect(out).toContain("lanes.main: 3\n");
  expect(out).toContain('agents.main.backends[0]: "local"\n');
  expect(out).toContain("lanes.cron-nested: 4\n");
  expect(out).not.toMatch(/a-very-secret|sk-hidden/);
  for (const line of out.trimEnd().split("\n")) {
    const [path = "", ...value] = line.split(": ");
    const again = await config(folder, "get", path, "--json");
    expect(again).toEqual({ code: 0, out: `${JSON.stringify(JSON.parse(value.join(": ")))}\n`, err: "" });
  }
});

test("get PATH: one value is written bare, a part with its places", async () => {
  await using folder = await home(GOOD);
  expect((await config(folder, "get", "gateway.port")).out).toBe("7500\n");
  expect((await config(folder, "get", "backends.local.model")).out).toBe("qwen3\n");
  expect((await config(folder, "get", "backends.local.apiKey")).out).toBe("***\n");
  expect((await config(folder, "get", "queue")).out).toContain("\nqueue.cap: 20\n");
  expect(JSON.parse((await config(folder, "get", "queue", "--json")).out)).toMatchObject({ cap: 20 });
});

test.each([
  ["lanes.mian", "There is in lanes: main, subagent"],
  ["nothing", "There is: gateway, owner"],
  ["lanes.constructor", "There is in lanes"],
  ["gateway.port.deep", "There is in gateway: host, port"],
])("get %s: exits 1 and says what is there", async (path, hint) => {
  await using folder = await home(GOOD);
  const { code, out, err } = await config(folder, "get", path);
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toContain(hint);
});

test("a place is read in the form in which problems are shown", () => {
  expect(parsePath("")).toEqual([]);
  expect(parsePath("agents.main.backends[1]")).toEqual(["agents", "main", "backends", 1]);
  expect(parsePath('backends."a.b".headers."x y"')).toEqual(["backends", "a.b", "headers", "x y"]);
  for (const wrong of ["a..b", "a.", "a[", "a[x]", '"a', "a b"])
    expect(() => parsePath(wrong)).toThrow("expected a place");
});
