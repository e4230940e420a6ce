import fc from "fast-check";
import { expect, test } from "vitest";
import { makeRegistry } from "../../../src/gateway/metrics/registry.ts";
import { makeTally, SECONDS_BUCKETS } from "../../../src/gateway/metrics/tally.ts";
import type { HostStatus } from "../../../src/gateway/status.ts";
import { type Events, makeEvents } from "../../../src/kernel/events.ts";
import type { CommandId, SessionKey } from "../../../src/kernel/ids.ts";
import { parsePrometheus, type Samples } from "../../support/prometheus.ts";

type Lane = HostStatus["lanes"][number];

function lane(name: string, over: Partial<Lane> = {}): Lane {
  return { lane: name, size: 1, running: 0, queued: 0, oldestWaitMs: undefined, ...over };
}

const STATUS: HostStatus = {
  ...{ version: "1.2.3", generation: 1, pid: 1, startedAt: "", uptimeMs: 0, backends: [] },
  settings: { state: "file", path: "x" },
  lanes: [lane("main")],
  channels: [{ name: "web", state: "up" }],
  store: { paused: false },
  counts: { queued: 0, running: 0, outbox: {} },
} as unknown as HostStatus;

function makeStage() {
  const events = makeEvents((thrown) => {
    throw thrown;
  });
  const tally = makeTally(events);
  const now = { status: STATUS };
  const registry = makeRegistry({
    tally,
    status: () => now.status,
    loopDelay: () => ({ p50Ms: 1, p99Ms: 20, maxMs: 250 }),
  });
  const scrape = async (): Promise<Samples> => parsePrometheus((await registry.expose()).text);
  return { events, tally, now, scrape };
}

type CommandEvent = Extract<Parameters<Events["emit"]>[0], { type: "command" }>;

function command(over: Pick<CommandEvent, "state" | "timing">): CommandEvent {
  return { type: "command", id: 1 as CommandId, session: "s" as SessionKey, chatKey: "web:default:main", ...over };
}

