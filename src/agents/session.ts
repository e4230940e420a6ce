// Owns: session keys, and what of a session the model sees.
import type { CommandId, SessionKey } from "../kernel/ids.ts";
import type { Route } from "../store/commands.ts";
import type { TranscriptRow } from "../store/messages.ts";
import type { Reads } from "../store/store.ts";

/** `agent:<agent>:<channel>:<account>:<chat>[:<thread>]` */
export function sessionKey(agent: string, route: Route): SessionKey {
  const base = `agent:${agent}:${route.channel}:${route.account}:${route.chat}`;
  return (route.thread === undefined ? base : `${base}:${route.thread}`) as SessionKey;
}

/** The agent that a session belongs to. */
export function agentOf(session: SessionKey): string {
  return session.split(":")[1] ?? "";
}

/** Characters of transcript per token of context: cautious for code and for scripts other than Latin. */
const CHARS_PER_TOKEN = 2.5;
/** The part of the context that the transcript may take; the rest is for the prompt, the tools and the answer. */
const TRANSCRIPT_SHARE = 0.6;

export interface SessionView {
  /** The newest rows that fit, oldest first, before the given command's first one. */
  readonly earlier: readonly TranscriptRow[];
  /** Its own, with those of the messages that it has taken in. */
  readonly own: readonly TranscriptRow[];
}

/** What the model sees for a command: cost is bounded by the context, not by the length of the history (Q17.3). */
export function viewOf(read: Reads, session: SessionKey, command: CommandId, contextTokens: number): SessionView {
  const startsAfter = read.sessions.get(session)?.startsAfter ?? 0;
  const maxChars = Math.floor(contextTokens * CHARS_PER_TOKEN * TRANSCRIPT_SHARE);
  const rows = read.messages.newest(session, startsAfter, maxChars);
  const own = read.messages.ofCommand(command);
  const first = rows.findIndex((row) => row.command === command);
  if (first === -1) return { earlier: rows, own };
  // A turn has its session for itself: what stands behind its first row is its own, or what it has taken in.
  const seen = new Set(rows.map((row) => row.id));
  return { earlier: rows.slice(0, first), own: [...own.filter((row) => !seen.has(row.id)), ...rows.slice(first)] };
}
