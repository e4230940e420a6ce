// Owns: the names of the metrics and their form as text. Loaded at the first scrape: the library costs several megabytes.
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { LoopDelay } from "../../kernel/clock.ts";
import type { HostStatus } from "../status.ts";
import { laneLabel } from "./labels.ts";
import { SECONDS_BUCKETS, type Series, type Tally } from "./tally.ts";

export interface Exposition {
  readonly contentType: string;
  readonly text: string;
}

interface RegistryDeps {
  readonly tally: Pick<Tally, "take">;
  readonly status: () => HostStatus;
  /** Since its last call. */
  readonly loopDelay: () => LoopDelay;
}

export function makeRegistry({ tally, status, loopDelay }: RegistryDeps): { expose(): Promise<Exposition> } {
  const registry = new Registry();
  const takeCounts = counted(registry, tally);
  const looks = [hostLook(registry), laneLook(registry), outwardLook(registry)];
  const takeDelay = delayLook(registry);
  return {
    async expose() {
      takeCounts();
      const now = status();
      for (const look of looks) look(now);
      takeDelay(loopDelay());
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

/** Moves what the tally has into counters and histograms. */
function counted(registry: Registry, tally: RegistryDeps["tally"]): () => void {
  const registers = [registry];
  const ended = new Counter({
    ...{ name: "laneway_commands_ended_total", registers, labelNames: ["state"] as const },
    help: "Commands that have ended since the start, by end state; chat commands included.",
  });
  const attempts = new Counter({
    ...{ name: "laneway_backend_attempts_total", registers, labelNames: ["backend", "class"] as const },
    help: "Tries of backends since the start, by class of failure (ok: it answered). Stopped ones are not counted.",
  });
  const seconds: Readonly<Record<Series, Histogram<"lane">>> = {
    wait: new Histogram({
      ...{ name: "laneway_command_wait_seconds", registers, labelNames: ["lane"] as const },
      ...{ buckets: [...SECONDS_BUCKETS], help: "From the acceptance of a command to the beginning of its work." },
    }),
    run: new Histogram({
      ...{ name: "laneway_command_run_seconds", registers, labelNames: ["lane"] as const },
      ...{ buckets: [...SECONDS_BUCKETS], help: "From the beginning of a command's work to its committed end." },
    }),
  };
  return () => {
    const counts = tally.take();
    for (const [state, count] of counts.ended) ended.inc({ state }, count);
    for (const { backend, result, count } of counts.attempts) attempts.inc({ backend, class: result }, count);
    for (const { series, lane, bucket } of counts.seconds) {
      // The mean lies in the bucket: buckets and count are exact, the sum up to rounding.
      const mean = bucket.sumMs / bucket.count / 1000;
      for (let n = 0; n < bucket.count; n += 1) seconds[series].observe({ lane }, mean);
    }
  };
}

type Look = (status: HostStatus) => void;

function hostLook(registry: Registry): Look {
  const registers = [registry];
  const info = new Gauge({
    ...{ name: "laneway_build_info", registers, labelNames: ["version"] as const },
    help: "Always 1; the label says which version runs.",
  });
  const paused = new Gauge({
    ...{ name: "laneway_store_paused", registers },
    help: "1 while the disk cannot be written and nothing is accepted.",
  });
  const memory = new Gauge({
    ...{ name: "process_resident_memory_bytes", registers },
    help: "Resident memory of the host.",
  });
  return ({ version, store }) => {
    info.set({ version }, 1);
    paused.set(store.paused ? 1 : 0);
    memory.set(process.memoryUsage.rss());
  };
}

function laneLook(registry: Registry): Look {
  const perLane = (name: string, help: string) =>
    new Gauge({ name, help, registers: [registry], labelNames: ["lane"] as const });
  const queued = perLane("laneway_lane_queued_commands", "Commands that wait in the lane.");
  const running = perLane("laneway_lane_running_commands", "Commands of the lane that run.");
  const oldest = perLane("laneway_lane_oldest_wait_seconds", "Age of the oldest command that waits; 0 when none does.");
  return ({ lanes }) => {
    for (const gauge of [queued, running, oldest]) gauge.reset();
    const oldestOf = new Map<string, number>();
    for (const one of lanes) {
      const lane = laneLabel(one.lane);
      queued.inc({ lane }, one.queued);
      running.inc({ lane }, one.running);
      oldestOf.set(lane, Math.max(oldestOf.get(lane) ?? 0, (one.oldestWaitMs ?? 0) / 1000));
    }
    for (const [lane, age] of oldestOf) oldest.set({ lane }, age);
  };
}

const PART_STATES = ["ready", "sending", "unknown", "held", "failed"] as const;

function outwardLook(registry: Registry): Look {
  const registers = [registry];
  const parts = new Gauge({
    ...{ name: "laneway_outbox_parts", registers, labelNames: ["state"] as const },
    help: "Parts of answers and notices that have not reached anybody, by state.",
  });
  const up = new Gauge({
    ...{ name: "laneway_channel_up", registers, labelNames: ["channel"] as const },
    help: "1 while people can write by the channel and be answered.",
  });
  return ({ counts, channels }) => {
    for (const state of PART_STATES) parts.set({ state }, counts.outbox[state] ?? 0);
    up.reset();
    for (const { name, state } of channels) up.set({ channel: name }, state === "up" ? 1 : 0);
  };
}

function delayLook(registry: Registry): (delay: LoopDelay) => void {
  const late = new Gauge({
    ...{ name: "laneway_event_loop_delay_seconds", registers: [registry], labelNames: ["quantile"] as const },
    help: "How late the event loop was with its timers since the last scrape; quantile 1 is the worst.",
  });
  return ({ p50Ms, p99Ms, maxMs }) => {
    late.set({ quantile: "0.5" }, p50Ms / 1000);
    late.set({ quantile: "0.99" }, p99Ms / 1000);
    late.set({ quantile: "1" }, maxMs / 1000);
  };
}
