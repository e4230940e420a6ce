// Owns: sending the parts of push channels: serial in a chat, in order, side by side over chats. `ready → sending` is committed
// before any byte leaves, so that after a death it is known which parts may have arrived (G4). Pull doors have no part in this.
import { backoffMs } from "../kernel/backoff.ts";
import type { Clock } from "../kernel/clock.ts";
import { Aborted, FencedOff, LanewayError, messageOf, StoreUnavailable } from "../kernel/errors.ts";
import type { PartId } from "../kernel/ids.ts";
import { type Background, errorFields, type Log } from "../kernel/log.ts";
import { type Route, routeOf } from "../store/commands.ts";
import type { Part, Settled } from "../store/outbox.ts";
import type { Store, Tx } from "../store/store.ts";
import type { Delivery, Placed } from "./delivery.ts";
import {
  type Ambiguous,
  accountOf,
  afterAmbiguous,
  isExpired,
  isNoticeToOwner,
  recoverOutbox,
  undeliveredText,
} from "./undelivered.ts";

/** What became of a part, as the channel sees it. Only `later` means that it was certainly not sent. */
type SendResult =
  | { readonly kind: "sent"; readonly ref: string }
  | { readonly kind: "later"; readonly afterMs: number; readonly wholeAccount: boolean; readonly reason: string }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "ambiguous"; readonly reason: string };

interface Outgoing {
  readonly chat: string;
  readonly thread: string | undefined;
  readonly text: string;
  readonly extra: string | undefined;
  readonly replyTo: string | undefined;
  readonly again: boolean;
}

/** One account of a push channel. */
export interface Outlet {
  readonly ambiguous: Ambiguous;
  /** Calls `begin` when the part may go, before any byte leaves; when that rejects nothing is sent. Never rejects itself. */
  send(part: Outgoing, signal: AbortSignal, begin: () => Promise<void>): Promise<SendResult>;
}

export interface OutgoingDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly background: Background;
  /** Undefined for a pull door, and for a channel that is not set up any more: its parts stay where they are. */
  readonly outlet: (route: Route) => Outlet | undefined;
  readonly delivery: Pick<Delivery, "tellOwner" | "isOwners">;
  /** Resolves when nothing else is in flight to this chat (the preview of the answer). */
  readonly quiet: (chatKey: string) => Promise<void>;
}

export interface Sender {
  /**
   * Once, before anything else: settles what an earlier host was sending and goes on with what is ready. Gives by account for
   * how many ms the platform still wants to be left alone.
   */
  start(): Promise<ReadonlyMap<string, number>>;
  offer(placed: Placed): void;
  /** The account is reached again: what waits only because it was not is tried now. */
  retryNow(account: string): void;
  /** No further part is begun; resolves when what is in flight has ended. */
  stop(): Promise<void>;
}

/** Of a platform that is not reached (Q1.5). */
const RETRY = { baseMs: 1_000, factor: 2, maxMs: 60_000, jitter: 0 };
/** Between two tries in any case, so that a platform that says "at once", or a bug, costs one try a second. */
const LEAST_WAIT_MS = 1_000;
/** At a stop, what is being sent gets this long to be confirmed. */
const LAST_SENDS_MS = 5_000;

interface Line {
  /** In the order of their sequence. */
  readonly parts: PartId[];
  running: boolean;
  /** Its first part is not tried before; monotonic, so that a jump of the wall clock neither hurries nor holds it. */
  dueMono: number;
}

/** What is known of one account. */
interface AccountState {
  /** Until when it sends nothing, by the platform's own word (no call inside the window); monotonic. */
  quietUntilMono: number;
  /** Ends the waiting of its lines. */
  hurry: AbortController;
}

export function makeSender(deps: OutgoingDeps): Sender {
  const { store, clock, log, background } = deps;
  const ending = new AbortController();
  const sending = new AbortController();
  const lines = new Map<string, Line>();
  const accounts = new Map<string, AccountState>();
  const work = new Set<Promise<void>>();

  const accountState = (account: string): AccountState => {
    const state = accounts.get(account) ?? { quietUntilMono: 0, hurry: new AbortController() };
    accounts.set(account, state);
    return state;
  };

  const offer = ({ chatKey, parts }: Placed) => {
    const outlet = deps.outlet(routeOf(chatKey));
    if (outlet === undefined || ending.signal.aborted) return;
    const line = lines.get(chatKey) ?? { parts: [], running: false, dueMono: 0 };
    lines.set(chatKey, line);
    for (const id of parts) if (!line.parts.includes(id)) line.parts.push(id);
    line.parts.sort((a, b) => a - b);
    if (line.running) return;
    line.running = true;
    const running = run(chatKey, line, outlet).finally(() => work.delete(running));
    work.add(running);
    background("outbox.send", running);
  };

  const run = async (chatKey: string, line: Line, outlet: Outlet) => {
    const lineDeps = {
      ...deps,
      offer,
      account: accountState(accountOf(routeOf(chatKey))),
      signal: ending.signal,
      sendSignal: sending.signal,
    };
    while (line.parts.length > 0 && !ending.signal.aborted) {
      try {
        await drainLine(line, outlet, lineDeps);
      } catch (thrown) {
        if (ending.signal.aborted || thrown instanceof FencedOff) break;
        log.error("outbox.broken", { chat: chatKey, ...errorFields(thrown) });
        await clock.sleep(LEAST_WAIT_MS, ending.signal).catch(() => {});
      }
    }
    line.running = false;
    if (line.parts.length === 0) lines.delete(chatKey);
  };

  return {
    offer,
    async start() {
      const { told, ready, windows } = await store.write("outbox-recover", (tx) => recoverOutbox(tx, deps));
      const left = new Map([...windows].map(([account, until]) => [account, Math.max(0, until - clock.now())]));
      for (const [account, ms] of left) accountState(account).quietUntilMono = clock.mono() + ms;
      for (const placed of ready) offer(placed);
      if (told !== undefined) offer(told);
      return left;
    },
    retryNow(account) {
      const state = accountState(account);
      state.hurry.abort();
      state.hurry = new AbortController();
    },
    async stop() {
      ending.abort();
      const stopTimer = clock.after(LAST_SENDS_MS, () => sending.abort());
      await Promise.allSettled(work);
      stopTimer();
    },
  };
}

