// Owns: the lane queue as the rest of the host sees it: put in, cancel, look, recover, drain. Rows decide; memory follows
// after the commit.
import type { Clock, Stop } from "../kernel/clock.ts";
import { NotFound, QueueFull } from "../kernel/errors.ts";
import type { CommandState, Events } from "../kernel/events.ts";
import type { CommandId, SessionKey } from "../kernel/ids.ts";
import type { Background, Log } from "../kernel/log.ts";
import { chatKey, type Command, type NewCommand, type StepKind } from "../store/commands.ts";
import type { Store, Tx } from "../store/store.ts";
import { isFinal, type Outcome } from "./command.ts";
import { checkLane, type LaneSizes, laneSize, makeCapacity } from "./lane.ts";
import { orderKey } from "./order.ts";
import { makePump, type Running, waitingRow } from "./pump.ts";
import { type Recovered, recover, runsAlone } from "./recover.ts";
import type { Runner } from "./runner.ts";
import { makeWaiting } from "./waiting.ts";

export interface QueueSettings {
  readonly lanes: LaneSizes & { readonly agingMs: number };
  /** Most queued commands of one session, and of the host. */
  readonly cap: number;
  readonly hostCap: number;
  readonly maxAgeMs: number;
  readonly abortGraceMs: number;
}

export interface LaneStatus {
  readonly lane: string;
  readonly size: number;
  readonly running: number;
  readonly queued: number;
  readonly oldestWaitMs: number | undefined;
}

export interface Queue {
  /**
   * Keeps a place for one more command of the session, to be given up by the returned Stop once the command is in the
   * index or was not accepted. Throws QueueFull at the session's or the host's cap (G15).
   */
  reserve(session: SessionKey): Stop;
  /** Inside a write: the row of a new command. Throws InvalidInput for a lane that is none. */
  insert(tx: Tx, command: Omit<NewCommand, "orderKey">): CommandId;
  /** After that write has committed: offers the command to its lane. */
  offer(id: CommandId): void;
  /** Inside a write: cancels a live command with its transcript rows. False when it had ended. */
  cancelIn(tx: Tx, command: Command, outcome: Outcome): boolean;
  /** After that write has committed: takes it out of the index or stops its work. */
  cancelled(command: Command): void;
  /** Both in one: the state that the command has now. Throws NotFound. */
  cancel(id: CommandId, outcome: Outcome): Promise<CommandState>;
  /** How many commands go before this queued one in its lane, those running not counted. */
  position(id: CommandId): number | undefined;
  progressed(id: CommandId, kind: StepKind): void;
  lanes(): LaneStatus[];
  running(): Iterable<Running>;
  size(): number;
  /** Recovers what an earlier host left, rebuilds the index and starts claiming. */
  start(): Promise<Recovered>;
  /**
   * No new claims; waits up to `ms` for running work, then stops it and has it handed back without penalty (G17).
   * Resolves when nothing runs or its grace is over.
   */
  drain(ms: number): Promise<void>;
}

interface QueueDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: Events;
  readonly background: Background;
  readonly runner: Runner;
  readonly settings: () => QueueSettings;
}

/** After the drain's time is over, stopped turns get this long to hand themselves back. */
const HAND_BACK_MS = 2_000;

