// Owns: choosing the next command, claiming it, having it worked off and committing its end. It takes capacity before the
// claim is written and gives it back on every way out.
import type { Clock, Stop } from "../kernel/clock.ts";
import { FencedOff, StoreUnavailable } from "../kernel/errors.ts";
import type { CommandState, Events } from "../kernel/events.ts";
import type { CommandId } from "../kernel/ids.ts";
import { type Background, errorFields, type Log } from "../kernel/log.ts";
import { chatKey, type Command, type StepKind, type WaitingRow } from "../store/commands.ts";
import type { Store, Tx } from "../store/store.ts";
import type { Capacity } from "./lane.ts";
import { compare } from "./order.ts";
import { runsAlone } from "./recover.ts";
import type { CommandEnd, Runner, StopReason } from "./runner.ts";
import type { Waiting } from "./waiting.ts";

/** After a claim that failed for no known cause, so that a bug costs one try a second and not the processor. */
const CLAIM_RETRY_MS = 1_000;

export interface Running {
  readonly command: Command;
  readonly abort: (reason: StopReason) => void;
  readonly startedMono: number;
}

export interface PumpDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: Events;
  readonly background: Background;
  readonly waiting: Waiting;
  readonly capacity: Capacity;
  readonly runner: Runner;
  /** How long a stopped command may take to end before its slot is freed without it. */
  readonly abortGraceMs: () => number;
}

export interface Pump {
  /** Starts what may start now. Cheap when nothing may. */
  go(): void;
  running(): Iterable<Running>;
  get(id: CommandId): Running | undefined;
  /** A step finished: a command that runs alone has shown that it does not kill the host. */
  progressed(id: CommandId, kind: StepKind): void;
  /** No further claims. */
  close(): void;
  /** Resolves when nothing runs. */
  idle(): Promise<void>;
}

