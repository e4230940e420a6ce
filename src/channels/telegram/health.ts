// Owns: the state of one account for observers, and how long to wait after each kind of failure of receiving.
// Never ends for good except when the token is refused.
import { backoffMs } from "../../kernel/backoff.ts";
import type { Clock } from "../../kernel/clock.ts";
import { Aborted } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Log } from "../../kernel/log.ts";
import type { ChannelState } from "../port.ts";
import { type Fault, isTokenRefused } from "./fault.ts";

const FAILURE = { baseMs: 1_000, factor: 2, maxMs: 60_000, jitter: 0.2 };
/** Longer than a poll, so that two pollers do not throw each other out in turn; short enough to be back within a minute. */
const CONFLICT = { baseMs: 30_000, factor: 1.25, maxMs: 45_000, jitter: 0.1 };

export interface Health {
  state(): ChannelState;
  /** What the last try ended with. */
  readonly trouble: "none" | "failing" | "conflict";
  up(): void;
  event(): void;
  /** Resolves when it is time to try again, or to false when there is no point. Rejects with Aborted. */
  failed(fault: Fault, signal: AbortSignal): Promise<boolean>;
}

export function makeHealth(deps: {
  clock: Clock;
  ids: Ids;
  log: Log;
  account: string;
  changed: (state: ChannelState) => void;
}): Health {
  const { clock, ids, log } = deps;
  let state: ChannelState = { state: "starting" };
  let failures = 0;
  let conflicts = 0;
  let lastEventAt: number | undefined;

  const become = (next: ChannelState) => {
    const isSame = next.state === state.state && reasonOf(next) === reasonOf(state);
    state = next;
    if (isSame) return;
    const fields = { channel: "telegram", account: deps.account, reason: reasonOf(next) };
    if (next.state === "up") log.info("channel.up", fields);
    else log.warn(`channel.${next.state}`, fields);
    deps.changed(next);
  };
  const retrying = (reason: string) =>
    become({ state: "retrying", reason, since: state.state === "retrying" ? state.since : clock.now() });

  return {
    state: () => state,
    get trouble() {
      if (conflicts > 0) return "conflict";
      return failures > 0 ? "failing" : "none";
    },
    up() {
      failures = 0;
      conflicts = 0;
      become({ state: "up", lastEventAt });
    },
    event() {
      lastEventAt = clock.now();
      if (state.state === "up") state = { state: "up", lastEventAt };
    },
    async failed(fault, signal) {
      if (signal.aborted) throw new Aborted(signal.reason);
      if (isTokenRefused(fault)) {
        const reason = `Telegram refused the token (${fault.reason}): set a valid one and restart`;
        become({ state: "stopped", reason, since: clock.now() });
        return false;
      }
      const isConflict = fault.kind === "answered" && fault.code === 409;
      if (isConflict) conflicts += 1;
      else failures += 1;
      retrying(isConflict ? conflictReason(fault.reason) : fault.reason);
      const waitMs = isConflict
        ? backoffMs(CONFLICT, conflicts, ids.fraction())
        : (statedWaitMs(fault) ?? backoffMs(FAILURE, failures, ids.fraction()));
      await clock.sleep(waitMs, signal);
      return true;
    },
  };
}

function statedWaitMs(fault: Fault): number | undefined {
  return fault.kind === "answered" ? fault.retryAfterMs : undefined;
}

function conflictReason(reason: string): string {
  const who = /webhook/i.test(reason) ? "a webhook was set for this bot" : "another program receives for this bot";
  return `${who} (${reason}): stop it, or revoke the token if you do not know it`;
}

function reasonOf(state: ChannelState): string | undefined {
  return "reason" in state ? state.reason : undefined;
}
