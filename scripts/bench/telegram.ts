// Measures what the host adds between a message on Telegram and its answer, with a model that answers at once: over the time that
// the stand-in for Telegram needs by itself, which a client that only echoes shows in the same run.
import { rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { type FakeTelegram, startTelegram } from "../../test/support/telegram/telegram.ts";
import { median } from "./median.ts";
import { makeBenchHome, startBenchHost, startInstantModel } from "./process.ts";

export interface TelegramResult {
  /** Medians, over those of the bare client. */
  readonly inToModelMs: number;
  readonly inToOutMs: number;
  readonly bareMs: number;
  readonly idleRssMb: number;
}

const WARM = 10;
const MESSAGES = 60;
const OWNER_ID = 5_000_000_001;
/** After a start, for the first collections. */
const SETTLE_MS = 15_000;

export async function benchTelegram(): Promise<TelegramResult> {
  const bareMs = await bare();
  let askedAt = 0;
  const model = await startInstantModel(() => {
    askedAt = performance.now();
  });
  const telegram = await startTelegram({ limits: false });
  const home = makeBenchHome(`owner: [ "telegram:${OWNER_ID}" ]
channels: { telegram: { token: "${telegram.token}", apiRoot: "${telegram.address}" } }
backends: { model: { kind: openai, model: bench, baseUrl: "${model.baseUrl}" } }
`);
  try {
    await (await startBenchHost(home)).stop();
    const host = await startBenchHost(home);
    await delay(SETTLE_MS);
    const idleRssMb = host.rssMb();
    const times = await exchange(telegram, () => askedAt);
    await host.stop();
    return {
      inToModelMs: median(times.map(({ modelMs }) => modelMs)) - bareMs.in,
      inToOutMs: median(times.map(({ outMs }) => outMs)) - bareMs.out,
      bareMs: bareMs.out,
      idleRssMb,
    };
  } finally {
    model.stop();
    await telegram.stop();
    rmSync(home, { recursive: true });
  }
}

interface Times {
  readonly modelMs: number;
  readonly outMs: number;
}

async function exchange(telegram: FakeTelegram, askedAt: () => number): Promise<Times[]> {
  const owner = telegram.user({ id: OWNER_ID, name: "Ann" });
  const chat = telegram.privateChat(owner);
  const times: Times[] = [];
  for (let n = 0; n < WARM + MESSAGES; n += 1) {
    await telegram.until(() => telegram.openPolls > 0);
    const answers = telegram.messages(chat).filter(({ byBot }) => byBot).length;
    const started = performance.now();
    telegram.says(chat, owner, `message ${n}`, {});
    await telegram.until(() => telegram.messages(chat).filter(({ byBot }) => byBot).length > answers);
    const outMs = performance.now() - started;
    if (n >= WARM) times.push({ modelMs: askedAt() - started, outMs });
    // One message a second and chat is what a person may expect of the platform.
    await delay(1_000);
  }
  return times;
}

/** The stand-in's own time: a client that answers an update as soon as it has it. */
async function bare(): Promise<{ in: number; out: number }> {
  const telegram = await startTelegram({ limits: false });
  const owner = telegram.user({ id: OWNER_ID, name: "Ann" });
  const chat = telegram.privateChat(owner);
  const call = async (method: string, body: object) => {
    const response = await fetch(`${telegram.address}/bot${telegram.token}/${method}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return (await response.json()) as { result: { update_id: number }[] };
  };
  const times: { in: number; out: number }[] = [];
  let offset = 0;
  for (let n = 0; n < WARM + MESSAGES; n += 1) {
    const polling = call("getUpdates", { offset, timeout: 25 });
    await telegram.until(() => telegram.openPolls > 0);
    const started = performance.now();
    telegram.says(chat, owner, `message ${n}`, {});
    const { result } = await polling;
    const came = performance.now() - started;
    offset = (result.at(-1)?.update_id ?? 0) + 1;
    await call("sendMessage", { chat_id: chat.id, text: "A short answer." });
    if (n >= WARM) times.push({ in: came, out: performance.now() - started });
  }
  await telegram.stop();
  return { in: median(times.map((time) => time.in)), out: median(times.map(({ out }) => out)) };
}
