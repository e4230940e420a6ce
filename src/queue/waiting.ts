// Owns: the in-memory index of queued commands: for each lane, in order, those that may go now as far as their sessions and
// senders are concerned. It is rebuilt at boot from the rows and never decides anything that the rows do not back.
import type { CommandId, SessionKey } from "../kernel/ids.ts";
import { type BusyMode, chatKey, type QueuedCommand } from "../store/commands.ts";
import { OWNER } from "./lane.ts";
import { insertOrdered, removeOrdered } from "./order.ts";

/** What the index keeps of a queued command. */
export interface WaitingRow {
  readonly id: CommandId;
  readonly lane: string;
  readonly orderKey: number;
  readonly session: SessionKey;
  readonly actor: string;
  readonly acceptedAt: number;
  readonly notBefore: number;
  readonly open: boolean;
  readonly strikes: number;
  readonly mode: BusyMode;
  readonly chat: string;
  /** Lane, sender and route: commands of one line go in the order of their ids. Absent: it neither holds nor is held. */
  readonly line: string | undefined;
}

/** Sources whose commands nobody wrote: one that is blocked holds back nobody. */
const IN_NO_LINE = new Set(["announce", "background", "heartbeat", "review"]);

export function waitingRow(command: QueuedCommand): WaitingRow {
  const { id, lane, orderKey, session, actor, acceptedAt, notBefore, mode, open, strikes } = command;
  const chat = chatKey(command.route);
  const line = IN_NO_LINE.has(command.source) ? undefined : `${lane} ${command.sender} ${chat}`;
  return { id, lane, orderKey, session, actor, acceptedAt, notBefore, mode, open, strikes, chat, line };
}

/** What waits in one session. */
interface Queued {
  /** In the order of their keys. */
  readonly entries: WaitingRow[];
  /** A command has the session now. */
  taken: boolean;
  /** Those of its entries that stand in the ready lists. */
  candidates: WaitingRow[];
}

export interface Waiting {
  add(entry: WaitingRow): void;
  /** Adds many at the price of one look at each session. */
  fill(entries: Iterable<WaitingRow>): void;
  /** Takes a command out, if it is there. */
  remove(id: CommandId): void;
  get(id: CommandId): WaitingRow | undefined;
  /** A session that is taken offers no candidate. */
  takeSession(session: SessionKey): void;
  freeSession(session: SessionKey): void;
  /**
   * What may go, in lists that are in order and not empty: one for the owner's commands in a lane, one for everybody else's.
   * Of each free session the first of each actor is there, since capacity goes by actor.
   */
  ready(): Iterable<readonly WaitingRow[]>;
  isReady(entry: WaitingRow): boolean;
  /** What waits in a session, in the order of the keys. */
  ofSession(session: SessionKey): readonly WaitingRow[];
  countOfSession(session: SessionKey): number;
  /** Lanes in which something waits. */
  lanes(): Iterable<string>;
  countOfLane(lane: string): number;
  oldestOfLane(lane: string): number | undefined;
  size(): number;
  /** Commands that must run alone (G8): rare, so the pump looks for them only when there are some. */
  suspects(): Iterable<WaitingRow>;
  /** When the next back-off ends, in wall-clock ms. */
  nextDue(): number | undefined;
  /** Offers the commands whose back-off has ended. */
  wake(): void;
  all(): Iterable<WaitingRow>;
}

