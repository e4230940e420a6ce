// Owns: what the host says about itself, to its owner and to supervisors.

import type { Clock } from "../kernel/clock.ts";
import type { Events } from "../kernel/events.ts";
import type { Queue } from "../queue/queue.ts";
import type { Store } from "../store/store.ts";
import type { ChannelStatus } from "./channels.ts";

export interface StaticFacts {
  readonly version: string;
  readonly startedAt: number;
  readonly startedMono: number;
  readonly settings: { readonly state: string; readonly path: string; readonly problem?: string | undefined };
  readonly channels: readonly string[];
  readonly backends: readonly { readonly name: string; readonly kind: string; readonly model: string }[];
}

/** What the last try on a backend told of it. Before the first one nothing is known. */
type BackendState = { readonly state: "untried" | "answers" } | { readonly state: "fails"; readonly class: string };

/** The state of a backend by its name. It only listens: nothing is asked of a backend for it. */
export function watchBackends(events: Events): (name: string) => BackendState {
  const last = new Map<string, BackendState>();
  events.on((event) => {
    if (event.type !== "attempt") return;
    last.set(
      event.backend,
      event.failed === undefined ? { state: "answers" } : { state: "fails", class: event.failed },
    );
  });
  return (name) => last.get(name) ?? { state: "untried" };
}

interface StatusDeps {
  readonly backendState: (name: string) => BackendState;
  readonly store: Store;
  readonly queue: Queue;
  readonly clock: Clock;
  readonly facts: StaticFacts;
  readonly channels: () => readonly ChannelStatus[];
}

export function hostStatus({ store, queue, clock, facts, backendState, channels }: StatusDeps) {
  const lanes = queue.lanes();
  return {
    version: facts.version,
    generation: store.generation,
    pid: process.pid,
    startedAt: new Date(facts.startedAt).toISOString(),
    uptimeMs: Math.round(clock.mono() - facts.startedMono),
    settings: facts.settings,
    lanes,
    channels: [...facts.channels.map((name): ChannelStatus => ({ name, state: "up" })), ...channels()],
    backends: facts.backends.map((backend) => ({ ...backend, ...backendState(backend.name) })),
    store: { paused: store.paused() },
    counts: {
      queued: lanes.reduce((sum, lane) => sum + lane.queued, 0),
      running: lanes.reduce((sum, lane) => sum + lane.running, 0),
      outbox: store.read.outbox.counts(),
    },
  };
}

export type HostStatus = ReturnType<typeof hostStatus>;

/** Ready: it takes messages and works them off. Not merely an open port (G16). Says nothing that a stranger may not know. */
export function readiness(
  { store, queue, channels }: { store: Store; queue: Queue; channels: () => readonly ChannelStatus[] },
  draining: boolean,
) {
  const oldest = queue.lanes().map((lane) => lane.oldestWaitMs ?? 0);
  const ready = !draining && !store.paused();
  const stalled = channels().flatMap(({ name, state }) => (state === "retrying" || state === "stopped" ? [name] : []));
  return {
    ready,
    draining,
    storePaused: store.paused(),
    oldestWaitMs: Math.max(0, ...oldest),
    stalledChannels: stalled,
  };
}
