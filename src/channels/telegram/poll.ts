// Owns: the loop of getUpdates. The offset of a call is the acknowledgement of everything below it, so it is only ever one that the
// host has committed. There is one call at a time. Never gives up, except when the token is refused.
import type { Clock } from "../../kernel/clock.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { Client } from "./client.ts";
import type { Health } from "./health.ts";
import { ALLOWED_UPDATES, type Taker, takeUpdates } from "./take.ts";

const POLL_S = 25;
/** After another poller: long enough to be thrown out by it if it is still there, short enough to be back soon. */
const CONFLICT_POLL_S = 5;
/** A server that does not hold the call is not to be asked without a pause. */
const TOO_FAST_MS = 200;

export interface PollDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly health: Health;
  readonly taker: Taker;
  /** Without a completed poll for so long the call is given up and a new one made on a new connection (Q10.1). */
  readonly stallMs: number;
  readonly hold: (ms: number) => void;
}

/** Resolves when the token is refused; rejects with Aborted when the signal aborts. */
export async function poll(deps: PollDeps, signal: AbortSignal): Promise<void> {
  const { health, taker } = deps;
  let offset = offsetOf(taker.host.position(String(taker.bot.id)));
  let inARow = 0;
  for (;;) {
    const polled = await once(deps, offset, signal);
    if (!polled.ok) {
      inARow = 0;
      deps.client.renew();
      if (!(await health.failed(polled.fault, signal))) return;
      continue;
    }
    offset = polled.next ?? offset;
    inARow += 1;
    // Next to another poller one call may succeed by luck. One that was held for its time, or a third in a row, is proof.
    if (health.trouble !== "conflict" || polled.held || inARow >= 3) health.up();
    if (polled.next === undefined && !polled.held) await deps.clock.sleep(TOO_FAST_MS, signal);
  }
}

type Polled =
  | { readonly ok: true; readonly next: number | undefined; readonly held: boolean }
  | { readonly ok: false; readonly fault: Parameters<Health["failed"]>[0] };

/** One call and the commit of what it brought. */
async function once(deps: PollDeps, offset: number | undefined, signal: AbortSignal): Promise<Polled> {
  const { client, clock, health, taker, stallMs } = deps;
  const startedAt = clock.mono();
  const args = {
    timeout: seconds(health.trouble, stallMs),
    allowed_updates: ALLOWED_UPDATES,
    ...(offset !== undefined && { offset }),
  };
  const answer = await client.call((api, apiSignal): Promise<unknown> => api.getUpdates(args, apiSignal), {
    limitMs: stallMs,
    signal,
  });
  if (!answer.ok) {
    if (answer.fault.kind === "answered" && answer.fault.code === 429) deps.hold(answer.fault.retryAfterMs ?? 0);
    return answer;
  }
  if (!Array.isArray(answer.result)) return unclear("expected a list of updates from Telegram, got something else");
  if (answer.result.length === 0) return { ok: true, next: undefined, held: clock.mono() - startedAt >= TOO_FAST_MS };
  try {
    const next = await takeUpdates(taker, answer.result);
    health.event();
    return { ok: true, next, held: false };
  } catch (thrown) {
    return unclear(`the updates were not kept: ${messageOf(thrown)}`);
  }
}

function unclear(reason: string): Polled {
  return { ok: false, fault: { kind: "unclear", reason } };
}

/** After a failure the first call asks for an answer at once, so that the recovery is seen without waiting for a message. */
function seconds(trouble: Health["trouble"], stallMs: number): number {
  if (trouble === "failing") return 0;
  const longest = trouble === "conflict" ? CONFLICT_POLL_S : POLL_S;
  return Math.max(1, Math.min(longest, Math.floor(stallMs / 3_000)));
}

function offsetOf(position: string | undefined): number | undefined {
  return position !== undefined && /^\d+$/.test(position) ? Number(position) : undefined;
}
