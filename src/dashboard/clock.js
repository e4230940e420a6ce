// Owns: every timer, reading of time and randomness of the page, so that the modules that use them can be tested.

/**
 * @typedef {{ now(): number, after(ms: number, fire: () => void): () => void, fraction(): number }} Clock
 *   `now` in ms since 1970; `after` fires once and returns its undoing; `fraction` is in [0, 1).
 */

/** @returns {Clock} */
export function browserClock() {
  return {
    now: () => Date.now(),
    after(ms, fire) {
      const timer = setTimeout(fire, ms);
      return () => clearTimeout(timer);
    },
    fraction: () => Math.random(),
  };
}

// Half a second is below what a person notices at a restart of the host; a quarter of a minute is the longest that
// someone who watches the page should wait after the host is back.
const BASE_MS = 500;
const MAX_MS = 15_000;

/** The wait in ms before try number `attempt` (1 = after the first failure), ±20 %. @param {number} attempt @param {number} fraction */
export function backoffMs(attempt, fraction) {
  const plain = Math.min(MAX_MS, BASE_MS * 2 ** Math.max(0, attempt - 1));
  return Math.round(plain * (0.8 + 0.4 * fraction));
}
