// Owns: the way in: the one-time code of the link, the cookie it is traded for, and what the person is told without one.
import { backoffMs } from "./clock.js";

const USED = "This link has been used or has expired. Run `laneway link` for a new one.";
const NO_LINK = "Open the link that `laneway start` printed, or run `laneway link`.";

/**
 * @typedef {Extract<import("./api.js").Reply<unknown>, { ok: false }>} Trouble
 * @param {{
 *   api: import("./api.js").Api,
 *   clock: import("./clock.js").Clock,
 *   address: { code(): string, clear(): void },
 *   on: { open(page: import("./wire.js").History): void, shut(text: string): void },
 * }} deps `address.code` is the fragment of the page's address, `clear` removes it; `on.shut` gets what to tell the person
 */
export function makeEntry({ api, clock, address, on }) {
  let attempts = 0;
  /** @type {(() => void) | undefined} */
  let stopWaiting;

  /** Signs in by the code in the address, if there is one, then opens the conversation or says what is missing. */
  async function enter() {
    stopWaiting?.();
    const refused = await signIn();
    if (refused !== undefined && refused.status !== 401) return tryLater(refused);
    // Asked for even when the code is refused: a link that this very browser has used is no reason to lock it out.
    const page = await api.history();
    if (!page.ok) {
      if (page.status !== 401) return tryLater(page);
      return on.shut(refused === undefined ? NO_LINK : USED);
    }
    attempts = 0;
    on.open(page.value);
  }

  /** @returns {Promise<Trouble | undefined>} undefined when there was no code or it was good */
  async function signIn() {
    const code = address.code();
    if (code === "") return undefined;
    const reply = await api.login(code);
    // Until it is answered the code stays, so that a reload can try it again.
    if (reply.ok || reply.status === 401) address.clear();
    return reply.ok ? undefined : reply;
  }

  /** @param {Trouble} trouble */
  function tryLater(trouble) {
    on.shut(`${trouble.message} Trying again.`);
    attempts += 1;
    stopWaiting = clock.after(trouble.retryAfterMs ?? backoffMs(attempts, clock.fraction()), () => void enter());
  }

  return {
    enter,
    /** The cookie is no longer accepted. */
    signedOut: () => on.shut(NO_LINK),
  };
}
