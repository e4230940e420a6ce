// Owns: the in-memory index of queued commands: for each lane, in order, the first command of each free session that may go.
// It is rebuilt at boot from the rows and never decides anything that the rows do not back.
import type { CommandId, SessionKey } from "../kernel/ids.ts";
import type { WaitingRow } from "../store/commands.ts";
import { compare, insertOrdered, removeOrdered } from "./order.ts";

/** Sources whose blocked commands hold back nobody. */
const HOLDS_NOBODY = new Set(["announce", "background", "heartbeat", "review"]);

interface Line {
  readonly entries: WaitingRow[];
  /** The command that has the session now. */
  busy: boolean;
  /** Candidates of this session that stand in the ready lists. */
  candidates: WaitingRow[];
}

export interface Waiting {
  add(entry: WaitingRow): void;
  /** Takes a command out; undefined when it is not there. */
  remove(id: CommandId): WaitingRow | undefined;
  get(id: CommandId): WaitingRow | undefined;
  /** A session that is taken offers no candidate. */
  takeSession(session: SessionKey): void;
  freeSession(session: SessionKey): void;
  isBusy(session: SessionKey): boolean;
  lanesWithCandidates(): Iterable<string>;
  /** The candidates of a lane in order: one a session. */
  candidates(lane: string): readonly WaitingRow[];
  countOfSession(session: SessionKey): number;
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
  const lines = new Map<SessionKey, Line>();
  const ready = new Map<string, WaitingRow[]>();
  const laneCounts = new Map<string, number>();
  const backingOff = new Set<WaitingRow>();
  const suspects = new Set<WaitingRow>();

  const lineOf = (session: SessionKey): Line => {
    let line = lines.get(session);
    if (line === undefined) {
      line = { entries: [], busy: false, candidates: [] };
      lines.set(session, line);
    }
    return line;
  };

  const refresh = (session: SessionKey, line: Line) => {
    for (const old of line.candidates) withdraw(ready, old);
    line.candidates = line.busy ? [] : eligible(line.entries, now());
    for (const entry of line.candidates) offer(ready, entry);
    if (line.entries.length === 0 && !line.busy) lines.delete(session);
  };

  const setBusy = (session: SessionKey, busy: boolean) => {
    const line = lineOf(session);
    line.busy = busy;
    refresh(session, line);
  };

  return {
    add(entry) {
      byId.set(entry.id, entry);
      laneCounts.set(entry.lane, (laneCounts.get(entry.lane) ?? 0) + 1);
      if (entry.notBefore > now()) backingOff.add(entry);
      if (runsAlone(entry.strikes)) suspects.add(entry);
      const line = lineOf(entry.session);
      insertOrdered(line.entries, entry);
      refresh(entry.session, line);
    },
    remove(id) {
      const entry = byId.get(id);
      if (entry === undefined) return undefined;
      byId.delete(id);
      backingOff.delete(entry);
      suspects.delete(entry);
      const left = (laneCounts.get(entry.lane) ?? 1) - 1;
      if (left === 0) laneCounts.delete(entry.lane);
      else laneCounts.set(entry.lane, left);
      const line = lineOf(entry.session);
      removeOrdered(line.entries, entry);
      refresh(entry.session, line);
      return entry;
    },
    get: (id) => byId.get(id),
    takeSession: (session) => setBusy(session, true),
    freeSession: (session) => setBusy(session, false),
    isBusy: (session) => lines.get(session)?.busy ?? false,
    lanesWithCandidates: () => ready.keys(),
    candidates: (lane) => ready.get(lane) ?? [],
    countOfSession: (session) => lines.get(session)?.entries.length ?? 0,
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
        const line = lines.get(entry.session);
        if (line !== undefined) refresh(entry.session, line);
      }
    },
    all: () => byId.values(),
  };
}

function offer(ready: Map<string, WaitingRow[]>, entry: WaitingRow): void {
  const list = ready.get(entry.lane);
  if (list === undefined) ready.set(entry.lane, [entry]);
  else insertOrdered(list, entry);
}

function withdraw(ready: Map<string, WaitingRow[]>, entry: WaitingRow): void {
  const list = ready.get(entry.lane);
  if (list === undefined) return;
  removeOrdered(list, entry);
  if (list.length === 0) ready.delete(entry.lane);
}

/**
 * The commands of one free session that may go: the first of each lane. A half-done turn (`open`) has the session for itself.
 * A command in back-off holds back the later ones of its sender on its route, so that their order is kept.
 */
function eligible(entries: readonly WaitingRow[], now: number): WaitingRow[] {
  const open = entries.find((entry) => entry.open);
  if (open !== undefined) return open.notBefore <= now ? [open] : [];
  const first = new Map<string, WaitingRow>();
  const held = new Set<string>();
  for (const entry of entries) {
    const line = `${entry.sender} ${entry.chatKey}`;
    if (entry.notBefore > now) {
      if (!HOLDS_NOBODY.has(entry.source)) held.add(line);
    } else if (!held.has(line) && !first.has(entry.lane)) {
      first.set(entry.lane, entry);
    }
  }
  return [...first.values()].sort(compare);
}
