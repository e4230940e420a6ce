// Owns: the list of chat commands that opens while the person types one.
import { el } from "./nodes.js";

/** @typedef {import("./wire.js").ChatCommand} ChatCommand */

/**
 * @param {{ list: HTMLElement, input: HTMLTextAreaElement, take: (command: ChatCommand) => void }} deps
 *   `take` is called with the command that was chosen
 */
export function makeHints({ list, input, take }) {
  /** @type {ChatCommand[]} */
  let offered = [];
  let chosen = -1;

  /** @param {number} index */
  function choose(index) {
    chosen = index;
    for (const [at, hint] of [...list.children].entries()) hint.setAttribute("aria-selected", String(at === index));
    const active = list.children[index];
    if (active) input.setAttribute("aria-activedescendant", active.id);
    else input.removeAttribute("aria-activedescendant");
    active?.scrollIntoView({ block: "nearest" });
  }

  /** @param {number} index */
  function takeAt(index) {
    const command = offered[index];
    if (command) take(command);
  }

  // Before the field loses its focus, so that the list is still there.
  list.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    const hint = event.target instanceof Element ? event.target.closest("[role=option]") : null;
    if (hint) takeAt([...list.children].indexOf(hint));
  });

  /** @param {ChatCommand[]} commands shown from now on; an empty list closes it */
  function offer(commands) {
    offered = commands;
    list.hidden = commands.length === 0;
    list.replaceChildren(...commands.map(hintNode));
    choose(-1);
  }

  /** @type {Record<string, () => void>} */
  const keys = {
    ArrowDown: () => choose((chosen + 1) % offered.length),
    ArrowUp: () => choose(chosen <= 0 ? offered.length - 1 : chosen - 1),
    Tab: () => takeAt(Math.max(0, chosen)),
    Enter: () => takeAt(chosen),
    Escape: () => offer([]),
  };

  return {
    offer,
    /** @param {KeyboardEvent} event @returns {boolean} whether the list used the key */
    key(event) {
      const act = keys[event.key];
      // Enter without a choice sends what was typed.
      if (!act || list.hidden || event.shiftKey || (event.key === "Enter" && chosen < 0)) return false;
      act();
      return true;
    },
  };
}

/** @param {ChatCommand} command @param {number} index */
function hintNode({ name, usage, about }, index) {
  const words = usage.startsWith("/") ? usage : `/${usage || name}`;
  const hint = el("div", "", el("code", "", words), el("span", "", about));
  hint.id = `hint-${index}`;
  hint.setAttribute("role", "option");
  return hint;
}
