// Owns: what the person wrote and the host has not confirmed. Kept in the browser's storage, one entry a message, so
// that a reload, a second tab or a restart of the host loses nothing. A message keeps its key for life, so the host,
// which accepts a key once, never takes it twice.
import { fieldsOf, numberOf, parseJson, textOf } from "./wire.js";

/**
 * @typedef {{ key: string, text: string, at: number, after: number }} Entry
 *   `after` is the newest seq that the page knew when it was written; infinite when that is not known
 * @typedef {{ state: "sending" | "retrying" | "refused" | "held", message: string }} Status
 * @typedef {Entry & Status} Outgoing
 * @typedef {Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">} Store
 */

// A message that was written yesterday is not sent by merely opening the page: the person decides.
const HOLD_AFTER_MS = 24 * 60 * 60 * 1000;

export const STOP = "/stop";

/**
 * @param {{ store: Store, chat: string, now: () => number, random: () => string }} deps
 *   `random` gives at least 64 bits of randomness as text
 */
export function makeOutgoing({ store, chat, now, random }) {
  const prefix = `laneway.out.${chat}.`;
  /** @type {Map<string, Entry>} entries that the storage refused: they live as long as the page */
  const unstored = new Map();
  /** @type {Map<string, Status>} */
  const statuses = new Map();
  let count = 0;

  /** @returns {Entry[]} */
  function entries() {
    const found = [...unstored.values()];
    for (let index = 0; index < store.length; index += 1) {
      const name = store.key(index);
      if (!name?.startsWith(prefix)) continue;
      const raw = fieldsOf(parseJson(store.getItem(name) ?? ""));
      const text = textOf(raw["text"]);
      if (text === "") continue;
      const after = numberOf(raw["after"]) ?? Number.POSITIVE_INFINITY;
      found.push({ key: name.slice(prefix.length), text, at: numberOf(raw["at"]) ?? 0, after });
    }
    return found.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** @param {Entry} entry @returns {Outgoing} */
  function withStatus(entry) {
    const old = now() - entry.at > HOLD_AFTER_MS;
    const status =
      statuses.get(entry.key) ?? (old ? { state: "held", message: "" } : { state: "sending", message: "" });
    return { ...entry, ...status };
  }

  return {
    /** Keeps a message until `remove`. @param {string} text @param {number} after the newest seq that the page knows @returns {Entry} */
    add(text, after) {
      const at = now();
      // Keys sort in the order of writing: the time, then a count within this page.
      count += 1;
      const key = `${at.toString(36).padStart(9, "0")}-${count.toString(36).padStart(4, "0")}-${random()}`;
      const entry = { key, text, at, after };
      try {
        store.setItem(prefix + key, JSON.stringify({ text, at, after }));
      } catch {
        unstored.set(key, entry);
      }
      return entry;
    },

    /** Everything not confirmed, oldest first. @returns {Outgoing[]} */
    list: () => entries().map(withStatus),

    /** What to send next: a stop before all else, then in the order of writing. @returns {Outgoing | undefined} */
    next() {
      const open = entries()
        .map(withStatus)
        .filter(({ state }) => state === "sending" || state === "retrying");
      return open.find(({ text }) => text === STOP) ?? open[0];
    },

    /** @param {string} key @param {Status["state"]} state @param {string} [message] */
    mark: (key, state, message = "") => void statuses.set(key, { state, message }),

    /** The host confirmed it, or the person gave it up. @param {string} key */
    remove(key) {
      unstored.delete(key);
      statuses.delete(key);
      store.removeItem(prefix + key);
    },

    /** Whether a change of this storage name concerns this list. @param {string | null} name */
    isMine: (name) => name === null || name.startsWith(prefix),
  };
}

/** @typedef {ReturnType<typeof makeOutgoing>} OutgoingStore */

/**
 * Leaves out what has already come back as a message while the answer to its sending is still under way, to this tab,
 * to another one, or to the page before a reload.
 * @param {readonly Outgoing[]} list
 * @param {Iterable<import("./wire.js").Item>} items
 * @returns {Outgoing[]}
 */
export function unseen(list, items) {
  if (list.length === 0) return [];
  const persons = [...items].filter((item) => item.kind === "person");
  /** @type {Set<number>} */
  const taken = new Set();
  return list.filter(({ text, after, state }) => {
    // What waits for the person's word is shown until there is one.
    if (state === "held" || state === "refused") return true;
    const match = persons.find((item) => item.seq > after && item.text === text && !taken.has(item.seq));
    if (match) taken.add(match.seq);
    return !match;
  });
}

/** The browser's storage, or one that lasts as long as the page where the browser refuses. @param {() => Storage} open @returns {Store} */
export function storageOr(open) {
  try {
    const storage = open();
    storage.setItem("laneway.probe", "1");
    storage.removeItem("laneway.probe");
    return storage;
  } catch {
    /** @type {Map<string, string>} */
    const map = new Map();
    return {
      get length() {
        return map.size;
      },
      key: (index) => [...map.keys()][index] ?? null,
      getItem: (name) => map.get(name) ?? null,
      setItem: (name, value) => void map.set(name, value),
      removeItem: (name) => void map.delete(name),
    };
  }
}
