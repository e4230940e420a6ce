// Owns: the order of reading. Pure.

/**
 * @typedef {import("./wire.js").Item} Item
 * @typedef {import("./wire.js").PersonItem} PersonItem
 * @typedef {{ command: number, text: string, note: string, ended: string | undefined, place: number }} Live
 *   an answer that grows; `ended` is the state that ended it while its final part has not come yet, and `place` the
 *   seq below which it then stands, unless it was stopped: such a one stays below its message
 * @typedef {{ kind: "item", item: Item, state: string, position: number | undefined } | { kind: "live", live: Live }} Row
 * @typedef {{ state: string, position?: number | undefined }} Known
 * @typedef {{ before: Row[], after: Row[], running: number[] }} Order
 *   the rows above and below the growing answers, and the persons' commands that run
 */

/**
 * The order of reading is the order of seq with one exception: a message that waited while earlier ones were answered
 * stands below those answers, above its own; while it still waits it stands below the growing answer.
 * @param {Item[]} items
 * @param {(item: PersonItem) => Known} stateOf
 * @param {Live[]} ended growing answers that have ended
 * @returns {Order}
 */
export function arrange(items, stateOf, ended) {
  const sorted = items.toSorted((a, b) => a.seq - b.seq);
  /** @type {{ key: number, row: Row }[]} */
  const keyed = [];
  /** @type {Row[]} */
  const after = [];
  /** @type {number[]} */
  const running = [];
  let lastKey = 0;
  for (const [index, item] of sorted.entries()) {
    if (item.kind === "part") {
      keyed.push({ key: item.seq, row: { kind: "item", item, state: item.state, position: undefined } });
      continue;
    }
    const { state, position } = stateOf(item);
    /** @type {Row} */
    const row = { kind: "item", item, state, position };
    if (state === "running") running.push(item.command);
    if (state === "queued") {
      after.push(row);
      continue;
    }
    const { key, alone } = placeOf(sorted, index, item);
    // One without an answer of its own goes with the message before it, which took it in.
    lastKey = alone && !isBusy(state) ? Math.max(item.seq, lastKey) : key;
    keyed.push({ key: lastKey, row });
  }
  for (const live of ended) {
    const mine = keyed.filter(({ row }) => row.kind === "item" && row.item.command === live.command);
    const isStopped = live.ended === "cancelled" && mine.length > 0;
    const place = isStopped ? Math.max(...mine.map(({ key }) => key)) : live.place;
    keyed.push({ key: place + 0.25, row: { kind: "live", live } });
  }
  keyed.sort((a, b) => a.key - b.key);
  return { before: keyed.map(({ row }) => row), after, running };
}

/** @param {string} state */
export const isBusy = (state) => state === "running" || state === "waiting";

/**
 * The place of a person's message: after the last answer to an earlier command that came before its own first part;
 * `alone` when it has no part.
 * @param {Item[]} sorted
 * @param {number} index
 * @param {PersonItem} person
 */
function placeOf(sorted, index, person) {
  let key = person.seq;
  for (let at = index + 1; at < sorted.length; at += 1) {
    const item = sorted[at];
    if (item?.kind !== "part" || item.command === undefined) continue;
    if (item.command === person.command) return { key, alone: false };
    // Between two whole numbers: seqs are whole, so nothing else stands there.
    if (item.command < person.command) key = item.seq + 0.5;
  }
  return { key, alone: true };
}
