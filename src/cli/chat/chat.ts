// Owns: what one chat of the terminal asks the host for: what was not seen yet, and how a message ended.
import { InvalidInput } from "../../kernel/errors.ts";
import type { CallOptions, Client } from "../host/client.ts";
import { isPassing } from "../host/errors.ts";
import { persist } from "../host/persist.ts";
import { history, type PartItem, type Waited, waited } from "../host/replies.ts";
import type { Shell } from "../shell.ts";

export interface Chat {
  readonly channel: "terminal" | "web";
  readonly chat: string;
}

/** `agent:<agent>:<channel>:<account>:<chat>`, as listings show a session. */
const SESSION_KEY = /^agent:main:(terminal|web):default:([\w.-]{1,64})$/;
const CHAT_NAME = /^[\w.-]{1,64}$/;

/**
 * The chat that `--session` names: a name of its own choosing on the terminal (default `main`), or the key of a session
 * of terminal or page. Throws InvalidInput.
 */
export function chatOf(session: string | undefined): Chat {
  if (session === undefined) return { channel: "terminal", chat: "main" };
  const [, channel, chat] = SESSION_KEY.exec(session) ?? [];
  if (chat !== undefined) return { channel: channel === "web" ? "web" : "terminal", chat };
  if (CHAT_NAME.test(session)) return { channel: "terminal", chat: session };
  throw new InvalidInput(
    `expected the name or the key of a session of terminal or page, but got ${JSON.stringify(session)}`,
    {
      hint: "A name has letters, digits, . _ and - (at most 64); `laneway sessions list` shows the keys.",
    },
  );
}

export interface Unread {
  /** Oldest first. */
  readonly parts: readonly PartItem[];
  /** What the parts answer, by command, as far as it was read along. */
  readonly questions: ReadonlyMap<number, string>;
  /** The newest row of the chat, 0 when it has none: where the event stream goes on. */
  readonly newest: number;
}

const PAGE = 200;
/** Somebody who left ten thousand rows unread gets the newest of them. */
const MAX_PAGES = 50;

/** The parts that no client has acknowledged. Reads back as long as a page holds one. */
export async function readUnread(client: Client, chat: Chat, options?: CallOptions): Promise<Unread> {
  const parts: PartItem[] = [];
  const questions = new Map<number, string>();
  let newest = 0;
  let before: number | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await client.call("history", { ...chat, before, limit: PAGE }, history, options);
    const unread = page.items.filter((item) => item.kind === "part").filter(({ state }) => state === "ready");
    for (const item of page.items) {
      newest = Math.max(newest, item.seq);
      if (item.kind === "person") questions.set(item.command, item.text);
    }
    parts.unshift(...unread);
    before = page.items[0]?.seq;
    if (unread.length === 0 || !page.more) break;
  }
  return { parts, questions, newest };
}

/** One long poll. Its end tells the state, so this is how old the state on the progress line can be. */
const POLL_MS = 5_000;
const POLL_SLACK_MS = 15_000;

interface Waiting {
  readonly giveUpMs: number;
  readonly signal: AbortSignal;
  readonly onState?: (state: string) => void;
  readonly onFailure?: (thrown: unknown) => void;
}

/** Waits through restarts of the host until the command has ended. Throws when the host stays away. */
export async function waitForEnd(shell: Shell, client: Client, command: number, waiting: Waiting): Promise<Waited> {
  const { giveUpMs, signal, onState, onFailure } = waiting;
  const input = { command, timeoutMs: POLL_MS };
  const poll = () => client.call("wait", input, waited, { limitMs: POLL_MS + POLL_SLACK_MS, signal });
  const persistence = { again: isPassing, giveUpMs, signal, ...(onFailure === undefined ? {} : { onFailure }) };
  for (;;) {
    const reply = await persist(poll, persistence, shell);
    onState?.(reply.state);
    if (reply.final) return reply;
  }
}
