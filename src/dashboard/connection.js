// Owns: the life of the event stream: open, lost, tried again with growing pauses. Knows nothing of what the events mean.
import { backoffMs } from "./clock.js";
import { EVENT_NAMES, parseJson, readEvent } from "./wire.js";

// A browser may leave an attempt hanging for minutes, for example when it has too many streams open to one host.
const OPEN_TIMEOUT_MS = 15_000;

/**
 * @param {{
 *   open(): EventSource,
 *   check(): Promise<"open" | "later" | "stop">,
 *   clock: import("./clock.js").Clock,
 *   on: { opened(): void, lost(): void, event(event: import("./wire.js").HostEvent): void },
 * }} deps `check` is asked after a loss, since the stream itself does not tell why it failed: "later" when the host does
 *   not answer, "stop" when it no longer knows this browser
 */
export function makeConnection({ open, check, clock, on }) {
  /** @type {EventSource | undefined} */
  let source;
  /** @type {(() => void) | undefined} */
  let stopWaiting;
  let failures = 0;
  let isOpen = false;
  // Raised at each start and stop: what an earlier life still waits for has no say.
  let lives = 0;

  function start() {
    stop();
    const mine = open();
    source = mine;
    stopWaiting = clock.after(OPEN_TIMEOUT_MS, lost);
    mine.onopen = () => {
      failures = 0;
      isOpen = true;
      stopWaiting?.();
      stopWaiting = undefined;
      on.opened();
    };
    // The browser would try again by itself, but with a fixed pause, and without telling why it failed.
    mine.onerror = () => {
      if (source === mine) lost();
    };
    for (const name of EVENT_NAMES) {
      mine.addEventListener(name, (/** @type {MessageEvent<string>} */ message) => {
        const event = source === mine ? readEvent(name, parseJson(message.data)) : undefined;
        if (event) on.event(event);
      });
    }
  }

  function stop() {
    lives += 1;
    stopWaiting?.();
    stopWaiting = undefined;
    source?.close();
    source = undefined;
    isOpen = false;
  }

  function lost() {
    stop();
    on.lost();
    failures += 1;
    const life = lives;
    stopWaiting = clock.after(backoffMs(failures, clock.fraction()), () => void again(life));
  }

  /** @param {number} life */
  async function again(life) {
    const verdict = await check();
    if (life !== lives) return;
    if (verdict === "open") start();
    if (verdict === "later") lost();
  }

  return {
    /** Opens the stream, closing an earlier one. */
    start,
    stop,
    /** The page is looked at again: does not wait for the pause to end, and replaces a stream that may be dead. @param {boolean} suspect */
    resume(suspect) {
      if (suspect || !isOpen) start();
    },
  };
}
