// Owns: the list of named points at which a host is killed: before and after each kind of commit that it makes.
import { chatCommands, disk, outbox, owner } from "./crash-owner-scripts.ts";
import type { Script } from "./crash-scene.ts";
import { messages, recovery, stopping, upkeep } from "./crash-turn-scripts.ts";

/** The actions that reach the points. */
const SCRIPTS: readonly Script[] = [messages, recovery, upkeep, chatCommands, owner, stopping, outbox, disk];

/** As in `commit.before:finish#2`: the second time that the host is about to commit a `finish`. */
export const CRASH_POINTS: readonly string[] = SCRIPTS.flatMap(({ reaches }) =>
  reaches.flatMap((at) => [`commit.before:${at}`, `commit.after:${at}`]),
);

export interface PlannedDeath {
  readonly script: Script;
  /** What the script has the host commit until it dies there, in order. */
  readonly happened: readonly string[];
}

/** Which script leads to the point. Throws for a point that is in none. */
export function plannedDeath(point: string): PlannedDeath {
  const [, side, at = ""] = /^commit\.(before|after):(.*)$/.exec(point) ?? [];
  const script = SCRIPTS.find(({ reaches }) => reaches.includes(at));
  if (script === undefined) throw new Error(`expected one of ${CRASH_POINTS.join(", ")}, got ${point}`);
  return { script, happened: script.reaches.slice(0, script.reaches.indexOf(at) + (side === "after" ? 1 : 0)) };
}