export function makePump(deps: PumpDeps): Pump {
  const { store, clock, log, waiting, capacity } = deps;
  const running = new Map<CommandId, Running>();
  let inFlight = 0;
  let alone: CommandId | undefined;
  let closed = false;
  let stopTimer: Stop = () => {};
  let whenIdle: (() => void)[] = [];

  const go = () => {
    if (closed || store.paused()) return;
    for (let next = choose(); next !== undefined; next = choose()) start(next);
    armTimer();
  };

  const choose = (): WaitingRow | undefined => {
    if (alone !== undefined) return undefined;
    const suspect = firstSuspect(waiting);
    if (suspect !== undefined) return inFlight === 0 && capacity.mayStart(suspect) ? suspect : undefined;
    let best: WaitingRow | undefined;
    for (const lane of waiting.lanesWithCandidates()) {
      if (!capacity.hasRoom(lane)) continue;
      const first = waiting.candidates(lane).find((entry) => capacity.mayStart(entry));
      if (first !== undefined && (best === undefined || compare(first, best) < 0)) best = first;
    }
    return best;
  };

  const start = (entry: WaitingRow) => {
    waiting.remove(entry.id);
    waiting.takeSession(entry.session);
    capacity.take(entry);
    inFlight += 1;
    if (runsAlone(entry.strikes)) alone = entry.id;
    deps.background("queue.work", work(entry));
  };

  const work = async (entry: WaitingRow) => {
    try {
      const command = await claim(entry);
      if (command !== undefined) await runAndFinish(command);
    } finally {
      inFlight -= 1;
      running.delete(entry.id);
      if (alone === entry.id) alone = undefined;
      capacity.give(entry);
      waiting.freeSession(entry.session);
      go();
      if (inFlight === 0) for (const resolve of whenIdle.splice(0)) resolve();
    }
  };

  /** queued → running together with the first step's intent, committed before work begins. */
  const claim = async (entry: WaitingRow): Promise<Command | undefined> => {
    try {
      return await store.write("claim", (tx) => {
        const command = tx.commands.claim(entry.id, store.generation, clock.now());
        if (command !== undefined) deps.runner.begin(tx, command);
        return command;
      });
    } catch (thrown) {
      if (thrown instanceof FencedOff) return undefined;
      const expected = thrown instanceof StoreUnavailable;
      if (!expected) log.error("command.claim-failed", { commandId: entry.id, ...errorFields(thrown) });
      waiting.add(expected ? entry : { ...entry, notBefore: clock.now() + CLAIM_RETRY_MS });
      return undefined;
    }
  };

  const runAndFinish = async (command: Command) => {
    const controller = new AbortController();
    const startedMono = clock.mono();
    running.set(command.id, { command, abort: (reason) => controller.abort(reason), startedMono });
    changed(command, "running");
    log.info("command.started", {
      commandId: command.id,
      lane: command.lane,
      claim: command.claim,
      waitedMs: clock.now() - command.acceptedAt,
    });
    const end = await runGuarded(command, controller.signal);
    const state = end === undefined ? undefined : await settle(command, end);
    log.info("command.finished", {
      commandId: command.id,
      state: state ?? "fenced",
      ranMs: Math.round(clock.mono() - startedMono),
    });
    if (state !== undefined) changed(command, state);
  };

  /** The end of the work, or undefined when it was stopped and did not end within its grace. */
  const runGuarded = async (command: Command, signal: AbortSignal): Promise<CommandEnd | undefined> => {
    const overdue = Promise.withResolvers<undefined>();
    let stopGrace: Stop = () => {};
    signal.addEventListener("abort", () => {
      stopGrace = clock.after(deps.abortGraceMs(), () => overdue.resolve(undefined));
    });
    try {
      return await Promise.race([deps.runner.run(command, signal), overdue.promise]);
    } catch (thrown) {
      log.error("command.crashed", { commandId: command.id, ...errorFields(thrown) });
      return deps.runner.crashed(command, thrown);
    } finally {
      stopGrace();
    }
  };

  /** Commits the end. While the disk is full the result is held in memory and written when it can be (G14). */
  const settle = async (command: Command, end: CommandEnd): Promise<CommandState | undefined> => {
    for (let attempt = end; ; ) {
      try {
        const kept = await store.write("finish", (tx) => writeEnd(tx, command, attempt, clock.now()));
        if (kept && attempt.state === "handed-back") requeue(command.id);
        return kept ? (attempt.state === "handed-back" ? "queued" : attempt.state) : undefined;
      } catch (thrown) {
        if (thrown instanceof FencedOff) return undefined;
        if (thrown instanceof StoreUnavailable) await store.writable(new AbortController().signal);
        else if (attempt === end) {
          log.error("command.finish-failed", { commandId: command.id, ...errorFields(thrown) });
          attempt = deps.runner.crashed(command, thrown);
        } else throw thrown;
      }
    }
  };

  const requeue = (id: CommandId) => {
    const command = store.read.commands.get(id);
    if (command?.state === "queued") waiting.add(waitingRow(command));
  };

  const changed = (command: Command, state: CommandState) => {
    const { id, session, route } = command;
    deps.events.emit({ type: "command", id, session, chatKey: chatKey(route), state });
  };

  const armTimer = () => {
    stopTimer();
    const due = waiting.nextDue();
    if (due === undefined) return;
    stopTimer = clock.after(Math.max(0, due - clock.now()), () => {
      waiting.wake();
      go();
    });
  };

  return {
    go,
    running: () => running.values(),
    get: (id) => running.get(id),
    progressed(id, kind) {
      if (alone !== id || running.get(id)?.command.strikeKind !== kind) return;
      alone = undefined;
      go();
    },
    close() {
      closed = true;
      stopTimer();
    },
    idle: () => (inFlight === 0 ? Promise.resolve() : new Promise((resolve) => whenIdle.push(resolve))),
  };
}

/** The first command that must run alone and could run now: until it has shown progress, nothing else is claimed (G8). */
function firstSuspect(waiting: Waiting): WaitingRow | undefined {
  let first: WaitingRow | undefined;
  for (const suspect of waiting.suspects()) {
    const claimable = waiting.candidates(suspect.lane).includes(suspect);
    if (claimable && (first === undefined || compare(suspect, first) < 0)) first = suspect;
  }
  return first;
}

function writeEnd(tx: Tx, command: Command, end: CommandEnd, now: number): boolean {
  if (end.state === "handed-back") return tx.commands.handBack(command);
  const kept = tx.commands.finish(command, end.state, now, JSON.stringify(end.outcome));
  if (kept) end.write(tx);
  return kept;
}

/** What the index keeps of a command. */
export function waitingRow(command: Command): WaitingRow {
  const { id, lane, priority, orderKey, session, sender, actor, source, acceptedAt, notBefore, open, strikes } = command;
  return {
    id,
    lane,
    priority,
    orderKey,
    session,
    chatKey: chatKey(command.route),
    sender,
    actor,
    source,
    acceptedAt,
    notBefore,
    open,
    strikes,
  };
}
