// Owns: the conversation on the screen: one element a row, kept while its row lives; where the reader stands in it.
// Shows what it is given and decides nothing about it.
import { outgoingPlan, rowPlan, withDays } from "./rows.js";

/** @typedef {import("./rows.js").Plan} Plan @typedef {import("./rows.js").Shown} Shown */

// Within this of the end the reader counts as being at the end.
const NEAR_PX = 60;

/**
 * @param {{
 *   scroller: HTMLElement, log: HTMLElement, jump: HTMLElement,
 *   now: () => number,
 *   on: { nearTop(): void, act(act: string, key: string): void },
 * }} deps
 */
export function makeLogView({ scroller, log, jump, now, on }) {
  /** @type {Map<string, Shown>} */
  const shown = new Map();
  let stuck = true;
  let lastTop = 0;
  let newestShown = 0;
  let newestSeen = 0;

  const toEnd = () => {
    scroller.scrollTop = scroller.scrollHeight;
    lastTop = scroller.scrollTop;
    stuck = true;
    newestSeen = newestShown;
    jump.hidden = true;
  };

  // So that arrow and page keys can move it.
  scroller.tabIndex = 0;
  scroller.addEventListener("scroll", () => {
    const top = scroller.scrollTop;
    if (scroller.scrollHeight - top - scroller.clientHeight < NEAR_PX) {
      stuck = true;
      jump.hidden = true;
      newestSeen = newestShown;
    } else if (top < lastTop) stuck = false;
    lastTop = top;
    if (top < scroller.clientHeight) on.nearTop();
  });
  // A keyboard that opens, a turned phone and a growing input change the height without a scroll.
  new ResizeObserver(() => {
    if (stuck) toEnd();
  }).observe(scroller);
  jump.addEventListener("click", toEnd);
  log.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    if (button?.classList.contains("copy")) void copyCode(button);
    else if (button) on.act(button.dataset["act"] ?? "", button.dataset["key"] ?? "");
  });

  /** The first message that the reader sees, and where. A day's line is none: it moves up when earlier ones come. */
  function anchor() {
    const edge = scroller.getBoundingClientRect().top;
    for (const row of log.children) {
      const box = row.getBoundingClientRect();
      if (box.bottom > edge && !row.classList.contains("day")) return { row, top: box.top };
    }
    return undefined;
  }

  /** @param {Plan[]} plans */
  function place(plans) {
    const names = new Set(plans.map((plan) => plan.name));
    for (const [name, { root }] of shown) {
      if (names.has(name)) continue;
      root.remove();
      shown.delete(name);
    }
    let next = log.firstChild;
    for (const plan of plans) {
      const known = shown.get(plan.name) ?? plan.make();
      shown.set(plan.name, known);
      plan.update(known);
      if (known.root === next) next = next.nextSibling;
      else log.insertBefore(known.root, next);
    }
  }

  return {
    isStuck: () => stuck,
    toEnd,
    /**
     * @param {import("./timeline.js").Row[]} rows
     * @param {import("./outgoing.js").Outgoing[]} outgoing what the host has not confirmed
     */
    render(rows, outgoing) {
      const plans = withDays([...rows.map(rowPlan), ...outgoing.map(outgoingPlan)], now());
      const before = stuck ? undefined : anchor();
      place(plans);
      if (stuck) toEnd();
      else if (before?.row.isConnected) scroller.scrollTop += before.row.getBoundingClientRect().top - before.top;
      lastTop = scroller.scrollTop;
      newestShown = Math.max(0, ...plans.map((plan) => plan.seq));
      if (stuck) newestSeen = newestShown;
      const grows = rows.some((row) => row.kind === "live" && row.live.text !== "");
      jump.hidden = stuck || !(grows || newestShown > newestSeen);
    },
  };
}

/** @param {HTMLButtonElement} button */
async function copyCode(button) {
  const code = button.closest(".code")?.querySelector("pre");
  if (!code) return;
  const done = await copyText(code);
  button.textContent = done ? "Copied" : "Press Ctrl+C";
  const reset = () => {
    button.textContent = "Copy";
  };
  button.addEventListener("blur", reset, { once: true });
  button.addEventListener("pointerleave", reset, { once: true });
}

/** Without https the browser has no clipboard for pages: then the text is selected and copied the old way. @param {HTMLElement} node */
async function copyText(node) {
  try {
    await navigator.clipboard.writeText(node.textContent ?? "");
    return true;
  } catch {
    getSelection()?.selectAllChildren(node);
    return document.execCommand("copy");
  }
}
