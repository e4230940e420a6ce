// Measures the host as a process: cold start, CPU a turn with an instant model, memory and CPU when idle.
import { rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { median } from "./median.ts";
import { type BenchHost, makeBenchHome, startBenchHost, startInstantModel, TOKEN } from "./process.ts";

export interface HostResult {
  readonly firstStartMs: number;
  readonly secondStartMs: number;
  readonly cpuMsPerTurn: number;
  readonly idleRssMb: number;
  readonly cpuMsPerIdleMinute: number;
  readonly rssAfterTurnsMb: number;
}

/** What a start leaves to be done (compiling in the background, the first collections) is not idling. */
const SETTLE_MS = 15_000;
const STARTS = 5;
const WARM_TURNS = 200;
const TURNS = 1_000;

/** @param idleMs how long the idle host is watched */
export async function benchHost(idleMs: number): Promise<HostResult> {
  const model = await startInstantModel();
  const home = makeBenchHome(`backends: { model: { kind: openai, model: bench, baseUrl: "${model.baseUrl}" } }\n`);
  try {
    const firstStartMs = await startOnce(home);
    const later: number[] = [];
    for (let i = 0; i < STARTS; i += 1) later.push(await startOnce(home));
    const idle = await watchIdle(home, idleMs);
    const turns = await measureTurns(home);
    return {
      firstStartMs,
      secondStartMs: median(later),
      ...idle,
      ...turns,
    };
  } finally {
    model.stop();
    rmSync(home, { recursive: true });
  }
}

async function startOnce(home: string): Promise<number> {
  const host = await startBenchHost(home);
  await host.stop();
  return host.readyMs;
}

async function watchIdle(home: string, idleMs: number) {
  const host = await startBenchHost(home);
  await delay(SETTLE_MS);
  const before = host.cpuMs();
  await delay(idleMs);
  const result = { idleRssMb: host.rssMb(), cpuMsPerIdleMinute: ((host.cpuMs() - before) * 60_000) / idleMs };
  await host.stop();
  return result;
}

/** Turns by the web door in several chats, one at a time in each, read by `wait`. */
async function measureTurns(home: string) {
  const host = await startBenchHost(home);
  await sendTurns(host, WARM_TURNS, "warm");
  const before = host.cpuMs();
  await sendTurns(host, TURNS, "turn");
  const result = { cpuMsPerTurn: (host.cpuMs() - before) / TURNS, rssAfterTurnsMb: host.rssMb() };
  await host.stop();
  return result;
}

const CHATS = 4;

async function sendTurns(host: BenchHost, count: number, name: string): Promise<void> {
  const one = async (chat: number) => {
    for (let n = 0; n < count / CHATS; n += 1) {
      const { command } = await post(host, "send", {
        chat: `bench${chat}`,
        text: "hello",
        key: `${name}-${chat}-${n}`,
      });
      const { state } = await post(host, "wait", { command });
      if (state !== "done") throw new Error(`expected the turn to be done, it is ${state}`);
      if (n % 10 === 9)
        await post(host, "send", { chat: `bench${chat}`, text: "/new", key: `${name}-${chat}-${n}-new` });
    }
  };
  await Promise.all(Array.from({ length: CHATS }, (_, chat) => one(chat)));
}

async function post(host: BenchHost, verb: string, body: object): Promise<{ command: number; state?: string }> {
  const response = await fetch(`${host.address}/api/${verb}`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${verb} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as { command: number; state?: string };
}
