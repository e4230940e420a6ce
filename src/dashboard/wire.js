// Owns: the shapes that the host sends, and reading them. Pure. Never trusts a field it has not looked at.

/**
 * @typedef {{ seq: number, kind: "person", command: number, text: string, at: string, state: string }} PersonItem
 * @typedef {{ seq: number, kind: "part", command: number | undefined, text: string, at: string, state: string,
 *   class: "answer" | "notice" | "failure" }} PartItem
 * @typedef {PersonItem | PartItem} Item
 * @typedef {{ items: Item[], more: boolean }} History
 * @typedef {{ command: number, seq: number, duplicate: boolean }} Accepted
 * @typedef {{ name: string, usage: string, about: string }} ChatCommand
 * @typedef {{ version: string, agent: string, backends: string[], generation: number, latest: number }} HostInfo
 * @typedef {{ type: "item", item: Item }
 *   | { type: "state", command: number, state: string, position: number | undefined }
 *   | { type: "stream" | "delta", command: number, text: string }
 *   | { type: "note", command: number, note: string }
 *   | { type: "host", host: HostInfo }} HostEvent
 */

/** The names under which the host sends server-sent events. */
export const EVENT_NAMES = /** @type {const} */ (["item", "state", "stream", "delta", "note", "host"]);

/** @param {unknown} value @returns {Record<string, unknown>} */
export function fieldsOf(value) {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(Object.entries(value));
}

/** @param {unknown} value */
export const textOf = (value) => (typeof value === "string" ? value : "");

/** @param {unknown} value @returns {number | undefined} */
export const numberOf = (value) => (typeof value === "number" && Number.isFinite(value) ? value : undefined);

/** @param {unknown} value @returns {unknown[]} */
const listOf = (value) => (Array.isArray(value) ? value : []);

/** The JSON value of a text, or undefined when it is none. @param {string} text @returns {unknown} */
export function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** @param {unknown} value @returns {Item | undefined} undefined when it has no usable seq or kind */
export function readItem(value) {
  const raw = fieldsOf(value);
  const seq = numberOf(raw["seq"]);
  const command = numberOf(raw["command"]);
  if (seq === undefined) return undefined;
  const common = { seq, text: textOf(raw["text"]), at: textOf(raw["at"]), state: textOf(raw["state"]) };
  if (raw["kind"] === "person" && command !== undefined) return { ...common, kind: "person", command };
  if (raw["kind"] !== "part") return undefined;
  const kind = raw["class"];
  return { ...common, kind: "part", command, class: kind === "notice" || kind === "failure" ? kind : "answer" };
}

/** @param {unknown} value @returns {History} */
export function readHistory(value) {
  const raw = fieldsOf(value);
  const items = listOf(raw["items"])
    .map(readItem)
    .filter((item) => item !== undefined);
  return { items, more: raw["more"] === true };
}

/** @param {unknown} value @returns {Accepted | undefined} */
export function readAccepted(value) {
  const raw = fieldsOf(value);
  const command = numberOf(raw["command"]);
  const seq = numberOf(raw["seq"]);
  if (command === undefined || seq === undefined) return undefined;
  return { command, seq, duplicate: raw["duplicate"] === true };
}

/** @param {unknown} value @returns {ChatCommand[]} */
export function readCommands(value) {
  return listOf(fieldsOf(value)["commands"])
    .map((entry) => fieldsOf(entry))
    .map((raw) => ({ name: textOf(raw["name"]), usage: textOf(raw["usage"]), about: textOf(raw["about"]) }))
    .filter((command) => command.name !== "");
}

/** @param {unknown} value @returns {HostInfo} */
function readHost(value) {
  const raw = fieldsOf(value);
  return {
    version: textOf(raw["version"]),
    agent: textOf(raw["agent"]),
    backends: listOf(raw["backends"]).map(textOf).filter(Boolean),
    generation: numberOf(raw["generation"]) ?? 0,
    latest: numberOf(raw["latest"]) ?? Number.POSITIVE_INFINITY,
  };
}

/**
 * One server-sent event as data, or undefined when this page does not know it (a newer host may send more).
 * @param {string} name
 * @param {unknown} value
 * @returns {HostEvent | undefined}
 */
export function readEvent(name, value) {
  if (name === "host") return { type: "host", host: readHost(value) };
  if (name === "item") {
    const item = readItem(value);
    return item && { type: "item", item };
  }
  const raw = fieldsOf(value);
  const command = numberOf(raw["command"]);
  if (command === undefined) return undefined;
  switch (name) {
    case "state":
      return { type: "state", command, state: textOf(raw["state"]), position: numberOf(raw["position"]) };
    case "stream":
    case "delta":
      return { type: name, command, text: textOf(raw["text"]) };
    case "note":
      return { type: "note", command, note: textOf(raw["note"]) };
    default:
      return undefined;
  }
}
