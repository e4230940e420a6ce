import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

// bin/ in a tree of its own, with a main.ts that reports what it got. An old Node is played by the real one with
// another version number, which it does not pass on to the second process.

const MAIN = `
const [what, value] = process.argv.slice(2);
console.log("main", process.versions.node.split(".")[0] !== "20", what);
if (what === "path") console.log(process.env["PATH"]?.split(":")[0]);
if (what === "exit") process.exitCode = Number(value);
if (what === "die") process.kill(process.pid, "SIGKILL");
if (what === "serve") {
  process.on(value, () => process.exit(42));
  process.stdin.resume();
  console.log("ready");
}
`;
const RUNTIME = `node_modules/node-${process.platform}-${process.arch}/bin/node`;
const OLD = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.0.0" } });`;

// Each test starts two processes, which takes seconds on a loaded machine.
vi.setConfig({ testTimeout: 60_000 });

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), "laneway-launcher-"));
  for (const folder of ["bin", "src"]) mkdirSync(path.join(root, folder));
  for (const file of ["bin/laneway", "bin/run.js"]) copyFileSync(path.resolve(file), path.join(root, file));
  writeFileSync(path.join(root, "package.json"), `{ "type": "module" }`);
  writeFileSync(path.join(root, "src/main.ts"), MAIN);
  writeFileSync(path.join(root, "old.mjs"), OLD);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function withRuntime(file = RUNTIME): void {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
  symlinkSync(process.execPath, path.join(root, file));
}

function launch(args: readonly string[], nodeArgs: readonly string[] = []): ChildProcess {
  return spawn(process.execPath, [...nodeArgs, path.join(root, "bin/laneway"), ...args], { stdio: "pipe" });
}

function launchWithOldNode(...args: string[]): ChildProcess {
  return launch(args, [`--import=${path.join(root, "old.mjs")}`]);
}

async function outcome(child: ChildProcess) {
  const closed = once(child, "close");
  const [out, err] = await Promise.all([text(child.stdout!), text(child.stderr!)]);
  const [code, signal] = await closed;
  return { out, err, code, signal };
}

test("a Node that is new enough runs main.ts in the same process", async () => {
  const child = launch(["hello"]);
  expect(await outcome(child)).toMatchObject({ out: "main true hello\n", code: 0 });
});

test("without src the compiled main runs, as in the published package", async () => {
  rmSync(path.join(root, "src"), { recursive: true });
  mkdirSync(path.join(root, "dist"));
  writeFileSync(path.join(root, "dist/main.js"), `console.log("compiled", process.argv[2]);`);
  expect(await outcome(launch(["hello"]))).toMatchObject({ out: "compiled hello\n", code: 0 });
});

test("a Node that is too old hands over to the runtime in node_modules and keeps its exit code", async () => {
  withRuntime();
  const child = launchWithOldNode("exit", "65");
  expect(await outcome(child)).toMatchObject({ out: "main true exit\n", code: 65 });
});

test("when the runtime dies by a signal, the launcher dies by the same one", async () => {
  withRuntime();
  const child = launchWithOldNode("die");
  expect(await outcome(child)).toMatchObject({ code: null, signal: "SIGKILL" });
});

test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("%s to the launcher reaches the runtime", async (signal) => {
  withRuntime();
  const child = launchWithOldNode("serve", signal);
  child.stdout!.on("data", (chunk: Buffer) => {
    if (chunk.includes("ready")) child.kill(signal);
  });
  expect(await outcome(child)).toMatchObject({ code: 42 });
});

test("a Node that is too old and has no runtime says in one sentence what to install, and exits 1", async () => {
  const { out, err, code } = await outcome(launchWithOldNode("start"));
  expect({ out, code }).toEqual({ out: "", code: 1 });
  expect(err.trimEnd().split("\n")).toHaveLength(1);
  expect(err).toContain("install Node 24");
});

test("the runtime is found by its link in .bin too", async () => {
  withRuntime("node_modules/.bin/node");
  expect(await outcome(launchWithOldNode("hello"))).toMatchObject({ out: "main true hello\n", code: 0 });
});

test("what the runtime starts finds the same runtime as node on its PATH", async () => {
  withRuntime();
  const { out } = await outcome(launchWithOldNode("path"));
  expect(out).toContain(`\n${path.join(root, path.dirname(RUNTIME))}\n`);
});

test("every npm script starts by the launcher, so that it works whatever npm made of .bin", () => {
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(readFileSync("package.json", "utf8"));
  const direct = Object.entries(scripts).filter(([, script]) => !/^node bin\/(laneway|run\.js)( |$)/.test(script));
  expect(direct).toEqual([]);
});
