// Owns: the meeting point of timeline, outgoing messages, event stream and screen while the person is signed in.
import { makeConnection } from "./connection.js";
import { STOP, unseen } from "./outgoing.js";
import { makeSender } from "./sender.js";
import { Timeline } from "./timeline.js";

/**
 * @typedef {import("./wire.js").HostEvent} HostEvent
 * @typedef {{
 *   render(timeline: Timeline, outgoing: import("./outgoing.js").Outgoing[], more: boolean): void,
 *   lost(isLost: boolean): void, host(host: import("./wire.js").HostInfo): void, arrived(): void, signedOut(): void,
 *   edit(text: string): void, toEnd(): void, isAtEnd(): boolean, isWatched(): boolean,
 * }} Screen `render` is called once a frame at most; `arrived` tells of a part that is new
 * @typedef {{
 *   api: import("./api.js").Api,
 *   outgoing: import("./outgoing.js").OutgoingStore,
 *   clock: import("./clock.js").Clock,
 *   openSource: (path: string) => EventSource,
 *   onFrame: (draw: () => void) => void,
 *   screen: Screen,
 * }} Deps
 */

// The final part of an answer follows its end within the host's next commits; what has none by then will have none.
const FINAL_PART_WAIT_MS = 5_000;
// A page that is open for weeks stays quick; what is let go comes back by scrolling up.
const TRIM_ABOVE_ITEMS = 500;
const KEEP_ITEMS = 300;

export class Conversation {
  #deps;
  #connection;
  #sender;
  #timeline = new Timeline();
  #more = false;
  #loading = false;
  #drawing = false;
  #acked = 0;
  /** The generation for which the page has begun anew. */
  #restartedFor = -1;

