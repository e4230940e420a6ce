// Owns: when a call of one account may go out, so that the platform's limits are kept and what matters goes first.
// p-queue keeps the order; the instants come from the injected clock. Never makes a call itself and knows no platform.
import PQueue from "p-queue";
import type { Clock, Stop } from "../kernel/clock.ts";

/** At most `calls` starts within any `perMs`. */
export interface Limit {
  readonly calls: number;
  readonly perMs: number;
}

/** A final message goes before a draft of one, and both before "typing". */
export type Urgency = "send" | "draft" | "typing";
const PRIORITY: Readonly<Record<Urgency, number>> = { send: 2, draft: 1, typing: 0 };

export interface Turn {
  readonly chat: string;
  /** What the platform lets this chat take, besides the limits of the account. "typing" is no message and counts for the account only. */
  readonly limits: readonly Limit[];
  /** Of these what drafts may take, so that the rest is left for messages; absent: all. */
  readonly draftLimits?: readonly Limit[] | undefined;
  readonly urgency: Urgency;
}

export interface Pace {
  /** Resolves when the call may go out; it is to be made at once. Rejects when the signal aborts first. */
  turn(turn: Turn, signal: AbortSignal): Promise<void>;
}

/** Lines of chats that are at rest are let go when more than this many are known. */
const MAX_LINES = 256;

/** @param account the limits of all calls together. */
export function makePace(deps: { clock: Clock; account: readonly Limit[] }): Pace {
  const account = makeLine(deps.clock, deps.account);
  const lines = new Map<string, Line>();

  const lineOf = (name: string, limits: readonly Limit[]): Line => {
    const known = lines.get(name);
    if (known !== undefined) return known;
    if (lines.size >= MAX_LINES) {
      for (const [other, line] of lines) if (line.rests()) lines.delete(other);
    }
    const line = makeLine(deps.clock, limits);
    lines.set(name, line);
    return line;
  };

  return {
    turn: (turn, signal) => {
      const priority = PRIORITY[turn.urgency];
      const { chat, limits, draftLimits, urgency } = turn;
      const overall = () => account.turn(priority, signal, async () => {});
      if (urgency === "typing") return overall();
      const inChat = () => lineOf(chat, limits).turn(priority, signal, overall);
      if (urgency === "send" || draftLimits === undefined) return inChat();
      return lineOf(`drafts of ${chat}`, draftLimits).turn(priority, signal, inChat);
    },
  };
}

interface Line {
  turn(priority: number, signal: AbortSignal, then: () => Promise<void>): Promise<void>;
  /** Nothing waits and nothing that was started counts any more. */
  rests(): boolean;
}

/** One at a time; between two the queue is paused until the limits allow the next, so that an urgent latecomer still goes first. */
function makeLine(clock: Clock, limits: readonly Limit[]): Line {
  const queue = new PQueue({ concurrency: 1 });
  const remembered = Math.max(...limits.map((limit) => limit.calls));
  let starts: readonly number[] = [];
  let stopTimer: Stop = () => {};

  const settle = () => {
    const waitMs = roomMs(starts, limits, clock.mono());
    stopTimer();
    if (waitMs <= 0) queue.start();
    else {
      queue.pause();
      stopTimer = clock.after(waitMs, settle, { keepAlive: false });
    }
  };

  return {
    turn: (priority, signal, then) =>
      queue.add(
        async () => {
          await then();
          starts = [...starts, clock.mono()].slice(-remembered);
          settle();
        },
        { priority, signal },
      ),
    rests: () => queue.size === 0 && queue.pending === 0 && roomMs(starts, limits, clock.mono()) === 0,
  };
}

/** How long until one more start keeps every limit. `starts` is ascending. */
function roomMs(starts: readonly number[], limits: readonly Limit[], now: number): number {
  const waits = limits.map(
    ({ calls, perMs }) => (starts[starts.length - calls] ?? Number.NEGATIVE_INFINITY) + perMs - now,
  );
  return Math.max(0, ...waits);
}
