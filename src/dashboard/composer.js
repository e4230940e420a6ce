// Owns: the field in which the person writes: its keys, its height, its draft, what was written before.
import { makeHints } from "./hints.js";

/** @typedef {import("./wire.js").ChatCommand} ChatCommand */

const DRAFT = "laneway.draft";

/**
 * @param {{
 *   form: HTMLFormElement, input: HTMLTextAreaElement, button: HTMLButtonElement, list: HTMLElement,
 *   drafts: import("./outgoing.js").Store,
 *   written: () => string[],
 *   send(text: string): void,
 * }} deps `list` is where commands are offered; `written` tells what the person wrote, newest first
 */
export function makeComposer({ form, input, button, list, drafts, written, send }) {
  /** @type {ChatCommand[]} */
  let commands = [];
  /** How far back ArrowUp has gone; -1: not at all. */
  let back = -1;
  const hints = makeHints({ list, input, take: ({ name }) => setText(`/${name} `) });

  /** @param {string} text */
  function setText(text) {
    input.value = text;
    input.setSelectionRange(text.length, text.length);
    changed();
  }

  function changed() {
    button.disabled = input.value.trim() === "";
    keepDraft(drafts, input.value);
    fitHeight(input);
    const typed = /^\/(\S*)$/.exec(input.value)?.[1]?.toLowerCase();
    hints.offer(typed === undefined ? [] : commands.filter(({ name }) => name.toLowerCase().startsWith(typed)));
  }

  function submit() {
    // Line breaks around a text are slips of the finger; inside it they are the person's.
    const text = input.value.replace(/^\s*\n/, "").trimEnd();
    if (text === "") return;
    back = -1;
    setText("");
    send(text);
  }

  /** @param {1 | -1} step @returns {boolean} whether there was something to show */
  function recall(step) {
    const texts = written();
    const untouched = input.value === "" || (back >= 0 && input.value === texts[back]);
    const next = back + step;
    if (!untouched || next < -1 || next >= texts.length) return false;
    back = next;
    setText(texts[next] ?? "");
    hints.offer([]);
    return true;
  }

  /** @param {KeyboardEvent} event @returns {boolean} whether the field used the key itself */
  function key(event) {
    // While a word is composed (Japanese, Chinese, accents) keys belong to the input method; 229 is Safari's last one.
    if (event.isComposing || event.keyCode === 229 || event.ctrlKey || event.metaKey || event.altKey) return false;
    if (hints.key(event)) return true;
    if (event.key === "ArrowUp") return recall(1);
    if (event.key === "ArrowDown") return recall(-1);
    if (event.key !== "Enter" || event.shiftKey) return false;
    submit();
    return true;
  }

  input.addEventListener("keydown", (event) => {
    if (key(event)) event.preventDefault();
  });
  input.addEventListener("input", () => {
    back = -1;
    changed();
  });
  input.addEventListener("blur", () => hints.offer([]));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
    input.focus();
  });
  setText(drafts.getItem(DRAFT) ?? "");

  return {
    /** @param {ChatCommand[]} all what is offered after a slash */
    setCommands(all) {
      commands = all;
    },
    /** Puts a text before what is in the field. @param {string} text */
    edit(text) {
      setText(input.value === "" ? text : `${text}\n${input.value}`);
      input.focus();
    },
    focus: () => input.focus(),
  };
}

/** A draft that the storage refuses is only lost by a reload. @param {import("./outgoing.js").Store} drafts @param {string} text */
function keepDraft(drafts, text) {
  try {
    if (text === "") drafts.removeItem(DRAFT);
    else drafts.setItem(DRAFT, text);
  } catch {
    drafts.removeItem(DRAFT);
  }
}

/** For browsers that do not let a field grow by style alone. @param {HTMLTextAreaElement} input */
function fitHeight(input) {
  if (CSS.supports("field-sizing", "content")) return;
  input.style.height = "auto";
  input.style.height = `${input.scrollHeight}px`;
}
