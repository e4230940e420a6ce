import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { childEnv, MAIN } from "../support/host.ts";
import { fakeHost, privateHome, TOKEN, writePrivate } from "../unit/cli/fake-host.ts";

// What only a real process shows: exit codes, streams, what is loaded, what is left behind.

async function laneway(args: readonly string[], home: string, env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [MAIN, ...args], { env: childEnv(home, { LANEWAY_TOKEN: TOKEN, ...env }) });
  child.stdin.end();
  const closed = once(child, "close");
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await closed;
  return { code: code as number | null, out, err };
}

test("exit codes reach the shell: 0, 2 for usage with a suggestion, 69 without a host", async () => {
  await using home = await privateHome();
  const version = await laneway(["--version"], home.path);
  expect({ ...version, out: "" }).toEqual({ code: 0, out: "", err: "" });
  expect(version.out).toMatch(/^\d+\.\d+\.\d+\n$/);
  const unknown = await laneway(["lans"], home.path);
  expect(unknown).toEqual({ code: 2, out: "", err: "laneway: unknown command 'lans'\n(Did you mean lanes?)\n" });
  const alone = await laneway(["lanes"], home.path);
  expect(alone).toEqual({
    code: 69,
    out: "",
    err: `laneway: no host runs on ${home.path}\nStart one with \`laneway start\`.\n`,
  });
});

test("looking something up makes no home", async () => {
  await using home = await privateHome();
  for (const args of [["--version"], ["lanes"], ["config", "get"], ["doctor"]]) await laneway(args, home.at("new"));
  expect(existsSync(home.at("new"))).toBe(false);
});

test("compiled code is kept in a private home, never in one that others can enter", async () => {
  await using home = await privateHome();
  await laneway(["--version"], home.path);
  expect(existsSync(home.at("cache"))).toBe(true);
  await using open = await privateHome();
  await chmod(open.path, 0o755);
  await laneway(["--version"], open.path);
  expect(existsSync(open.at("cache"))).toBe(false);
});

test("a reader that goes away, as head does, is no failure", async () => {
  const lanes = Array.from({ length: 20_000 }, (_, n) => ({ lane: `lane-${n}`, size: 1, running: 0, queued: 0 }));
  await using host = await fakeHost({ lanes: () => ({ lanes }) });
  const child = spawn(process.execPath, [MAIN, "lanes", "--json"], {
    env: childEnv(host.home.path, { LANEWAY_TOKEN: TOKEN }),
  });
  child.stdout.once("data", () => child.stdout.destroy());
  const [err, [code]] = await Promise.all([text(child.stderr), once(child, "close")]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
});

test("no proxy of the environment ever sees the token", async () => {
  await using host = await fakeHost({ lanes: () => ({ lanes: [] }) });
  await using proxy = await fakeHost();
  const env = { NODE_USE_ENV_PROXY: "1", HTTP_PROXY: proxy.address, http_proxy: proxy.address };
  expect(await laneway(["lanes"], host.home.path, env)).toEqual({ code: 0, out: "no lanes\n", err: "" });
  expect(host.calls).toHaveLength(1);
  expect(proxy.calls).toEqual([]);
});

const SPY = `
import { registerHooks } from "node:module";
registerHooks({ load(url, context, next) { process.stderr.write("loaded " + url + "\\n"); return next(url, context); } });
`;

test("`lanes` loads neither the host nor what reads YAML", async () => {
  await using host = await fakeHost({ lanes: () => ({ lanes: [] }) });
  await writePrivate(host.home, "spy.mjs", SPY);
  const { code, err } = await laneway(["lanes"], host.home.path, {
    NODE_OPTIONS: `--import=${host.home.at("spy.mjs")}`,
  });
  expect(code).toBe(0);
  const loaded = err.split("\n").filter((line) => line.startsWith("loaded "));
  expect(loaded.some((line) => line.endsWith("src/cli/lanes.ts"))).toBe(true);
  const heavy = /src\/(gateway|store|queue|turns|agents)\/|node_modules\/(better-sqlite3|yaml|hono|pino)\//;
  expect(loaded.filter((line) => heavy.test(line))).toEqual([]);
});
