// Owns: one part from its first byte to its recorded outcome. `ready → sending` is committed before any byte leaves, so that after
// a death it is known which parts may have arrived (G4). It knows no order and no waiting: lines are in outgoing.ts.
import { backoffMs } from "../kernel/backoff.ts";
import type { Clock } from "../kernel/clock.ts";
import { FencedOff, LanewayError, messageOf, StoreUnavailable } from "../kernel/errors.ts";
import type { PartId } from "../kernel/ids.ts";
import type { Log } from "../kernel/log.ts";
import { routeOf } from "../store/commands.ts";
import type { Part, Settled } from "../store/outbox.ts";
import type { Store, Tx } from "../store/store.ts";
import type { Delivery, Placed } from "./delivery.ts";
import { type Ambiguous, afterAmbiguous, isNoticeToOwner, undeliveredText } from "./undelivered.ts";

/** What became of a part, as the channel sees it. Only `later` and `unedited` mean that it was certainly not sent. */
type SendResult =
  | { readonly kind: "sent"; readonly ref: string }
  | { readonly kind: "later"; readonly afterMs: number; readonly wholeAccount: boolean; readonly reason: string }
  | { readonly kind: "refused"; readonly reason: string }
  /** The message that it was to edit is gone or had to go: as a new message, in a send of its own. */
  | { readonly kind: "unedited"; readonly reason: string }
  | { readonly kind: "ambiguous"; readonly reason: string };

interface Outgoing {
  readonly chat: string;
  readonly thread: string | undefined;
  readonly text: string;
  readonly extra: string | undefined;
  readonly replyTo: string | undefined;
  readonly editRef: string | undefined;
  readonly again: boolean;
}

/** One account of a push channel. */
export interface Outlet {
  readonly ambiguous: Ambiguous;
  /** Calls `begin` when the part may go, before any byte leaves; when that rejects nothing is sent. Never rejects itself. */
  send(part: Outgoing, signal: AbortSignal, begin: () => Promise<void>): Promise<SendResult>;
}

export interface SendingDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly delivery: Pick<Delivery, "tellOwner" | "isOwners">;
  /** Ends what was shown of this answer while it grew; resolves when nothing but parts is in flight to its chat. */
  readonly quiet: (part: Pick<Part, "chatKey" | "command">) => Promise<void>;
  readonly offer: (placed: Placed) => void;
  /** Whether no earlier part of its chat has come since it was chosen. */
  readonly isNext: (id: PartId) => boolean;
  readonly account: AccountState;
  /** No further part is begun. */
  readonly signal: AbortSignal;
  /** What is being sent is cut off. */
  readonly sendSignal: AbortSignal;
}

/** What is known of one account. */
export interface AccountState {
  /** Until when it sends nothing, by the platform's own word (no call inside the window); monotonic. */
  quietUntilMono: number;
  /** Ends the waiting of its lines. */
  hurry: AbortController;
}

/** Of a platform that is not reached (Q1.5). */
const RETRY = { baseMs: 1_000, factor: 2, maxMs: 60_000, jitter: 0 };
/** Between two tries in any case, so that a platform that says "at once", or a bug, costs one try a second. */
export const LEAST_WAIT_MS = 1_000;

/** The owner dropped it, another host has it, or the platform asked for quiet meanwhile: nothing was sent. */
class Withdrawn extends LanewayError {
  readonly code = "withdrawn";
}

/** An earlier part of the chat came while this one waited for its turn: that one goes first (G5). */
class Overtaken extends Withdrawn {}

/** How long its line is to wait after it, in ms. */
export async function sendOne(found: Part, outlet: Outlet, deps: SendingDeps): Promise<number> {
  const { clock, account, store } = deps;
  await deps.quiet(found);
  // What was in flight may have become the message that this part edits.
  const part = store.read.outbox.get(found.id) ?? found;
  const { begun, failed, result } = await attemptSend(part, outlet, deps);
  if (failed instanceof Overtaken) return 0;
  // Not even begun: the row is as it was. A full disk, a stopped channel or a stop of the host.
  if (!begun) return Math.max(result.kind === "later" ? result.afterMs : 0, LEAST_WAIT_MS);
  await record(part, result, outlet, deps);
  if (result.kind === "unedited" && part.editRef === undefined) return LEAST_WAIT_MS;
  if (result.kind !== "later") return 0;
  if (!result.wholeAccount) return Math.max(result.afterMs, backoffMs(RETRY, part.attempts + 1, 0.5));
  const waitMs = Math.max(result.afterMs, LEAST_WAIT_MS);
  account.quietUntilMono = clock.mono() + waitMs;
  return waitMs;
}

