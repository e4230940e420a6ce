// Owns: a Telegram channel under test: on a fake clock, over real HTTP, with a host that records and can refuse.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import type {
  ChannelEvent,
  ChannelHost,
  ChannelState,
  EventBatch,
  OutgoingPart,
  PreviewPlace,
} from "../../../src/channels/port.ts";
import { makeTelegram, type TelegramChannel } from "../../../src/channels/telegram/telegram.ts";
import { type Log, makeBackground } from "../../../src/kernel/log.ts";
import { type FakeClock, fakeClock } from "../../support/clock.ts";
import { type FakeTelegram, startTelegram, type TelegramOptions } from "../../support/telegram/telegram.ts";

export const STALL_MS = 120_000;

export interface Recorded extends ChannelHost {
  readonly batches: EventBatch[];
  readonly states: ChannelState[];
  positions: Map<string, string>;
  /** Called before a batch is kept; when it rejects nothing is kept. */
  gate: () => Promise<void>;
  events(): ChannelEvent[];
}

export function recordingHost(): Recorded {
  const host: Recorded = {
    batches: [],
    states: [],
    positions: new Map(),
    gate: async () => {},
    events: () => host.batches.flatMap(({ events }) => events.flatMap((event) => ("problem" in event ? [] : [event]))),
    position: (identity) => host.positions.get(identity),
    async take(identity, batch) {
      await host.gate();
      host.batches.push(batch);
      host.positions.set(identity, batch.position);
    },
    changed: (state) => host.states.push(state),
  };
  return host;
}

/** Everything that the channel says to the log, as one text. */
export function recordingLog(): { log: Log; lines: string[] } {
  const lines: string[] = [];
  const line = (event: string, fields: object = {}) => {
    lines.push(`${event} ${JSON.stringify(fields)}`);
  };
  return { lines, log: { info: line, warn: line, error: line, debug: line } };
}

export interface Rig {
  readonly clock: FakeClock;
  readonly channel: TelegramChannel;
  readonly host: Recorded;
  readonly lines: string[];
  start(): { stop(): Promise<void> };
  /** Lets time pass in small steps, with the network keeping up, until the condition holds. */
  until(condition: () => unknown): Promise<void>;
  /** Lets `ms` pass in the same way. */
  pass(ms: number): Promise<void>;
}

const STEP_MS = 250;

export function rigAt(apiRoot: string, token: string, clock: FakeClock = fakeClock()): Rig {
  const host = recordingHost();
  const { log, lines } = recordingLog();
  const channel = makeTelegram({
    settings: { token, apiRoot, stallMs: STALL_MS, mode: "polling" },
    account: "main",
    clock,
    ids: { random: () => "random", fraction: () => 0.5 },
    log,
    background: makeBackground(log),
  });
  return {
    ...{ clock, channel, host, lines },
    start() {
      const started = channel.start(host);
      onTestFinished(() => started.stop());
      return started;
    },
    until: (condition) => until(clock, condition),
    async pass(ms) {
      const end = clock.mono() + ms;
      await until(clock, () => clock.mono() >= end);
    },
  };
}

export async function until(clock: FakeClock, condition: () => unknown): Promise<void> {
  for (let turn = 0; turn < 20_000; turn++) {
    // The network runs in real time: a few rounds of it between two steps of the clock.
    for (let round = 0; round < 4; round++) {
      if (condition()) return;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await clock.advance(STEP_MS);
  }
  throw new Error(`never came true: ${condition}`);
}

export async function rigWith(options: Omit<TelegramOptions, "clock"> = {}): Promise<Rig & { telegram: FakeTelegram }> {
  const clock = fakeClock();
  const telegram = await startTelegram({ clock, ...options });
  onTestFinished(() => telegram.stop());
  return { ...rigAt(telegram.address, telegram.token, clock), telegram };
}

/** A server that answers each call as the test says, for answers that the platform would never give. */
export async function scriptedServer(
  answer: (method: string, params: Record<string, unknown>) => unknown,
): Promise<string> {
  const server = createServer(async (request, response) => {
    const method = request.url?.split("/").at(-1) ?? "";
    const body = await text(request);
    const result = answer(method, body.startsWith("{") ? JSON.parse(body) : {});
    // Held until the client goes away.
    if (result === undefined) return;
    response.setHeader("content-type", "application/json");
    response.end(typeof result === "string" ? result : JSON.stringify({ ok: true, result }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export function part(chat: number | { id: number }, text: string, more: Partial<OutgoingPart> = {}): OutgoingPart {
  const id = typeof chat === "number" ? chat : chat.id;
  return {
    chat: String(id),
    thread: undefined,
    replyTo: undefined,
    editRef: undefined,
    again: false,
    text,
    extra: undefined,
    ...more,
  };
}

/** Where a preview is shown: the message of the given chat that nobody answers, without an earlier life. */
export function place(chat: number | { id: number }, more: Partial<PreviewPlace> = {}): PreviewPlace {
  const id = typeof chat === "number" ? chat : chat.id;
  const at = { chat: String(id), chatKind: id < 0 ? ("group" as const) : ("private" as const) };
  return { ...at, thread: undefined, replyTo: undefined, ref: undefined, asMessage: false, ...more };
}

export const kept = async () => true;
