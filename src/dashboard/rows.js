// Owns: how one row of the conversation looks: a message, a part, a growing answer, a message not sent yet, a day.
import { el, showMarkdown } from "./nodes.js";
import { wordsOf } from "./words.js";

/**
 * @typedef {{ name: string, at: string, seq: number, make(): Shown, update(shown: Shown): void }} Plan
 *   one row to be: `name` is its identity, `seq` 0 when the host has not given it one
 * @typedef {{ root: HTMLElement, body: HTMLElement, meta: HTMLElement, marks: string[], last: string }} Shown
 *   `marks` belong to showMarkdown, `last` to whenChanged
 * @typedef {import("./timeline.js").Row} Row
 * @typedef {import("./outgoing.js").Outgoing} Outgoing
 */

/** Adds a line where a new day begins. @param {Plan[]} plans @param {number} now @returns {Plan[]} */
export function withDays(plans, now) {
  /** @type {Plan[]} */
  const out = [];
  let last = "";
  for (const plan of plans) {
    const date = new Date(plan.at);
    const day = Number.isNaN(date.getTime()) ? "" : dayOf(date);
    if (day > last) {
      last = day;
      const label = day === dayOf(new Date(now)) ? "Today" : date.toLocaleDateString(undefined, { dateStyle: "full" });
      out.push({
        name: `day ${day}`,
        at: "",
        seq: 0,
        make: () => shell("day"),
        update: (shown) =>
          whenChanged(shown, label, () => {
            shown.body.textContent = label;
          }),
      });
    }
    out.push(plan);
  }
  return out;
}

/** A day of the reader's own time, sortable. @param {Date} date */
const dayOf = (date) =>
  `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")}`;

/** @param {string} className @param {string} [label] @returns {Shown} */
function shell(className, label) {
  const body = el("div", "body");
  const meta = el("div", "meta");
  const root = el("article", `row ${className}`, body, meta);
  if (label) root.setAttribute("aria-label", label);
  return { root, body, meta, marks: [], last: "" };
}

/** Does `work` only when `signature` differs from the last one. @param {Shown} shown @param {string} signature @param {() => void} work */
function whenChanged(shown, signature, work) {
  if (shown.last === signature) return;
  shown.last = signature;
  work();
}

/** @param {Row} row @returns {Plan} */
export function rowPlan(row) {
  if (row.kind === "live") return livePlan(row.live);
  const { item, state, position } = row;
  const person = item.kind === "person";
  return {
    name: `item ${item.seq}`,
    at: item.at,
    seq: item.seq,
    make() {
      const made = shell(person ? "person" : item.class, person ? "You" : "Laneway");
      made.root.dataset["seq"] = String(item.seq);
      if (item.command !== undefined) made.root.dataset["command"] = String(item.command);
      if (!person) made.body.classList.add("text");
      return made;
    },
    update: (shown) =>
      whenChanged(shown, `${state} ${position} ${item.text}`, () => {
        shown.root.dataset["state"] = state;
        if (person) shown.body.textContent = item.text;
        else shown.marks = showMarkdown(shown.body, item.text, shown.marks);
        shown.root.classList.toggle("waits", person && state === "queued");
        shown.root.classList.toggle("bad", person && (state === "failed" || state === "dead"));
        shown.meta.replaceChildren(...(person ? stateNode(wordsOf(state, position)) : []), timeNode(item.at));
      }),
  };
}

/** @param {import("./timeline.js").Live} live @returns {Plan} */
function livePlan(live) {
  return {
    name: `live ${live.command}`,
    at: "",
    seq: 0,
    make() {
      const made = shell("live answer", "Laneway is answering");
      // Read out once, as the final part, not word by word.
      made.root.setAttribute("aria-live", "off");
      made.root.setAttribute("aria-busy", "true");
      made.root.dataset["command"] = String(live.command);
      return made;
    },
    update: (shown) =>
      whenChanged(shown, `${live.ended} ${live.note}\n${live.text}`, () => {
        shown.body.classList.toggle("text", live.text !== "");
        if (live.text === "") {
          shown.marks = [];
          shown.body.replaceChildren(el("span", "dots", el("i"), el("i"), el("i")));
        } else {
          if (shown.marks.length === 0) shown.body.replaceChildren();
          shown.marks = showMarkdown(shown.body, live.text, shown.marks);
        }
        const words = live.ended === "cancelled" ? "Stopped here" : live.note;
        shown.meta.replaceChildren(...stateNode(words));
        shown.root.setAttribute("aria-busy", String(live.ended === undefined));
      }),
  };
}

/** @param {Outgoing} entry @returns {Plan} */
export function outgoingPlan(entry) {
  const act = (/** @type {string} */ name, /** @type {string} */ words) => {
    const button = el("button", "", words);
    button.type = "button";
    button.dataset["act"] = name;
    button.dataset["key"] = entry.key;
    return button;
  };
  const at = new Date(entry.at).toISOString();
  return {
    name: `out ${entry.key}`,
    at,
    seq: 0,
    make: () => shell("person waits", "You, not sent yet"),
    update: (shown) =>
      whenChanged(shown, `${entry.state} ${entry.message}`, () => {
        shown.root.dataset["state"] = entry.state;
        shown.body.textContent = entry.text;
        shown.root.classList.toggle("bad", entry.state === "refused");
        const buttons = {
          retrying: [act("remove", "Do not send")],
          refused: [act("edit", "Edit"), act("remove", "Remove")],
          held: [act("again", "Send now"), act("remove", "Remove")],
        };
        const words = {
          sending: "Sending",
          retrying: `Sending, trying again. ${entry.message}`,
          refused: `Not sent. ${entry.message}`,
          held: "Not sent yet.",
        };
        shown.meta.replaceChildren(
          ...stateNode(words[entry.state]),
          ...(entry.state === "sending" ? [timeNode(at)] : buttons[entry.state]),
        );
      }),
  };
}

/** @param {string} words */
const stateNode = (words) => (words === "" ? [] : [el("span", "state", words)]);

/** @param {string} at */
function timeNode(at) {
  const time = el("time");
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return time;
  time.dateTime = at;
  time.title = date.toLocaleString();
  time.textContent = date.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
  return time;
}
