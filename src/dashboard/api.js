// Owns: the calls to the host. Only ever talks to paths of its own origin, whatever the page's address says (NET-4).
import { fieldsOf, numberOf, parseJson, readAccepted, readCommands, readHistory, textOf } from "./wire.js";

/**
 * @template T
 * @typedef {{ ok: true, value: T } | { ok: false, status: number, message: string, retryAfterMs: number | undefined }} Reply
 *   `status` 0 means that no answer came: the call may or may not have had its effect.
 */

// Longer than any verb of the host takes when it is well; a lost connection must not hang the page.
const CALL_TIMEOUT_MS = 20_000;

/**
 * @param {{ fetch: typeof fetch, chat: string }} deps
 */
export function makeApi({ fetch, chat }) {
  /**
   * @template T
   * @param {"login" | "history" | "ack" | "send" | "commands"} verb
   * @param {object} body
   * @param {(value: unknown) => T | undefined} read
   * @returns {Promise<Reply<T>>}
   */
  async function call(verb, body, read) {
    try {
      const response = await fetch(`/api/${verb}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
        credentials: "same-origin",
        cache: "no-store",
        redirect: "error",
        signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      });
      const value = parseJson(await response.text());
      if (!response.ok) return refusal(response, value);
      const result = read(value);
      if (result !== undefined) return { ok: true, value: result };
      return { ok: false, status: 0, message: "The host's answer was not understood.", retryAfterMs: undefined };
    } catch {
      return { ok: false, status: 0, message: "The host cannot be reached.", retryAfterMs: undefined };
    }
  }

  return {
    /** Trades the one-time code for a cookie; 401 when it was used or has expired. @param {string} code */
    login: (code) => call("login", { code }, () => true),
    /** The newest items, or those before a seq; oldest first. @param {number} [before] */
    history: (before) => call("history", { chat, ...(before === undefined ? {} : { before }), limit: 50 }, readHistory),
    /** Tells the host that parts up to `seq` were shown. @param {number} seq */
    ack: (seq) => call("ack", { chat, seq }, () => true),
    /** May be repeated with the same key until it is answered: the host accepts a key once. @param {string} text @param {string} key */
    send: (text, key) => call("send", { chat, text, key }, readAccepted),
    commands: () => call("commands", {}, readCommands),
    /** The address of the event stream, for what comes after `seq`. @param {number} seq */
    eventsPath: (seq) => `/api/events?chat=${encodeURIComponent(chat)}&after=${seq}`,
  };
}

/** @typedef {ReturnType<typeof makeApi>} Api */

/** @param {Response} response @param {unknown} value @returns {Reply<never>} */
function refusal(response, value) {
  const error = fieldsOf(fieldsOf(value)["error"]);
  const words = [textOf(error["message"]), textOf(error["hint"])].filter(Boolean).map(sentence);
  const seconds = numberOf(Number(response.headers.get("retry-after") ?? Number.NaN));
  return {
    ok: false,
    status: response.status,
    message: words.join(" ") || `The host answered ${response.status}.`,
    retryAfterMs: seconds === undefined ? undefined : seconds * 1000,
  };
}

/** @param {string} text */
function sentence(text) {
  const upper = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(upper) ? upper : `${upper}.`;
}