test("the text has the form and content type of Prometheus, units in the names", async () => {
  const { events, tally } = makeStage();
  const { expose } = makeRegistry({ tally, status: () => STATUS, loopDelay: () => ({ p50Ms: 0, p99Ms: 0, maxMs: 0 }) });
  events.emit(command({ state: "running", timing: { lane: "main", waitedMs: 5 } }));
  const { contentType, text } = await expose();
  expect(contentType).toMatch(/^text\/plain; version=0\.0\.4/);
  const names = new Set([...parsePrometheus(text).keys()].map((key) => key.replace(/\{.*$/, "")));
  expect([...names].filter((name) => !/^(laneway_|process_)[a-z_]+$/.test(name))).toEqual([]);
  expect([...names].filter((name) => /_ms|_millis/.test(name))).toEqual([]);
});

test("lanes show what waits and runs; lanes of sessions are one series, so that series do not pile up (Q2.3)", async () => {
  const { now, scrape } = makeStage();
  now.status = {
    ...STATUS,
    lanes: [
      lane("main", { queued: 3, running: 2, oldestWaitMs: 2_500 }),
      lane("nested:a", { queued: 1, running: 1, oldestWaitMs: 4_000 }),
      lane("nested:b", { queued: 2, oldestWaitMs: 9_000 }),
    ],
  };
  const first = await scrape();
  expect(first.get('laneway_lane_queued_commands{lane="main"}')).toBe(3);
  expect(first.get('laneway_lane_running_commands{lane="main"}')).toBe(2);
  expect(first.get('laneway_lane_oldest_wait_seconds{lane="main"}')).toBe(2.5);
  expect(first.get('laneway_lane_queued_commands{lane="nested"}')).toBe(3);
  expect(first.get('laneway_lane_running_commands{lane="nested"}')).toBe(1);
  expect(first.get('laneway_lane_oldest_wait_seconds{lane="nested"}')).toBe(9);
  now.status = STATUS;
  const second = await scrape();
  expect(second.get('laneway_lane_queued_commands{lane="main"}')).toBe(0);
  expect(second.has('laneway_lane_queued_commands{lane="nested"}')).toBe(false);
});

test("what happened before the first scrape counts, and nothing counts twice", async () => {
  const { events, tally, scrape } = makeStage();
  events.emit(command({ state: "done", timing: { lane: "main", ranMs: 1_500 } }));
  events.emit({ type: "attempt", backend: "opus", failed: undefined });
  events.emit({ type: "attempt", backend: "opus", failed: "overloaded" });
  tally.countEnded("dead", 2);
  for (const samples of [await scrape(), await scrape()]) {
    expect(samples.get('laneway_commands_ended_total{state="done"}')).toBe(1);
    expect(samples.get('laneway_commands_ended_total{state="dead"}')).toBe(2);
    expect(samples.get('laneway_backend_attempts_total{backend="opus",class="ok"}')).toBe(1);
    expect(samples.get('laneway_backend_attempts_total{backend="opus",class="overloaded"}')).toBe(1);
    expect(samples.get('laneway_command_run_seconds_count{lane="main"}')).toBe(1);
  }
  events.emit(command({ state: "done", timing: { lane: "main", ranMs: 1_500 } }));
  expect((await scrape()).get('laneway_command_run_seconds_sum{lane="main"}')).toBeCloseTo(3);
});

test("a command that is handed back has waited, and has neither ended nor run to an end", async () => {
  const { events, scrape } = makeStage();
  events.emit(command({ state: "running", timing: { lane: "main", waitedMs: 5 } }));
  events.emit(command({ state: "queued", timing: { lane: "main", ranMs: 800 } }));
  const samples = await scrape();
  expect(samples.get('laneway_command_wait_seconds_count{lane="main"}')).toBe(1);
  expect(samples.has('laneway_command_run_seconds_count{lane="main"}')).toBe(false);
  expect([...samples.keys()].filter((key) => key.startsWith("laneway_commands_ended_total{"))).toEqual([]);
});

test("channels, store, parts, memory and the event loop are told as they are now", async () => {
  const { now, scrape } = makeStage();
  now.status = {
    ...STATUS,
    channels: [
      { name: "web", state: "up" },
      { name: "telegram:default", state: "retrying" },
    ],
    store: { paused: true },
    counts: { ...STATUS.counts, outbox: { ready: 4, unknown: 1 } },
  };
  const samples = await scrape();
  expect(samples.get('laneway_channel_up{channel="web"}')).toBe(1);
  expect(samples.get('laneway_channel_up{channel="telegram:default"}')).toBe(0);
  expect(samples.get("laneway_store_paused")).toBe(1);
  expect(samples.get('laneway_outbox_parts{state="ready"}')).toBe(4);
  expect(samples.get('laneway_outbox_parts{state="unknown"}')).toBe(1);
  expect(samples.get('laneway_outbox_parts{state="sending"}')).toBe(0);
  expect(samples.get('laneway_event_loop_delay_seconds{quantile="0.99"}')).toBe(0.02);
  expect(samples.get('laneway_event_loop_delay_seconds{quantile="1"}')).toBe(0.25);
  expect(samples.get('laneway_build_info{version="1.2.3"}')).toBe(1);
  expect(samples.get("process_resident_memory_bytes")).toBeGreaterThan(10_000_000);
});

test("the histograms hold every wait in its bucket, however the scrapes fall", async () => {
  const waits = fc.oneof(fc.nat(4_000_000), fc.constantFrom(...SECONDS_BUCKETS.map((bound) => bound * 1000)));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(waits, { maxLength: 20 }), { maxLength: 5 }), async (rounds) => {
      const { events, scrape } = makeStage();
      let samples = await scrape();
      for (const round of rounds) {
        for (const waitedMs of round) events.emit(command({ state: "running", timing: { lane: "cron", waitedMs } }));
        samples = await scrape();
      }
      const all = rounds.flat();
      const held = (le: string) => samples.get(`laneway_command_wait_seconds_bucket{le="${le}",lane="cron"}`) ?? 0;
      for (const bound of SECONDS_BUCKETS) {
        expect(held(String(bound))).toBe(all.filter((ms) => ms / 1000 <= bound).length);
      }
      expect(held("+Inf")).toBe(all.length);
      const sum = samples.get('laneway_command_wait_seconds_sum{lane="cron"}') ?? 0;
      expect(sum).toBeCloseTo(all.reduce((total, ms) => total + ms, 0) / 1000, 3);
    }),
    { numRuns: 100 },
  );
});
