// Owns: what is thrown away with time, at each start and once a day.
import type { Clock, Stop } from "../kernel/clock.ts";
import type { Background } from "../kernel/log.ts";
import type { Store } from "../store/store.ts";

const DAY_MS = 86_400_000;
/** Longer than any platform or client redelivers (Telegram keeps updates for 24 h). */
const INBOX_DAYS = 7;

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
    const until = clock.now() - INBOX_DAYS * DAY_MS;
    background(
      "upkeep",
      store.write("upkeep", (tx) => tx.inbox.forgetBefore(until)),
    );
    stop = clock.after(DAY_MS, run, { keepAlive: false });
  };
  run();
  return () => stop();
}
