// Owns: what is thrown away with time, at each start and once a day.
import type { Clock, Stop } from "../kernel/clock.ts";
import type { Background } from "../kernel/log.ts";
import type { Store } from "../store/store.ts";

const DAY_MS = 86_400_000;
/** Longer than any platform or client redelivers (Telegram keeps updates for 24 h). */
const INBOX_DAYS = 7;
/** Pairing looks back an hour. */
const MISSES_DAYS = 1;
/** Long enough for somebody to look at what could not be read. */
const REJECTED_DAYS = 90;

export function startUpkeep({
  store,
  clock,
  background,
}: {
  store: Store;
  clock: Clock;
  background: Background;
}): Stop {
  let stop: Stop = () => {};
  const run = () => {
    const daysAgo = (days: number) => clock.now() - days * DAY_MS;
    const forget = store.write("upkeep", (tx) => {
      tx.inbox.forgetBefore(daysAgo(INBOX_DAYS));
      tx.peers.forgetMissesBefore(daysAgo(MISSES_DAYS));
      tx.rejected.forgetBefore(daysAgo(REJECTED_DAYS));
    });
    background("upkeep", forget);
    stop = clock.after(DAY_MS, run, { keepAlive: false });
  };
  run();
  return () => stop();
}
