// Owns: the start of the page: finds its elements and joins the parts.
import { makeApi } from "./api.js";
import { browserClock } from "./clock.js";
import { makeComposer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { makeEntry } from "./entry.js";
import { makeLogView } from "./log-view.js";
import { showMarkdown } from "./nodes.js";
import { makeOutgoing, STOP, storageOr } from "./outgoing.js";

const CHAT = "main";
// A stream that nobody looked at for this long may have died without a word, as phones let them.
const SUSPECT_AFTER_MS = 60_000;

/**
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} type
 * @returns {T}
 */
function byId(id, type) {
  const found = document.getElementById(id);
  if (found instanceof type) return found;
  throw new Error(`The page has no ${type.name} with the id ${id}.`);
}

/** The elements of the page. */
function findParts() {
  return {
    gate: byId("gate", HTMLElement),
    gateText: byId("gate-text", HTMLElement),
    gateRetry: byId("gate-retry", HTMLButtonElement),
    chat: byId("chat", HTMLElement),
    host: byId("host", HTMLElement),
    banner: byId("banner", HTMLElement),
    update: byId("update", HTMLElement),
    reload: byId("reload", HTMLButtonElement),
    scroller: byId("scroller", HTMLElement),
    older: byId("older", HTMLButtonElement),
    empty: byId("empty", HTMLElement),
    log: byId("log", HTMLElement),
    jump: byId("jump", HTMLButtonElement),
    list: byId("hints", HTMLElement),
    form: byId("composer", HTMLFormElement),
    input: byId("input", HTMLTextAreaElement),
    stop: byId("stop", HTMLButtonElement),
    button: byId("send", HTMLButtonElement),
  };
}

/** 128 random bits; crypto.randomUUID would need https. */
function randomText() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function main() {
  const parts = findParts();
  const clock = browserClock();
  const api = makeApi({ fetch: (...args) => fetch(...args), chat: CHAT });
  const outgoing = makeOutgoing({
    store: storageOr(() => localStorage),
    chat: CHAT,
    now: clock.now,
    random: randomText,
  });
  const view = makeLogView({
    ...parts,
    now: clock.now,
    on: { nearTop: () => void conversation.older(), act: (act, key) => conversation.act(act, key) },
  });
  const conversation = new Conversation({
    api,
    outgoing,
    clock,
    openSource: (path) => new EventSource(path),
    onFrame: (show) => void requestAnimationFrame(show),
    screen: {
      ...makeFrame(parts),
      render(timeline, unsent, more) {
        view.render(timeline.rows(), unsent);
        parts.stop.hidden = !timeline.isBusy();
        parts.stop.disabled = unsent.some(({ text }) => text === STOP);
        parts.older.hidden = !more;
        parts.empty.hidden = parts.log.childElementCount > 0;
        parts.log.removeAttribute("aria-busy");
      },
      toEnd: view.toEnd,
      isAtEnd: view.isStuck,
      signedOut: () => entry.signedOut(),
      edit: (text) => composer.edit(text),
    },
  });
  const composer = makeComposer({
    ...parts,
    drafts: storageOr(() => sessionStorage),
    written: () => conversation.written(),
    send: (text) => conversation.send(text),
  });
  const entry = makeEntry({
    api,
    clock,
    address: {
      code: () => location.hash.slice(1),
      clear: () => history.replaceState(null, "", location.pathname + location.search),
    },
    on: {
      open(page) {
        parts.gate.hidden = true;
        parts.chat.hidden = false;
        // Not read out: it is the past.
        parts.log.setAttribute("aria-busy", "true");
        conversation.start(page);
        void api.commands().then((reply) => reply.ok && composer.setCommands(reply.value));
        // On a phone the focus would open the keyboard over the conversation.
        if (matchMedia("(pointer: fine)").matches) composer.focus();
      },
      shut(text) {
        showMarkdown(parts.gateText, text, []);
        parts.chat.hidden = true;
        parts.gate.hidden = false;
      },
    },
  });
  listen({ parts, conversation, entry, outgoing, clock });
  void entry.enter();
}

/** What surrounds the conversation: the lines at the top and the page's title. @param {ReturnType<typeof findParts>} parts */
function makeFrame(parts) {
  let version = "";
  let unread = 0;
  const setUnread = (/** @type {number} */ count) => {
    unread = count;
    document.title = count === 0 ? "Laneway" : `(${count}) Laneway`;
  };
  document.addEventListener("visibilitychange", () => setUnread(0));
  return {
    isWatched: () => !document.hidden && !parts.chat.hidden,
    arrived() {
      if (document.hidden) setUnread(unread + 1);
    },
    /** @param {boolean} isLost */
    lost(isLost) {
      parts.banner.textContent = isLost ? "Connection lost, trying again" : "";
      parts.banner.hidden = !isLost;
    },
    /** @param {import("./wire.js").HostInfo} host */
    host(host) {
      parts.host.textContent = [host.agent, host.backends.join(", ")].filter(Boolean).join(" · ");
      parts.host.title = host.version && `Laneway ${host.version}`;
      version ||= host.version;
      parts.update.hidden = host.version === version;
    },
  };
}

/**
 * The buttons and the events of the window.
 * @param {{
 *   parts: ReturnType<typeof findParts>, conversation: Conversation, entry: ReturnType<typeof makeEntry>,
 *   outgoing: import("./outgoing.js").OutgoingStore, clock: import("./clock.js").Clock,
 * }} deps
 */
function listen({ parts, conversation, entry, outgoing, clock }) {
  let hiddenAt = Number.POSITIVE_INFINITY;

  /** @param {boolean} suspect */
  const back = (suspect) => {
    if (parts.chat.hidden) void entry.enter();
    else conversation.resume(suspect);
  };
  parts.stop.addEventListener("click", () => conversation.stop());
  parts.older.addEventListener("click", () => void conversation.older());
  parts.gateRetry.addEventListener("click", () => void entry.enter());
  parts.reload.addEventListener("click", () => location.reload());
  document.addEventListener("keydown", (event) => {
    // One that closed the list of commands, or ended a composed word, is not meant for the work.
    if (event.key === "Escape" && !event.isComposing && !event.defaultPrevented) conversation.stop();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) hiddenAt = clock.now();
    else back(clock.now() - hiddenAt > SUSPECT_AFTER_MS);
  });
  window.addEventListener("online", () => back(true));
  window.addEventListener("pageshow", (event) => event.persisted && back(true));
  window.addEventListener("hashchange", () => void entry.enter());
  window.addEventListener("storage", (event) => {
    // Another tab wrote a message, or had one confirmed.
    if (outgoing.isMine(event.key)) conversation.draw();
  });
  window.visualViewport?.addEventListener("resize", fitToKeyboard);
}

/** Phones lay their keyboard over the page without telling the layout. */
function fitToKeyboard() {
  const seen = window.visualViewport;
  if (seen?.scale !== 1) return;
  document.documentElement.style.setProperty("--seen-height", `${Math.round(seen.height)}px`);
  window.scrollTo(0, 0);
}

main();