export function makeQueue(deps: QueueDeps): Queue {
  const { store, clock, log, events } = deps;
  const waiting = makeWaiting(() => clock.now(), runsAlone);
  const capacity = makeCapacity(() => deps.settings().lanes);
  const pump = makePump({ ...deps, waiting, capacity, abortGraceMs: () => deps.settings().abortGraceMs });
  const reserved = new Map<SessionKey, number>();
  let reservedTotal = 0;
  events.on((event) => {
    if (event.type === "store.resumed") pump.go();
  });

  const emit = (command: Command, state: CommandState) => {
    events.emit({ type: "command", id: command.id, session: command.session, chatKey: chatKey(command.route), state });
  };

  const load = () => {
    for (const command of store.read.commands.running()) waiting.takeSession(command.session);
    for (const command of store.read.commands.queued()) waiting.add(waitingRow(command));
  };

  const cancelled = (command: Command) => {
    waiting.remove(command.id);
    pump.get(command.id)?.abort("cancelled");
    emit(command, "cancelled");
    log.info("command.finished", { commandId: command.id, state: "cancelled" });
    pump.go();
  };

  const cancelIn = (tx: Tx, command: Command, outcome: Outcome): boolean => {
    if (!tx.commands.cancel(command.id, clock.now(), JSON.stringify(outcome))) return false;
    deps.runner.cancelled(tx, command);
    return true;
  };

  return {
    reserve(session) {
      const { cap, hostCap } = deps.settings();
      const inSession = waiting.countOfSession(session) + (reserved.get(session) ?? 0);
      const inAll = waiting.size() + reservedTotal;
      if (inSession >= cap) throw full(`${inSession} messages of this conversation are waiting already`, "or use /stop");
      if (inAll >= hostCap) throw full(`${inAll} messages are waiting on this host already`, "or ask the owner");
      reserved.set(session, (reserved.get(session) ?? 0) + 1);
      reservedTotal += 1;
      return () => {
        const left = (reserved.get(session) ?? 1) - 1;
        if (left === 0) reserved.delete(session);
        else reserved.set(session, left);
        reservedTotal -= 1;
      };
    },
    insert(tx, command) {
      checkLane(command.lane);
      const id = tx.nextSeq() as CommandId;
      const key = orderKey(command.acceptedAt, command.priority, deps.settings().lanes.agingMs);
      tx.commands.insert(id, { ...command, orderKey: key }, command.kind === "control" ? "done" : "queued");
      return id;
    },
    offer(id) {
      const command = store.read.commands.get(id);
      if (command?.state !== "queued" || waiting.get(id) !== undefined) return;
      waiting.add(waitingRow(command));
      log.info("command.accepted", { commandId: id, lane: command.lane, session: command.session });
      emit(command, "queued");
      pump.go();
    },
    cancelIn,
    cancelled,
    async cancel(id, outcome) {
      const result = await store.write("cancel", (tx) => {
        const command = tx.commands.get(id);
        if (command === undefined) throw new NotFound(`there is no command ${id}`);
        return { command, done: !isFinal(command.state) && cancelIn(tx, command, outcome) };
      });
      if (result.done) cancelled(result.command);
      return result.done ? "cancelled" : result.command.state;
    },
    position(id) {
      const entry = waiting.get(id);
      if (entry === undefined) return undefined;
      let ahead = 0;
      for (const other of waiting.all()) {
        if (other.lane === entry.lane && (other.orderKey - entry.orderKey || other.id - entry.id) < 0) ahead += 1;
      }
      return ahead;
    },
    progressed: pump.progressed,
    lanes: () =>
      [...new Set([...capacity.lanes(), ...[...waiting.all()].map((entry) => entry.lane)])].map((lane) => ({
        lane,
        size: laneSize(lane, deps.settings().lanes),
        running: capacity.running(lane),
        queued: waiting.countOfLane(lane),
        oldestWaitMs: sinceOldest(waiting.oldestOfLane(lane), clock.now()),
      })),
    running: pump.running,
    size: waiting.size,
    async start() {
      const { runner } = deps;
      const { maxAgeMs } = deps.settings();
      const plannedStop = store.plannedStop;
      const now = clock.now();
      const recovered = await store.write("recover", (tx) => recover(tx, { runner, plannedStop, maxAgeMs, now }));
      load();
      log.info("queue.recovered", { requeued: recovered.requeued, dead: recovered.dead.length, queued: waiting.size() });
      pump.go();
      return recovered;
    },
    async drain(ms) {
      pump.close();
      const limit = new AbortController();
      const stopLimit = clock.after(ms, () => limit.abort("drain"));
      await Promise.race([pump.idle(), aborted(limit.signal)]);
      stopLimit();
      for (const one of pump.running()) one.abort("drain");
      const last = new AbortController();
      const stopLast = clock.after(HAND_BACK_MS, () => last.abort("drain"));
      await Promise.race([pump.idle(), aborted(last.signal)]);
      stopLast();
    },
  };
}

function full(message: string, orElse: string): QueueFull {
  return new QueueFull(message, { hint: `Nothing was accepted. Wait for some of them to be answered ${orElse}.` });
}

function sinceOldest(oldest: number | undefined, now: number): number | undefined {
  return oldest === undefined ? undefined : Math.max(0, now - oldest);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