/** Guards the outlet's contract: whatever it does, what was begun has a result. */
async function attemptSend(
  part: Part,
  outlet: Outlet,
  { store, clock, account, sendSignal, isNext }: SendingDeps,
): Promise<{ begun: boolean; failed: unknown; result: SendResult }> {
  const route = routeOf(part.chatKey);
  let failed: unknown;
  let begun = false;
  const begin = async () => {
    try {
      if (!isNext(part.id)) throw new Overtaken(`an earlier part than ${part.id} is to go first`);
      if (account.quietUntilMono > clock.mono()) throw new Withdrawn("the platform asked for quiet");
      await take(part, store);
      begun = true;
    } catch (thrown) {
      failed = thrown;
      throw thrown;
    }
  };
  const { text, extra, replyTo, editRef, again } = part;
  const outgoing = { chat: route.chat, thread: route.thread, text, extra, replyTo, editRef, again };
  const said = await outlet.send(outgoing, sendSignal, begin).catch((thrown: unknown): SendResult => {
    if (!begun) throw thrown;
    return { kind: "ambiguous", reason: messageOf(thrown) };
  });
  const result = knownResult(part, said);
  if (failed instanceof FencedOff) throw failed;
  if (!begun && failed === undefined && result.kind !== "later") {
    // It has a result without having asked: recorded all the same, so that it is not sent again and again.
    await take(part, store);
    begun = true;
  }
  return { begun, failed, result };
}

/** An edit that may have been made can be made again: nobody sees a difference, so nothing about it is in doubt (G4). */
function knownResult(part: Part, said: SendResult): SendResult {
  if (said.kind !== "ambiguous" || part.editRef === undefined) return said;
  return { kind: "later", afterMs: LEAST_WAIT_MS, wholeAccount: false, reason: said.reason };
}

/** ready → sending; rejects when the part is not to be sent any more. */
async function take(part: Part, store: Store): Promise<void> {
  await store.write("send", (tx) => {
    if (!tx.outbox.take(part.id, tx.generation)) throw new Withdrawn(`part ${part.id} is no longer ready`);
  });
}

/** Retried until it is written: the outcome is known only here. */
async function record(part: Part, result: SendResult, outlet: Outlet, deps: SendingDeps): Promise<void> {
  const { store, log, signal } = deps;
  for (;;) {
    try {
      const { state, told } = await store.write("sent", (tx) => writeResult(tx, part, result, outlet, deps));
      log.info(`outbox.${state}`, { part: part.id, chat: part.chatKey, attempt: part.attempts + 1 });
      if (told !== undefined) deps.offer(told);
      return;
    } catch (thrown) {
      if (!(thrown instanceof StoreUnavailable)) throw thrown;
      await store.writable(signal);
    }
  }
}

function writeResult(
  tx: Tx,
  part: Part,
  result: SendResult,
  outlet: Outlet,
  { clock, delivery }: SendingDeps,
): { state: string; told?: Placed } {
  const now = clock.now();
  switch (result.kind) {
    case "sent":
      tx.outbox.sent(part.id, result.ref, tx.generation, now);
      return { state: "sent" };
    case "later": {
      // Waits are measured by the monotonic clock, in fractions; rows hold whole milliseconds.
      const notBefore = Math.ceil(now + result.afterMs);
      tx.outbox.settle(part.id, { state: "ready", reason: result.reason, notBefore }, tx.generation);
      return { state: "later" };
    }
    case "unedited":
      tx.outbox.settle(part.id, { state: "ready", reason: result.reason, anew: true }, tx.generation);
      return { state: "unedited" };
    case "refused":
    case "ambiguous": {
      const settled: Settled =
        result.kind === "refused"
          ? { state: "failed", reason: result.reason }
          : afterAmbiguous(part, result.reason, outlet.ambiguous, now);
      tx.outbox.settle(part.id, settled, tx.generation);
      if (settled.state === "ready" || isNoticeToOwner(part, delivery)) return { state: settled.state };
      // What cannot be told must not undo what is known.
      const told = tx.attempt(() => delivery.tellOwner(tx, undeliveredText(part, settled)));
      return { state: settled.state, ...(told.ok && { told: told.value }) };
    }
  }
}

export async function expire(part: Part, { store, delivery, log, offer }: SendingDeps): Promise<void> {
  const reason = "it could not be sent in time";
  const told = await store.write("outbox-expire", (tx) => {
    if (!tx.outbox.expire(part.id, reason) || part.class === "notice") return undefined;
    if (isNoticeToOwner(part, delivery)) return undefined;
    return delivery.tellOwner(tx, undeliveredText(part, { state: "failed", reason }));
  });
  log.warn("outbox.failed", { part: part.id, chat: part.chatKey, reason });
  if (told !== undefined) offer(told);
}
