// Owns: the one door to the database. Reads are direct; every write goes through `write`, which groups commits. While the
// disk cannot be written the store is paused: writes are refused at once, and a probe opens it again by itself (G14).

import { backoffMs } from "../kernel/backoff.ts";
import type { Clock, Stop } from "../kernel/clock.ts";
import type { CrashPoint } from "../kernel/crashpoint.ts";
import { Aborted, type DataUnusable, type FencedOff, StoreUnavailable } from "../kernel/errors.ts";
import type { Events } from "../kernel/events.ts";
import type { Generation, RowSeq } from "../kernel/ids.ts";
import { errorFields, type Log } from "../kernel/log.ts";
import { absorbedWrites } from "./absorbed.ts";
import { auditReads, auditWrites } from "./audit.ts";
import { makeAttempt, makeBatch } from "./batch.ts";
import { chatReads } from "./chats.ts";
import { commandReads, commandWrites } from "./commands.ts";
import { inboxReads, inboxWrites } from "./inbox.ts";
import { messageReads, messageWrites } from "./messages.ts";
import { metaWrites } from "./meta.ts";
import type { Opened } from "./open.ts";
import { outboxReads, outboxWrites } from "./outbox.ts";
import { peerReads, peerWrites } from "./peers.ts";
import { positionReads, positionWrites } from "./positions.ts";
import { rejectedWrites } from "./rejected.ts";
import { sessionReads, sessionWrites } from "./sessions.ts";
import { stepReads, stepWrites } from "./steps.ts";

/** Space comes back within 30 s of a full disk being cleared (G14), so the probe never waits longer than 10 s. */
const PROBE = { baseMs: 500, factor: 2, maxMs: 10_000, jitter: 0 };

function makeReads(db: Opened["db"]) {
  return {
    commands: commandReads(db),
    steps: stepReads(db),
    messages: messageReads(db),
    outbox: outboxReads(db),
    inbox: inboxReads(db),
    chats: chatReads(db),
    positions: positionReads(db),
    peers: peerReads(db),
    sessions: sessionReads(db),
    audit: auditReads(db),
  };
}

function makeTables(db: Opened["db"], nextSeq: () => RowSeq, generation: Generation) {
  return {
    generation,
    /** The next number of the one row sequence. Gaps are harmless. */
    nextSeq,
    /** One of several things of a write that may fail alone. */
    attempt: makeAttempt(db),
    meta: metaWrites(db),
    commands: { ...commandWrites(db), ...absorbedWrites(db) },
    steps: stepWrites(db),
    messages: messageWrites(db),
    outbox: outboxWrites(db),
    inbox: inboxWrites(db),
    chats: chatReads(db),
    positions: positionWrites(db),
    peers: peerWrites(db),
    rejected: rejectedWrites(db),
    sessions: sessionWrites(db),
    audit: auditWrites(db),
  };
}

export type Reads = ReturnType<typeof makeReads>;
/** The tables inside a write. Never kept beyond it. */
export type Tx = ReturnType<typeof makeTables>;

export interface Store {
  readonly generation: Generation;
  readonly plannedStop: boolean;
  readonly read: Reads;
  /**
   * Runs `fn` in the next commit and resolves with its value after that commit. `fn` is SQL only: it may run in a
   * transaction that is rolled back, so memory changes after the promise resolves, never inside.
   * Rejects with StoreUnavailable when the disk could not be written, or with what `fn` threw; in both cases nothing was kept.
   * One doubt remains: after a sync that failed, a death before the next commit can leave the rejected batch in the log, as
   * whole as any, and the next boot finds it committed. So whoever retries does it by a unique key, never by this rejection.
   * `fn` lets errors of its SQL pass: after some of them SQLite has ended the transaction, and what ran on would be outside it.
   */
  write<T>(name: string, fn: (tx: Tx) => T): Promise<T>;
  /** Resolves at once when writable, else when the disk can be written again. Rejects with Aborted. */
  writable(signal: AbortSignal): Promise<void>;
  readonly paused: () => boolean;
  /** Runs SQLite's own check of the whole file: `["ok"]`, or what is wrong. */
  integrity(): string[];
  backup(file: string): Promise<void>;
  close: Stop;
}

interface StoreDeps {
  readonly opened: Opened;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: Events;
  readonly crashPoint: CrashPoint;
  /** Nothing can be written any more, for good: another host has taken over, or the file is damaged. */
  readonly onFatal: (error: FencedOff | DataUnusable) => void;
}

export function makeStore(deps: StoreDeps): Store {
  const { db, generation, plannedStop } = deps.opened;
  const read = makeReads(db);
  let lastSeq = Math.max(read.commands.lastId(), read.messages.lastId(), read.outbox.lastId());
  const nextSeq = () => ++lastSeq as RowSeq;
  const tx = makeTables(db, nextSeq, generation);
  const pause = makePause(deps, () => batch.write("probe", () => tx.meta.probe()));
  const batch = makeBatch({
    db,
    generation,
    crashPoint: deps.crashPoint,
    onFatal: deps.onFatal,
    onUnavailable: pause.begin,
  });
  return {
    generation,
    plannedStop,
    read,
    write<T>(name: string, fn: (tx: Tx) => T): Promise<T> {
      const why = pause.why();
      return why === undefined ? batch.write(name, () => fn(tx)) : Promise.reject(why);
    },
    writable: pause.over,
    paused: () => pause.why() !== undefined,
    integrity: () => (db.pragma("integrity_check") as { integrity_check: string }[]).map((row) => row.integrity_check),
    backup: async (file) => {
      await db.backup(file);
    },
    close() {
      batch.flush();
      pause.stop(new StoreUnavailable("the database is closed"));
      deps.opened.close();
    },
  };
}

/** The pause after a write that the disk refused, and the probe that ends it. */
function makePause(deps: StoreDeps, probe: () => Promise<unknown>) {
  const { clock, log, events } = deps;
  let cause: StoreUnavailable | undefined;
  let stopTimer: Stop = () => {};
  let stopped = false;
  let ended = Promise.withResolvers<void>();
  const tryAgain = (attempt: number) => {
    if (stopped) return;
    stopTimer = clock.after(backoffMs(PROBE, attempt, 0.5), () => {
      probe().then(end, () => tryAgain(attempt + 1));
    });
  };
  const end = () => {
    if (stopped) return;
    cause = undefined;
    log.info("store.resumed");
    ended.resolve();
    ended = Promise.withResolvers<void>();
    events.emit({ type: "store.resumed" });
  };
  return {
    why: () => cause,
    begin(error: StoreUnavailable) {
      if (cause !== undefined) return;
      cause = error;
      log.error("store.paused", errorFields(error));
      events.emit({ type: "store.paused" });
      tryAgain(1);
    },
    async over(signal: AbortSignal): Promise<void> {
      while (cause !== undefined) {
        if (signal.aborted) throw new Aborted(signal.reason);
        const stopped = Promise.withResolvers<never>();
        const onAbort = () => stopped.reject(new Aborted(signal.reason));
        signal.addEventListener("abort", onAbort, { once: true });
        try {
          await Promise.race([ended.promise, stopped.promise]);
        } finally {
          signal.removeEventListener("abort", onAbort);
        }
      }
    },
    /** For good: a probe in flight changes nothing any more, and writes are refused with `why`. */
    stop(why: StoreUnavailable) {
      stopped = true;
      cause = why;
      stopTimer();
    },
  };
}