export function makeWaiting(now: () => number, runsAlone: (strikes: number) => boolean): Waiting {
  const byId = new Map<CommandId, WaitingRow>();
  const sessions = new Map<SessionKey, Queued>();
  const ready = new Map<string, WaitingRow[]>();
  const laneCounts = new Map<string, number>();
  const backingOff = new Set<WaitingRow>();
  const suspects = new Set<WaitingRow>();

  const of = (session: SessionKey): Queued => {
    let found = sessions.get(session);
    if (found === undefined) {
      found = { entries: [], taken: false, candidates: [] };
      sessions.set(session, found);
    }
    return found;
  };

  const refresh = (session: SessionKey) => {
    const queued = of(session);
    for (const old of queued.candidates) withdraw(ready, old);
    queued.candidates = queued.taken ? [] : eligible(queued.entries, now());
    for (const entry of queued.candidates) offer(ready, entry);
    if (queued.entries.length === 0 && !queued.taken) sessions.delete(session);
  };

  const setTaken = (session: SessionKey, taken: boolean) => {
    of(session).taken = taken;
    refresh(session);
  };

  const place = (entry: WaitingRow) => {
    if (byId.has(entry.id)) return;
    byId.set(entry.id, entry);
    laneCounts.set(entry.lane, (laneCounts.get(entry.lane) ?? 0) + 1);
    if (entry.notBefore > now()) backingOff.add(entry);
    if (runsAlone(entry.strikes)) suspects.add(entry);
    insertOrdered(of(entry.session).entries, entry);
  };

  return {
    add(entry) {
      place(entry);
      refresh(entry.session);
    },
    fill(entries) {
      for (const entry of entries) place(entry);
      for (const session of [...sessions.keys()]) refresh(session);
    },
    remove(id) {
      const entry = byId.get(id);
      if (entry === undefined) return;
      byId.delete(id);
      backingOff.delete(entry);
      suspects.delete(entry);
      const left = (laneCounts.get(entry.lane) ?? 1) - 1;
      if (left === 0) laneCounts.delete(entry.lane);
      else laneCounts.set(entry.lane, left);
      removeOrdered(of(entry.session).entries, entry);
      refresh(entry.session);
    },
    get: (id) => byId.get(id),
    takeSession: (session) => setTaken(session, true),
    freeSession: (session) => setTaken(session, false),
    ready: () => ready.values(),
    isReady: (entry) => sessions.get(entry.session)?.candidates.includes(entry) ?? false,
    ofSession: (session) => sessions.get(session)?.entries ?? [],
    countOfSession: (session) => sessions.get(session)?.entries.length ?? 0,
    lanes: () => laneCounts.keys(),
    countOfLane: (lane) => laneCounts.get(lane) ?? 0,
    oldestOfLane(lane) {
      let oldest: number | undefined;
      for (const entry of byId.values()) {
        if (entry.lane === lane && (oldest === undefined || entry.acceptedAt < oldest)) oldest = entry.acceptedAt;
      }
      return oldest;
    },
    size: () => byId.size,
    suspects: () => suspects,
    nextDue() {
      let next: number | undefined;
      for (const entry of backingOff) if (next === undefined || entry.notBefore < next) next = entry.notBefore;
      return next;
    },
    wake() {
      for (const entry of backingOff) {
        if (entry.notBefore > now()) continue;
        backingOff.delete(entry);
        refresh(entry.session);
      }
    },
    all: () => byId.values(),
  };
}

function groupOf({ lane, actor }: WaitingRow): string {
  return actor === OWNER ? `owner ${lane}` : `others ${lane}`;
}

function offer(ready: Map<string, WaitingRow[]>, entry: WaitingRow): void {
  const list = ready.get(groupOf(entry));
  if (list === undefined) ready.set(groupOf(entry), [entry]);
  else insertOrdered(list, entry);
}

function withdraw(ready: Map<string, WaitingRow[]>, entry: WaitingRow): void {
  const list = ready.get(groupOf(entry));
  if (list === undefined) return;
  removeOrdered(list, entry);
  if (list.length === 0) ready.delete(groupOf(entry));
}

/**
 * The commands of one free session that may go: the first of each actor in each lane. A half-done turn (`open`) has the
 * session for itself. Within a line only the earliest may go, so that one in back-off holds back the later ones; by id and
 * not by key, because a wall clock that was set back gives later messages smaller keys.
 */
function eligible(entries: readonly WaitingRow[], now: number): WaitingRow[] {
  const open = entries.find((entry) => entry.open);
  if (open !== undefined) return open.notBefore <= now ? [open] : [];
  const heads = new Map<string, CommandId>();
  for (const { line, id } of entries) {
    if (line !== undefined && id < (heads.get(line) ?? Infinity)) heads.set(line, id);
  }
  const first = new Map<string, WaitingRow>();
  for (const entry of entries) {
    const held = entry.line !== undefined && heads.get(entry.line) !== entry.id;
    const slot = `${entry.lane} ${entry.actor}`;
    if (!held && entry.notBefore <= now && !first.has(slot)) first.set(slot, entry);
  }
  return [...first.values()];
}