interface LineDeps extends OutgoingDeps {
  readonly offer: (placed: Placed) => void;
  readonly account: AccountState;
  /** No further part is begun. */
  readonly signal: AbortSignal;
  /** What is being sent is cut off. */
  readonly sendSignal: AbortSignal;
}

async function drainLine(line: Line, outlet: Outlet, deps: LineDeps): Promise<void> {
  for (let id = line.parts[0]; id !== undefined && !deps.signal.aborted; id = line.parts[0]) {
    const part = deps.store.read.outbox.get(id);
    // Dropped, or settled for good: the next one's turn.
    if (part?.state !== "ready") {
      line.parts.splice(line.parts.indexOf(id), 1);
      continue;
    }
    // After a wait the rows are looked at again: it may have been dropped, and an earlier one sent again by its owner.
    if (await untilDue(line, deps)) continue;
    await deps.store.writable(deps.signal);
    if (isExpired(part, deps.clock.now())) await expire(part, deps);
    else line.dueMono = deps.clock.mono() + (await sendOne(part, outlet, deps));
  }
}

/** Whether there was anything to wait for. */
async function untilDue(line: Line, { clock, account, signal }: LineDeps): Promise<boolean> {
  for (let waited = false; ; waited = true) {
    const waitMs = Math.max(line.dueMono, account.quietUntilMono) - clock.mono();
    if (waitMs <= 0) return waited;
    try {
      await clock.sleep(waitMs, AbortSignal.any([signal, account.hurry.signal]));
    } catch (thrown) {
      if (signal.aborted || !(thrown instanceof Aborted)) throw thrown;
      line.dueMono = 0;
    }
  }
}

/** The owner dropped it, another host has it, or the platform asked for quiet meanwhile: nothing was sent. */
class Withdrawn extends LanewayError {
  readonly code = "withdrawn";
}

/** How long its line is to wait after it, in ms. */
async function sendOne(part: Part, outlet: Outlet, deps: LineDeps): Promise<number> {
  const { clock, account } = deps;
  await deps.quiet(part.chatKey);
  const { begun, result } = await attemptSend(part, outlet, deps);
  // Not even begun: the row is as it was. A full disk, a stopped channel or a stop of the host.
  if (!begun) return Math.max(result.kind === "later" ? result.afterMs : 0, LEAST_WAIT_MS);
  await record(part, result, outlet, deps);
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
  { store, clock, account, sendSignal }: LineDeps,
): Promise<{ begun: boolean; result: SendResult }> {
  const route = routeOf(part.chatKey);
  let failed: unknown;
  let begun = false;
  const begin = async () => {
    try {
      if (account.quietUntilMono > clock.mono()) throw new Withdrawn("the platform asked for quiet");
      await take(part, store);
      begun = true;
    } catch (thrown) {
      failed = thrown;
      throw thrown;
    }
  };
  const { text, extra, replyTo, again } = part;
  const outgoing = { chat: route.chat, thread: route.thread, text, extra, replyTo, again };
  const result = await outlet.send(outgoing, sendSignal, begin).catch((thrown: unknown): SendResult => {
    if (!begun) throw thrown;
    return { kind: "ambiguous", reason: messageOf(thrown) };
  });
  if (failed instanceof FencedOff) throw failed;
  if (!begun && failed === undefined && result.kind !== "later") {
    // It has a result without having asked: recorded all the same, so that it is not sent again and again.
    await take(part, store);
    begun = true;
  }
  return { begun, result };
}

/** ready → sending; rejects when the part is not to be sent any more. */
async function take(part: Part, store: Store): Promise<void> {
  await store.write("send", (tx) => {
    if (!tx.outbox.take(part.id, tx.generation)) throw new Withdrawn(`part ${part.id} is no longer ready`);
  });
}

/** Retried until it is written: the outcome is known only here. */
async function record(part: Part, result: SendResult, outlet: Outlet, deps: LineDeps): Promise<void> {
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
  { clock, delivery }: LineDeps,
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

async function expire(part: Part, { store, delivery, log, offer }: LineDeps): Promise<void> {
  const reason = "it could not be sent in time";
  const told = await store.write("outbox-expire", (tx) => {
    if (!tx.outbox.expire(part.id, reason) || part.class === "notice") return undefined;
    if (isNoticeToOwner(part, delivery)) return undefined;
    return delivery.tellOwner(tx, undeliveredText(part, { state: "failed", reason }));
  });
  log.warn("outbox.failed", { part: part.id, chat: part.chatKey, reason });
  if (told !== undefined) offer(told);
}
