// Owns: a real host process on a home of its own, and speaking to it over HTTP.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

export const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
export const TOKEN = "test-token-0123456789abcdef";

export interface HostProcess {
  readonly address: string;
  readonly link: string;
  readonly process: ChildProcess;
  /** What it has written to stderr so far: log lines as JSON. */
  stderr(): string;
  /** POST /api/<verb>. Rejects when the host does not answer; the status is checked by the caller. */
  api(verb: string, body?: unknown): Promise<ApiAnswer>;
  /** Kills it at once and waits for its end. */
  kill(): Promise<void>;
  /** SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>;
  /** Resolves with code or signal when it has ended, by whatever cause. */
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

export interface ApiAnswer {
  readonly status: number;
  // Test code reads the bodies of its own host.
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the test asserts
  readonly body: any;
}

/** Writes the settings (YAML) into the home, private as the host wants them. */
export async function writeSettings(home: string, yaml: string): Promise<void> {
  await mkdir(home, { recursive: true, mode: 0o700 });
  await chmod(home, 0o700);
  await writeFile(`${home}/laneway.yaml`, yaml, { mode: 0o600 });
}

/** Settings with one OpenAI-compatible backend; `more` is YAML that is appended. */
export function settingsFor(baseUrl: string, more = "", port = 0): string {
  return `gateway: { port: ${port} }\nbackends: { model: { kind: openai, model: fake, baseUrl: "${baseUrl}" } }\n${more}\n`;
}

/** The environment of a child: nothing of this machine but its PATH, so that no key or server of the tester is found. */
export function childEnv(home: string, env: Record<string, string> = {}): Record<string, string> {
  return {
    PATH: process.env["PATH"] ?? "",
    HOME: home,
    LANEWAY_HOME: home,
    LANEWAY_TOKEN: TOKEN,
    NO_COLOR: "1",
    ...env,
  };
}

/** Starts `laneway start --json` and resolves when it has printed its link. Rejects with its stderr when it ends before. */
export async function startHostProcess(home: string, env: Record<string, string> = {}): Promise<HostProcess> {
  const child = spawn(process.execPath, [MAIN, "start", "--json"], {
    env: childEnv(home, env),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = once(child, "exit").then(([code, signal]) => ({ code, signal }));
  const told = await Promise.race([
    firstLine(child),
    ended.then((end) => Promise.reject(new Error(`ended ${JSON.stringify(end)}: ${stderr}`))),
  ]);
  const { address, link } = JSON.parse(told) as { address: string; link: string };
  return {
    address,
    link,
    process: child,
    stderr: () => stderr,
    api: (verb, body = {}) => callApi(address, verb, body),
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
    async stop() {
      child.kill("SIGTERM");
      return (await ended).code;
    },
    ended,
  };
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    child.stdout?.setEncoding("utf8").on("data", (more: string) => {
      text += more;
      const end = text.indexOf("\n");
      if (end !== -1) resolve(text.slice(0, end));
    });
  });
}

export async function callApi(address: string, verb: string, body: unknown): Promise<ApiAnswer> {
  const response = await fetch(`${address}/api/${verb}`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
}

/** Runs one command of the command line to its end. */
export async function cli(
  home: string,
  args: readonly string[],
  input = "",
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [MAIN, ...args], { env: childEnv(home), stdio: ["pipe", "pipe", "pipe"] });
  const out = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out.stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    out.stderr += text;
  });
  child.stdin.end(input);
  const [code] = await once(child, "close");
  return { code: code as number | null, ...out };
}

/** The log lines of a host, from its file: they outlive a kill. */
export async function logLines(home: string): Promise<Record<string, unknown>[]> {
  const text = await readFile(`${home}/logs/laneway.log`, "utf8");
  return text
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}
