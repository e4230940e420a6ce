// Owns: what the conversation is known to be: items by seq, states by command, answers that still grow. Pure.
// Never shows an item twice, and never a growing answer beside the final part that replaces it.
import { arrange, isBusy } from "./order.js";

/**
 * @typedef {import("./wire.js").Item} Item
 * @typedef {import("./wire.js").PersonItem} PersonItem
 * @typedef {import("./order.js").Live} Live
 * @typedef {import("./order.js").Row} Row
 * @typedef {{ state: string, position: number | undefined, tick: number }} KnownState
 */

const OVER = new Set(["done", "failed", "dead", "cancelled"]);

export class Timeline {
  /** @type {Map<number, Item>} */
  #items = new Map();
  /** @type {Map<number, KnownState>} */
  #states = new Map();
  /** @type {Map<number, Live>} */
  #lives = new Map();
  /** @type {import("./order.js").Order | undefined} until something changes */
  #order;
  #tick = 0;
  #cursor = 0;

  /** The largest seq that came by the stream or the first history: where a new stream goes on. */
  get cursor() {
    return this.#cursor;
  }

  /** A mark for `mergeHistory`, taken when a history is asked for: what is heard of later is younger than that history. */
  mark() {
    this.#tick += 1;
    return this.#tick;
  }

  get size() {
    return this.#items.size;
  }

