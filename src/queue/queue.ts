// Owns: the lane queue as the rest of the host sees it: put in, cancel, look, recover, drain. Rows decide; memory follows
// after the commit.
import type { Clock } from "../kernel/clock.ts";
import { NotFound } from "../kernel/errors.ts";
import type { CommandState, Events } from "../kernel/events.ts";
import type { CommandId } from "../kernel/ids.ts";
import type { Background, Log } from "../kernel/log.ts";
import { type Command, chatKey, type NewCommand, type QueuedCommand, type StepKind } from "../store/commands.ts";
import type { Store, Tx } from "../store/store.ts";
import { isFinal, type Outcome } from "./command.ts";
import { type Capacity, checkLane, type LaneSizes, laneSize, makeCapacity } from "./lane.ts";
import { compare, orderKey } from "./order.ts";
import { type Caps, makeReserve, type Reserve } from "./places.ts";
import { makePump, type Pump, type Running } from "./pump.ts";
import { type Recovered, recover, runsAlone } from "./recover.ts";
import type { Runner } from "./runner.ts";
import { makeWaiting, type Waiting, waitingRow } from "./waiting.ts";

export interface QueueSettings extends Caps {
  readonly lanes: LaneSizes & { readonly agingMs: number };
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
  readonly reserve: Reserve;
  /** Inside a write: the row of a new command. Throws InvalidInput for a lane that is none. */
  insert(tx: Tx, command: Omit<NewCommand, "orderKey">): QueuedCommand;
  /** After that write has committed: offers the command to its lane, if it is still queued. */
  offer(command: QueuedCommand): void;
  /** After a write that changed when it may begin; nothing if it has begun. */
  postponed(command: { readonly id: CommandId; readonly notBefore: number }): void;
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
  /** Once: recovers what an earlier host left, rebuilds the index and starts claiming. Called again it answers the same. */
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

  const emit = ({ id, session, route }: Pick<Command, "id" | "session" | "route">, state: CommandState) => {
    events.emit({ type: "command", id, session, chatKey: chatKey(route), state });
  };

  let recovery: Promise<Recovered> | undefined;
  const recoverOnce = async (): Promise<Recovered> => {
    const options = {
      runner: deps.runner,
      plannedStop: store.plannedStop,
      maxAgeMs: deps.settings().maxAgeMs,
      now: clock.now(),
    };
    const recovered = await store.write("recover", (tx) => recover(tx, options));
    for (const command of store.read.commands.running()) waiting.takeSession(command.session);
    waiting.fill(store.read.commands.queued().map(waitingRow));
    const { requeued, dead } = recovered;
    log.info("queue.recovered", { requeued, dead: dead.length, queued: waiting.size() });
    pump.open();
    return recovered;
  };

  const cancelled = (command: Command) => {
    waiting.remove(command.id);
    // An ask holds its session without any work: here it ends.
    if (command.state === "waiting") waiting.freeSession(command.session);
    pump.stop(command.id, "cancelled");
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
    reserve: makeReserve(waiting, deps.settings),
    insert(tx, command) {
      checkLane(command.lane);
      const id = tx.nextSeq() as CommandId;
      const { acceptedAt, priority } = command;
      const row = { ...command, orderKey: orderKey(acceptedAt, priority, deps.settings().lanes.agingMs) };
      tx.commands.insert(id, row, command.kind === "control" ? "done" : "queued");
      return { ...row, id, notBefore: command.notBefore ?? 0, open: false, strikes: 0 };
    },
    offer(command) {
      const { id, lane, session } = command;
      if (store.read.commands.stateOf(id) !== "queued" || waiting.get(id) !== undefined) return;
      waiting.add(waitingRow(command));
      log.info("command.accepted", { commandId: id, lane, session });
      emit(command, "queued");
      pump.go();
    },
    postponed({ id, notBefore }) {
      const entry = waiting.get(id);
      if (entry === undefined) return;
      waiting.remove(id);
      waiting.add({ ...entry, notBefore });
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
    position: (id) => aheadOf(id, waiting),
    progressed: pump.progressed,
    lanes: () => lanesOf(waiting, capacity, deps.settings().lanes, clock.now()),
    running: pump.running,
    size: waiting.size,
    start() {
      recovery ??= recoverOnce();
      return recovery;
    },
    async drain(ms) {
      pump.close();
      await idleWithin(ms, pump, clock);
      pump.stopAll("drain");
      await idleWithin(HAND_BACK_MS, pump, clock);
    },
  };
}

function lanesOf(waiting: Waiting, capacity: Capacity, sizes: LaneSizes, now: number): LaneStatus[] {
  return [...new Set([...capacity.lanes(), ...waiting.lanes()])].map((lane) => ({
    lane,
    size: laneSize(lane, sizes),
    running: capacity.running(lane),
    queued: waiting.countOfLane(lane),
    oldestWaitMs: sinceOldest(waiting.oldestOfLane(lane), now),
  }));
}

function aheadOf(id: CommandId, waiting: Waiting): number | undefined {
  const entry = waiting.get(id);
  if (entry === undefined) return undefined;
  let ahead = 0;
  for (const other of waiting.all()) {
    if (other.lane === entry.lane && compare(other, entry) < 0) ahead += 1;
  }
  return ahead;
}

function sinceOldest(oldest: number | undefined, now: number): number | undefined {
  return oldest === undefined ? undefined : Math.max(0, now - oldest);
}

async function idleWithin(ms: number, pump: Pump, clock: Clock): Promise<void> {
  const late = Promise.withResolvers<void>();
  const stopLimit = clock.after(ms, late.resolve);
  await Promise.race([pump.idle(), late.promise]);
  stopLimit();
}
