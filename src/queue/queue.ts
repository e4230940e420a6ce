// Owns: the lane queue as the rest of the host sees it: put in, cancel, look, recover, drain. Rows decide; memory follows
// after the commit.
import type { Clock } from "../kernel/clock.ts";
import type { CommandState, Events } from "../kernel/events.ts";
import type { CommandId } from "../kernel/ids.ts";
import type { Background, Log } from "../kernel/log.ts";
import {
  type BusyMode,
  type Command,
  chatKey,
  type NewCommand,
  type QueuedCommand,
  type StepKind,
} from "../store/commands.ts";
import type { Store, Tx } from "../store/store.ts";
import { absorbable, absorbIn } from "./absorb.ts";
import { type Cancelled, makeCancels } from "./cancel.ts";
import type { Outcome } from "./command.ts";
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
  /** Inside a write: cancels a live command with its transcript rows. Undefined when it had ended. */
  cancelIn(tx: Tx, id: CommandId, outcome: Outcome): Cancelled | undefined;
  /** After that write has committed: takes it out of the index or stops its work. */
  cancelled(cancelled: Cancelled): void;
  /** The waiting messages that a running turn may take into its next step, in their order. */
  absorbable(turn: Command, modes: readonly BusyMode[]): readonly CommandId[];
  /**
   * Takes them in at `step`, as far as they still wait; `write` runs in the same transaction when there is one. Rejects with
   * what `store.write` rejects with.
   */
  absorb(
    turn: Command,
    step: number,
    ids: readonly CommandId[],
    write: (tx: Tx, absorbed: readonly Command[]) => void,
  ): Promise<readonly Command[]>;
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
  const pump = makePump({
    ...{ ...deps, waiting, capacity },
    abortGraceMs: () => deps.settings().abortGraceMs,
    onReturned: (command) => offerAgain(command),
  });

  const emit = ({ id, session, route }: Pick<Command, "id" | "session" | "route">, state: CommandState) => {
    events.emit({ type: "command", id, session, chatKey: chatKey(route), state });
  };

  /** What a turn gave back stands at its old place again. */
  const offerAgain = (command: Command) => {
    if (store.read.commands.stateOf(command.id) !== "queued") return;
    waiting.add(waitingRow(command));
    emit(command, "queued");
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

  const cancels = makeCancels({ ...deps, waiting, pump, emit, offerAgain });

  return {
    reserve: makeReserve(waiting, deps.settings),
    insert(tx, command) {
      checkLane(command.lane);
      const id = tx.nextSeq() as CommandId;
      const { acceptedAt, priority } = command;
      const row = { ...command, orderKey: orderKey(acceptedAt, priority, deps.settings().lanes.agingMs) };
      tx.commands.insert(id, row, command.kind === "control" ? "done" : "queued");
      const { notBefore = 0, mode = "followup" } = command;
      return { ...row, id, notBefore, mode, open: false, strikes: 0 };
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
    absorbable: (turn, modes) => absorbable(waiting, turn, modes, clock.now()).map(({ id }) => id),
    async absorb(turn, step, ids, write) {
      const entries = ids.flatMap((id) => waiting.get(id) ?? []);
      const taken = await store.write("absorb", (tx) => {
        const absorbed = absorbIn(tx, turn, entries, step);
        if (absorbed.length > 0) write(tx, absorbed);
        return absorbed;
      });
      for (const command of taken) {
        waiting.remove(command.id);
        emit(command, "absorbed");
        log.info("command.absorbed", { commandId: command.id, by: turn.id, step });
      }
      return taken;
    },
    ...cancels,
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