  /** @param {Deps} deps */
  constructor(deps) {
    const { api, outgoing, clock, screen } = deps;
    this.#deps = deps;
    this.#connection = makeConnection({
      open: () => deps.openSource(api.eventsPath(this.#timeline.cursor)),
      check: () => this.#check(),
      clock,
      on: { opened: () => this.#opened(), lost: () => screen.lost(true), event: (event) => this.#take(event) },
    });
    this.#sender = makeSender({
      outgoing,
      send: api.send,
      clock,
      on: {
        accepted: (entry, answer) => this.#accepted(entry, answer),
        changed: () => this.draw(),
        signedOut: () => this.#signedOut(),
      },
    });
  }

  /** Shows the newest page of the history and listens for what comes after it. @param {import("./wire.js").History} page */
  start(page) {
    this.#timeline.mergeHistory(page.items, this.#timeline.mark(), { first: true });
    this.#more = page.more;
    this.#connection.start();
    this.draw();
    void this.#sender.kick();
  }

  /** @param {string} text */
  send(text) {
    this.#deps.outgoing.add(text, this.#timeline.newest);
    this.#deps.screen.toEnd();
    this.draw();
    void this.#sender.kick();
  }

  /** Asks for the running work to be stopped; once, however often it is called. */
  stop() {
    const asked = this.#deps.outgoing.list().some(({ text }) => text === STOP);
    if (this.#timeline.isBusy() && !asked) this.send(STOP);
  }

  /** Loads earlier messages, unless it does so already or there are none. */
  async older() {
    if (this.#loading || !this.#more) return;
    this.#loading = true;
    const mark = this.#timeline.mark();
    const reply = await this.#deps.api.history(this.#timeline.oldest);
    this.#loading = false;
    if (!reply.ok) return;
    this.#timeline.mergeHistory(reply.value.items, mark);
    this.#more = reply.value.more;
    this.draw();
  }

  /** What a button of an unsent message asks for: again, edit or remove. @param {string} act @param {string} key */
  act(act, key) {
    const { outgoing, screen } = this.#deps;
    const entry = outgoing.list().find((one) => one.key === key);
    if (!entry) return;
    if (act === "again") outgoing.mark(key, "retrying");
    else outgoing.remove(key);
    if (act === "edit") screen.edit(entry.text);
    this.draw();
    void this.#sender.kick();
  }

  /** What the person wrote, newest first, each text once. */
  written() {
    const unsent = this.#deps.outgoing.list().map(({ text }) => text);
    return [...new Set([...unsent.reverse(), ...this.#timeline.written()])];
  }

  /** The page is looked at again. @param {boolean} suspect whether the stream may have died meanwhile */
  resume(suspect) {
    this.#connection.resume(suspect);
    this.draw();
  }

  /** Shows the present state with the next frame. */
  draw() {
    if (this.#drawing) return;
    this.#drawing = true;
    this.#deps.onFrame(() => {
      this.#drawing = false;
      const { outgoing, screen } = this.#deps;
      if (screen.isAtEnd() && this.#timeline.size > TRIM_ABOVE_ITEMS) {
        this.#timeline.trim(KEEP_ITEMS);
        this.#more = true;
      }
      const unsent = unseen(outgoing.list(), this.#timeline.items());
      screen.render(this.#timeline, unsent, this.#more);
      void this.#ack();
    });
  }

  /** A part counts as shown when it is on a screen that is looked at. */
  async #ack() {
    const seq = this.#timeline.newestPart;
    const before = this.#acked;
    if (seq <= before || !this.#deps.screen.isWatched()) return;
    this.#acked = seq;
    const reply = await this.#deps.api.ack(seq);
    // Told again after a later frame.
    if (!reply.ok) this.#acked = Math.min(this.#acked, before);
  }

  #signedOut() {
    this.#connection.stop();
    this.#deps.screen.signedOut();
  }

  /** @returns {Promise<"open" | "later" | "stop">} */
  async #check() {
    const reply = await this.#deps.api.history();
    if (reply.ok) return "open";
    if (reply.status !== 401) return "later";
    this.#signedOut();
    return "stop";
  }

  #opened() {
    this.#deps.screen.lost(false);
    this.#timeline.streamOpened();
    this.draw();
    void this.#refresh();
    void this.#sender.kick();
  }

  /** States that changed while nobody listened come with the newest page of the history. */
  async #refresh() {
    const mark = this.#timeline.mark();
    const reply = await this.#deps.api.history();
    if (!reply.ok) return;
    this.#timeline.mergeHistory(reply.value.items, mark);
    this.draw();
  }

  /** @param {HostEvent} event */
  #take(event) {
    const timeline = this.#timeline;
    switch (event.type) {
      case "item":
        if (event.item.kind === "part" && event.item.seq > timeline.newest) this.#deps.screen.arrived();
        timeline.addItem(event.item);
        break;
      case "state":
        timeline.setState(event.command, event.state, event.position);
        this.#deps.clock.after(FINAL_PART_WAIT_MS, () => {
          timeline.dropEnded(event.command);
          this.draw();
        });
        break;
      case "stream":
        timeline.startStream(event.command, event.text);
        break;
      case "delta":
        timeline.appendStream(event.command, event.text);
        break;
      case "note":
        timeline.setNote(event.command, event.note);
        break;
      case "host":
        this.#deps.screen.host(event.host);
        void this.#compare(event.host);
        break;
    }
    this.draw();
  }

  /**
   * A host that has less than this page has other data, from a backup for example: the page begins anew, once for each
   * life of the host.
   * @param {import("./wire.js").HostInfo} host
   */
  async #compare(host) {
    if (host.latest >= this.#timeline.newest || this.#restartedFor === host.generation) return;
    this.#restartedFor = host.generation;
    const reply = await this.#deps.api.history();
    if (!reply.ok) return;
    this.#timeline = new Timeline();
    this.#acked = 0;
    this.start(reply.value);
  }

  /** @param {import("./outgoing.js").Outgoing} entry @param {import("./wire.js").Accepted} answer */
  #accepted(entry, { seq, command, duplicate }) {
    const at = new Date(entry.at).toISOString();
    // One that was accepted long ago may belong to a page that is not loaded.
    const isLoaded = seq > (this.#timeline.oldest ?? 0);
    if (isLoaded) this.#timeline.addAccepted({ seq, kind: "person", command, text: entry.text, at, state: "queued" });
    if (duplicate) void this.#refresh();
    this.draw();
  }
}
