// Owns: choosing the next command and the slots. It takes capacity and session before the claim is written and gives both
// back on every way out.
import type { Stop } from "../kernel/clock.ts";
import type { CommandId } from "../kernel/ids.ts";
import type { Background } from "../kernel/log.ts";
import type { Command, StepKind } from "../store/commands.ts";
import type { Capacity } from "./lane.ts";
import { compare } from "./order.ts";
import { runsAlone } from "./recover.ts";
import type { StopReason } from "./runner.ts";
import type { Waiting, WaitingRow } from "./waiting.ts";
import { type WorkDeps, workOff } from "./work.ts";

export interface Running {
  readonly command: Command;
  readonly startedMono: number;
}

export interface PumpDeps extends WorkDeps {
  readonly background: Background;
  readonly waiting: Waiting;
  readonly capacity: Capacity;
}

export interface Pump {
  /** Starts what may start now. Cheap when nothing may. */
  go(): void;
  running(): Iterable<Running>;
  /** Tells the work of a command to stop, also while its claim is being written. Harmless when there is none. */
  stop(id: CommandId, reason: StopReason): void;
  stopAll(reason: StopReason): void;
  /** A step finished: a command that runs alone has shown that it does not kill the host. */
  progressed(id: CommandId, kind: StepKind): void;
  /** From now on there are claims: recovery is over. */
  open(): void;
  /** No further claims. */
  close(): void;
  /** Resolves when nothing runs. */
  idle(): Promise<void>;
}

export function makePump(deps: PumpDeps): Pump {
  const { store, clock, waiting, capacity, background } = deps;
  /** What holds a slot, from before its claim is written until its end is. */
  const inFlight = new Map<CommandId, AbortController>();
  const running = new Map<CommandId, Running>();
  let alone: CommandId | undefined;
  let isOpen = false;
  let awaitsStore = false;
  let stopTimer: Stop = () => {};
  const whenIdle: (() => void)[] = [];

  const go = () => {
    if (!isOpen) return;
    if (store.paused()) return goWhenWritable();
    waiting.wake();
    while (alone === undefined) {
      const next = choose(waiting, capacity, inFlight.size === 0);
      if (next === undefined) break;
      start(next);
    }
    armTimer();
  };

  const goWhenWritable = () => {
    if (awaitsStore) return;
    awaitsStore = true;
    const resume = async () => {
      await store.writable(new AbortController().signal);
      awaitsStore = false;
      go();
    };
    background("queue.resume", resume());
  };

  const start = (entry: WaitingRow) => {
    const controller = new AbortController();
    waiting.takeSession(entry.session);
    waiting.remove(entry.id);
    capacity.take(entry);
    inFlight.set(entry.id, controller);
    if (runsAlone(entry.strikes)) alone = entry.id;
    background("queue.work", work(entry, controller.signal));
  };

  const work = async (entry: WaitingRow, signal: AbortSignal) => {
    try {
      const back = await workOff(entry, signal, deps, (command) => {
        running.set(entry.id, { command, startedMono: clock.mono() });
      });
      if (back !== undefined) waiting.add(back);
    } finally {
      inFlight.delete(entry.id);
      running.delete(entry.id);
      if (alone === entry.id) alone = undefined;
      capacity.give(entry);
      waiting.freeSession(entry.session);
      go();
      if (inFlight.size === 0) for (const resolve of whenIdle.splice(0)) resolve();
    }
  };

  const armTimer = () => {
    stopTimer();
    const due = waiting.nextDue();
    if (due === undefined) return;
    stopTimer = clock.after(Math.max(0, due - clock.now()), go);
  };

  return {
    go,
    running: () => running.values(),
    stop: (id, reason) => inFlight.get(id)?.abort(reason),
    stopAll(reason) {
      for (const controller of inFlight.values()) controller.abort(reason);
    },
    progressed(id, kind) {
      if (alone !== id || running.get(id)?.command.strikeKind !== kind) return;
      alone = undefined;
      go();
    },
    open() {
      isOpen = true;
      go();
    },
    close() {
      isOpen = false;
      stopTimer();
    },
    idle: () => (inFlight.size === 0 ? Promise.resolve() : new Promise((resolve) => whenIdle.push(resolve))),
  };
}

/** The smallest key over all lanes, of those that may start now. While a suspect could go, nothing else does (G8). */
function choose(waiting: Waiting, capacity: Capacity, idle: boolean): WaitingRow | undefined {
  const suspect = firstSuspect(waiting);
  if (suspect !== undefined) return idle && capacity.mayStart(suspect) ? suspect : undefined;
  let best: WaitingRow | undefined;
  for (const list of waiting.ready()) {
    if (list[0] === undefined || !capacity.hasRoom(list[0])) continue;
    const first = list.find((entry) => capacity.mayStart(entry));
    if (first !== undefined && (best === undefined || compare(first, best) < 0)) best = first;
  }
  return best;
}

/** The first command that must run alone and whose session lets it go. */
function firstSuspect(waiting: Waiting): WaitingRow | undefined {
  let first: WaitingRow | undefined;
  for (const suspect of waiting.suspects()) {
    if (waiting.isReady(suspect) && (first === undefined || compare(suspect, first) < 0)) first = suspect;
  }
  return first;
}