  /** The smallest seq, undefined when there is none. */
  get oldest() {
    return this.size === 0 ? undefined : Math.min(...this.#items.keys());
  }

  /** The largest seq, 0 when there is none. */
  get newest() {
    return Math.max(0, ...this.#items.keys());
  }

  /** The seq up to which parts were shown once `rows` is on the screen; 0 when there is none. */
  get newestPart() {
    return Math.max(0, ...this.items().flatMap((item) => (item.kind === "part" ? [item.seq] : [])));
  }

  items() {
    return [...this.#items.values()];
  }

  /** What the person wrote, newest first. */
  written() {
    return this.#persons()
      .sort((a, b) => b.seq - a.seq)
      .map((item) => item.text);
  }

  /** Whether anything runs that could be stopped. */
  isBusy() {
    const grows = [...this.#lives.values()].some((live) => live.ended === undefined);
    return grows || [...this.#states.values()].some(({ state }) => isBusy(state));
  }

  /** Everything in the order of reading: items, growing answers, messages that wait for their turn. @returns {Row[]} */
  rows() {
    const lives = [...this.#lives.values()].sort((a, b) => a.command - b.command);
    this.#order ??= arrange(
      this.items(),
      (item) => this.#states.get(item.command) ?? item,
      lives.filter((live) => live.ended !== undefined),
    );
    const { before, after, running } = this.#order;
    const growing = lives.filter((live) => live.ended === undefined);
    // One that runs without a word so far is shown as well.
    const silent = running.filter((command) => !this.#lives.has(command)).map((command) => growth(command));
    return [
      ...before,
      ...[...growing, ...silent].map((live) => ({ kind: /** @type {const} */ ("live"), live })),
      ...after,
    ];
  }

  /** An item from the stream. The same seq again replaces what was known of it. @param {Item} item */
  addItem(item) {
    if (item.kind === "person") this.setState(item.command, item.state, undefined);
    this.#put(item);
    this.#cursor = Math.max(this.#cursor, item.seq);
  }

  /** A message that the host has just accepted; its item comes by the stream too, earlier or later. @param {PersonItem} item */
  addAccepted(item) {
    if (!this.#items.has(item.seq)) this.#put(item);
  }

  /**
   * Items of a history call. The first page also moves the cursor; later ones must not, since the stream may still
   * have to bring what lies between.
   * @param {readonly Item[]} page
   * @param {number} asOf what `mark` gave when the history was asked for
   * @param {{ first?: boolean }} [options]
   */
  mergeHistory(page, asOf, options = {}) {
    for (const item of page) {
      if (item.kind === "person") this.#mergeState(item, asOf);
      // Only what is new may end a growing answer: an older part of the same command does not.
      if (!this.#items.has(item.seq) && item.seq > this.#cursor) this.#put(item);
      this.#items.set(item.seq, item);
      if (options.first) this.#cursor = Math.max(this.#cursor, item.seq);
    }
    this.#order = undefined;
  }

  /** @param {number} command @param {string} state @param {number | undefined} position how many go before it */
  setState(command, state, position) {
    this.#setState(command, { state, position, tick: this.mark() });
  }

  /** The whole text of a growing answer. @param {number} command @param {string} text */
  startStream(command, text) {
    if (!isBusy(this.#stateNow(command))) this.setState(command, "running", undefined);
    this.#order = undefined;
    this.#lives.set(command, growth(command, text));
  }

  /** More of a growing answer; ignored when none was begun. @param {number} command @param {string} text */
  appendStream(command, text) {
    const live = this.#lives.get(command);
    if (!live || live.ended !== undefined) return;
    live.text += text;
    live.note = "";
  }

  /** What a running command does now. @param {number} command @param {string} note */
  setNote(command, note) {
    if (OVER.has(this.#stateNow(command))) return;
    const live = this.#lives.get(command) ?? growth(command);
    live.note = note;
    this.#lives.set(command, live);
  }

  /** A stream was opened: growing answers are told anew, so what was known of them is void. */
  streamOpened() {
    for (const live of this.#lives.values()) if (live.ended !== "cancelled") this.#lives.delete(live.command);
    const persons = new Set(this.#persons().map((item) => item.command));
    for (const command of this.#states.keys()) if (!persons.has(command)) this.#states.delete(command);
    this.#order = undefined;
  }

  /** Lets go of an ended answer whose final part never came: it was not meant for a person. @param {number} command */
  dropEnded(command) {
    const ended = this.#lives.get(command)?.ended;
    if (ended === undefined || ended === "cancelled") return;
    this.#lives.delete(command);
    this.#order = undefined;
  }

  /** Lets go of the oldest items. @param {number} keep */
  trim(keep) {
    const seqs = [...this.#items.keys()].sort((a, b) => b - a);
    for (const seq of seqs.slice(keep)) this.#items.delete(seq);
    this.#order = undefined;
  }

  #persons() {
    return this.items().filter((item) => item.kind === "person");
  }

  /** @param {number} command */
  #stateNow(command) {
    return this.#states.get(command)?.state ?? "";
  }

  /** @param {number} command @param {KnownState} known */
  #setState(command, known) {
    const { state } = known;
    this.#order = undefined;
    this.#states.set(command, known);
    const live = this.#lives.get(command);
    if (!live) return;
    if (isBusy(state)) live.ended = undefined;
    else if (OVER.has(state) && live.text !== "") {
      // An end is told again after a reconnect; the answer stays where it ended.
      if (live.ended === undefined) live.place = this.newest;
      live.ended = state;
    } else this.#lives.delete(command);
  }

  /** @param {PersonItem} item @param {number} asOf */
  #mergeState(item, asOf) {
    const known = this.#states.get(item.command);
    if (known && known.tick > asOf) return;
    const position = known?.state === item.state ? known.position : undefined;
    this.#setState(item.command, { state: item.state, position, tick: asOf });
  }

  /** @param {Item} item */
  #put(item) {
    this.#order = undefined;
    this.#items.set(item.seq, item);
    if (item.kind === "person" || item.class === "notice" || item.command === undefined) return;
    const live = this.#lives.get(item.command);
    if (!live) return;
    // A turn may send a part and go on: then its next words grow in an empty bubble.
    live.text = "";
    if (live.ended !== undefined || !isBusy(this.#stateNow(item.command))) this.#lives.delete(item.command);
  }
}

/** @param {number} command @param {string} [text] @returns {Live} */
const growth = (command, text = "") => ({ command, text, note: "", ended: undefined, place: 0 });
