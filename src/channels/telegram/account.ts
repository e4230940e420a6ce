// Owns: one bot account as seen by every part of this channel: its line to the Bot API, its pace, and what a 429 does to both.
import type { RawApi } from "grammy";
import type { Clock } from "../../kernel/clock.ts";
import { type Limit, makePace, type Urgency } from "../pacing.ts";
import { type Answer, type ApiSignal, makeClient } from "./client.ts";

/** https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this */
const ACCOUNT: readonly Limit[] = [{ calls: 30, perMs: 1_000 }];
/** One a second; short bursts are let pass, so an answer of three parts goes out at once. */
const PRIVATE: readonly Limit[] = [{ calls: 3, perMs: 3_000 }];
const GROUP: readonly Limit[] = [...PRIVATE, { calls: 20, perMs: 60_000 }];
/** Half of what a group takes is left for answers, however many of its topics show a growing one. */
const GROUP_DRAFTS: readonly Limit[] = [{ calls: 10, perMs: 60_000 }];
/** Said when Telegram refuses for too many calls without saying how long. */
const UNSTATED_WAIT_MS = 5_000;

export type Call<T> = (api: RawApi, signal: ApiSignal) => Promise<T>;

interface Bounds {
  readonly limitMs: number;
  readonly signal: AbortSignal;
  /** Ends the waiting for a turn, but not a call that is under way. */
  readonly patience?: AbortSignal;
  /** Awaited between the turn and the call; when it rejects there is no call. */
  readonly begin?: (() => Promise<void>) | undefined;
}

export interface Account {
  /**
   * Waits for its turn and calls; `limitMs` bounds the turn and the call each. A 429 holds the whole account for the time that
   * Telegram states: what waits for its turn then, and what is asked for in that time, ends as `unsent` at once.
   */
  paced<T>(chat: string, urgency: Urgency, make: Call<T>, bounds: Bounds): Promise<Answer<T>>;
  /** The same without waiting for a turn, for calls that are no messages. */
  now<T>(make: Call<T>, bounds: Bounds): Promise<Answer<T>>;
  /** What is left in ms of the time that Telegram asked to be left alone. */
  heldMs(): number;
  hold(ms: number): void;
  /** Resolves when no call is in flight; its connections are given up then. */
  rest(): Promise<void>;
}

export function makeAccount(deps: { token: string; apiRoot: string; clock: Clock }): Account {
  const { clock } = deps;
  const client = makeClient(deps);
  const pace = makePace({ clock, account: ACCOUNT });
  let heldUntil = 0;
  let holding = new AbortController();

  const heldMs = () => Math.max(0, heldUntil - clock.mono());
  const hold = (ms: number) => {
    heldUntil = Math.max(heldUntil, clock.mono() + ms);
    holding.abort();
    holding = new AbortController();
  };

  const now: Account["now"] = async (make, bounds) => {
    if (heldMs() > 0) return HELD;
    const answer = await client.call(make, bounds);
    const waitMs = answer.ok ? undefined : floodWaitMs(answer);
    if (waitMs !== undefined) hold(waitMs);
    return answer;
  };

  return {
    now,
    heldMs,
    hold,
    async paced(chat, urgency, make, { limitMs, signal, patience = signal, begin }) {
      if (heldMs() > 0) return HELD;
      const inTime = new AbortController();
      const stopTimer = clock.after(limitMs, () => inTime.abort(), { keepAlive: false });
      try {
        const limits = isGroup(chat) ? { limits: GROUP, draftLimits: GROUP_DRAFTS } : { limits: PRIVATE };
        await pace.turn(
          { chat, ...limits, urgency },
          AbortSignal.any([inTime.signal, holding.signal, signal, patience]),
        );
      } catch {
        return heldMs() > 0 ? HELD : unsent("no turn to call came in time");
      } finally {
        stopTimer();
      }
      try {
        await begin?.();
      } catch {
        return unsent("it was not to be sent any more");
      }
      return now(make, { limitMs, signal });
    },
    async rest() {
      await client.idle();
      client.renew();
    },
  };
}

const HELD = unsent("Telegram asked to wait");

function unsent(reason: string): { ok: false; fault: { kind: "unsent"; reason: string } } {
  return { ok: false, fault: { kind: "unsent", reason } };
}

/** How long Telegram wants to be left alone, when that is what it answered. */
export function floodWaitMs(answer: Extract<Answer<unknown>, { ok: false }>): number | undefined {
  const { fault } = answer;
  return fault.kind === "answered" && fault.code === 429 ? (fault.retryAfterMs ?? UNSTATED_WAIT_MS) : undefined;
}

/** Ids of groups and channels are negative. https://core.telegram.org/api/bots/ids */
function isGroup(chat: string): boolean {
  return chat.startsWith("-");
}
