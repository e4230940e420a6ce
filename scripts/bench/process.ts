// Owns: a real host process for measurements: start, CPU time and memory from /proc (proc(5)).
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
export const TOKEN = "bench-token-0123456789";
/** USER_HZ, which Linux fixes at 100 for /proc. */
const TICK_MS = 10;

export interface BenchHost {
  readonly address: string;
  /** From spawn to the first 200 of /readyz. */
  readonly readyMs: number;
  cpuMs(): number;
  rssMb(): number;
  stop(): Promise<void>;
}

/** A home of its own with these settings; it listens on any port and logs little. */
export function makeBenchHome(yaml: string): string {
  const home = mkdtempSync(join(tmpdir(), "laneway-bench-"));
  chmodSync(home, 0o700);
  writeFileSync(join(home, "laneway.yaml"), `gateway: { port: 0 }\nlog: { level: warn }\n${yaml}`, { mode: 0o600 });
  return home;
}

export async function startBenchHost(home: string): Promise<BenchHost> {
  const started = performance.now();
  const env = { PATH: process.env["PATH"] ?? "", HOME: home, LANEWAY_HOME: home, LANEWAY_TOKEN: TOKEN };
  const child = spawn(process.execPath, [MAIN, "start", "--json"], { env, stdio: ["ignore", "pipe", "ignore"] });
  const { address } = JSON.parse(await firstLine(child)) as { address: string };
  const ready = await fetch(`${address}/readyz`);
  if (ready.status !== 200) throw new Error(`expected /readyz to answer 200, got ${ready.status}`);
  const readyMs = performance.now() - started;
  const { pid = 0 } = child;
  return {
    address,
    readyMs,
    cpuMs: () => cpuMs(pid),
    rssMb: () => rssMb(pid),
    async stop() {
      child.kill("SIGTERM");
      await once(child, "exit");
    },
  };
}

async function firstLine(child: ChildProcess): Promise<string> {
  let text = "";
  for await (const piece of child.stdout ?? []) {
    text += String(piece);
    if (text.includes("\n")) return text.slice(0, text.indexOf("\n"));
  }
  throw new Error("the host ended before it was ready");
}

/** User and system time of the whole process. */
function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

function rssMb(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(line?.[1]) / 1_024;
}

/** A model endpoint that answers at once, so that what is left is the host's own cost. */
export async function startInstantModel(onAsked = () => {}): Promise<{ baseUrl: string; stop: () => void }> {
  const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ id: "b", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const answer = `${chunk({ role: "assistant", content: "A short" })}${chunk({ content: " answer." })}${chunk({}, "stop")}data: [DONE]\n\n`;
  const server = createServer((request, response) => {
    onAsked();
    request.resume().on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" }).end(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { baseUrl: `http://127.0.0.1:${port}/v1`, stop: () => server.close().closeAllConnections() };
}
