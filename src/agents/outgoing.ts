// Owns: the lines of parts for push channels: serial in a chat, in order, side by side over chats, and when each is due. Pull doors
// have no part in this.
import { Aborted, FencedOff } from "../kernel/errors.ts";
import type { PartId } from "../kernel/ids.ts";
import { type Background, errorFields } from "../kernel/log.ts";
import { type Route, routeOf } from "../store/commands.ts";
import type { Placed } from "./delivery.ts";
import { type AccountState, expire, LEAST_WAIT_MS, type Outlet, type SendingDeps, sendOne } from "./send-part.ts";
import { accountOf, isExpired, recoverOutbox } from "./undelivered.ts";

export interface OutgoingDeps extends Pick<SendingDeps, "store" | "clock" | "log" | "delivery" | "quiet"> {
  readonly background: Background;
  /** Undefined for a pull door, and for a channel that is not set up any more: its parts stay where they are. */
  readonly outlet: (route: Route) => Outlet | undefined;
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

/** At a stop, what is being sent gets this long to be confirmed. */
const LAST_SENDS_MS = 5_000;

interface Line {
  /** In the order of their sequence. */
  readonly parts: PartId[];
  running: boolean;
  /** Its first part is not tried before; monotonic, so that a jump of the wall clock neither hurries nor holds it. */
  dueMono: number;
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
      isNext: (id: PartId) => line.parts[0] === id,
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

async function drainLine(line: Line, outlet: Outlet, deps: SendingDeps): Promise<void> {
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
async function untilDue(line: Line, { clock, account, signal }: SendingDeps): Promise<boolean> {
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
