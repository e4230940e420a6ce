// Owns: which lanes there are and how much each may run at once. Counts only; it knows no order and no rows.
import { InvalidInput } from "../kernel/errors.ts";

/** Sizes as the settings give them; every one is a number of commands that run at once. */
export interface LaneSizes {
  readonly main: number;
  readonly subagent: number;
  readonly cron: number;
  readonly "cron-nested": number;
  readonly background: number;
  readonly nestedTotal: number;
  readonly total: number;
  /** Slots of `main` kept for the owner, and of the total kept for `main`. */
  readonly mainReserved: number;
}

const FIXED_LANES = ["main", "subagent", "cron", "cron-nested", "background"] as const;
type FixedLane = (typeof FIXED_LANES)[number];
const NESTED = "nested:";

function isFixed(lane: string): lane is FixedLane {
  return FIXED_LANES.some((name) => name === lane);
}

/** Throws InvalidInput for a name that is no lane: any string is not a lane. */
export function checkLane(lane: string): void {
  if (isFixed(lane) || (lane.startsWith(NESTED) && lane.length > NESTED.length)) return;
  throw new InvalidInput(`"${lane}" is no lane; expected ${FIXED_LANES.join(", ")} or nested:<session>`);
}

export function laneSize(lane: string, sizes: LaneSizes): number {
  return isFixed(lane) ? sizes[lane] : 1;
}

/** What capacity needs to know of a command. `actor` is on whose authority it runs: capacity goes by actor. */
export interface Claimant {
  readonly lane: string;
  readonly actor: string;
}

export const OWNER = "owner";

export interface Capacity {
  /** Whether a slot is free for this command under every rule. */
  mayStart(claimant: Claimant): boolean;
  /** False when nobody of its kind, the owner or everybody else, can start in its lane: saves looking at their commands. */
  hasRoom(claimant: Claimant): boolean;
  take(claimant: Claimant): void;
  give(claimant: Claimant): void;
  running(lane: string): number;
  runningTotal(): number;
  /** Lanes that exist now: the fixed ones, and nested ones while something runs there. */
  lanes(): string[];
}

export function makeCapacity(sizes: () => LaneSizes): Capacity {
  const byLane = new Map<string, number>();
  const byActor = new Map<string, number>();
  let total = 0;
  let nested = 0;

  const running = (lane: string) => byLane.get(lane) ?? 0;
  const ofActor = (lane: string, actor: string) => byActor.get(`${lane} ${actor}`) ?? 0;

  const hasRoom = ({ lane, actor }: Claimant) => {
    const limits = sizes();
    const size = laneSize(lane, limits);
    if (running(lane) >= size || total >= limits.total) return false;
    if (lane === "main") {
      const others = running(lane) - ofActor(lane, OWNER);
      return actor === OWNER || others < size - Math.min(limits.mainReserved, size - 1);
    }
    if (total - running("main") >= limits.total - limits.mainReserved) return false;
    return !lane.startsWith(NESTED) || nested < limits.nestedTotal;
  };

  /** One sender has at most half a lane, rounded up. */
  const hasShare = ({ lane, actor }: Claimant) =>
    actor === OWNER || ofActor(lane, actor) < Math.ceil(laneSize(lane, sizes()) / 2);

  const change = ({ lane, actor }: Claimant, by: 1 | -1) => {
    bump(byLane, lane, by);
    bump(byActor, `${lane} ${actor}`, by);
    total += by;
    if (lane.startsWith(NESTED)) nested += by;
  };

  return {
    mayStart: (claimant) => hasRoom(claimant) && hasShare(claimant),
    hasRoom,
    take: (claimant) => change(claimant, 1),
    give: (claimant) => change(claimant, -1),
    running,
    runningTotal: () => total,
    lanes: () => [...new Set([...FIXED_LANES, ...byLane.keys()])],
  };
}

/** Counts that reach zero are removed, so that names that come and go do not pile up. */
function bump(counts: Map<string, number>, key: string, by: number): void {
  const next = (counts.get(key) ?? 0) + by;
  if (next === 0) counts.delete(key);
  else counts.set(key, next);
}
