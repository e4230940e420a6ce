// Owns: what `/metrics` answers, and that a host which nobody scrapes pays next to nothing for it: until then there is only a
// tally, and the library and the watch of the event loop are started by the first scrape.
import { type Stop, watchLoopDelay } from "../../kernel/clock.ts";
import type { Events } from "../../kernel/events.ts";
import type { HostStatus } from "../status.ts";
import type { Exposition } from "./registry.ts";
import { makeTally } from "./tally.ts";

export interface Metrics {
  /** Everything as Prometheus text. */
  scrape(): Promise<Exposition>;
  /** Commands that were given up at boot. */
  gaveUp(count: number): void;
  readonly stop: Stop;
}

export function makeMetrics({ events, status }: { events: Events; status: () => HostStatus }): Metrics {
  const tally = makeTally(events);
  const load = async () => {
    const { makeRegistry } = await import("./registry.ts");
    return makeRegistry({ tally, status, loopDelay: await watchLoopDelay() });
  };
  let loaded: ReturnType<typeof load> | undefined;
  return {
    async scrape() {
      loaded ??= load();
      return (await loaded).expose();
    },
    gaveUp: (count) => tally.countEnded("dead", count),
    stop: tally.stop,
  };
}
