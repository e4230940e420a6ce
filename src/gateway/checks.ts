// Owns: what `doctor` can tell only from inside the host, since only the host has the database open.
import { statfsSync, statSync } from "node:fs";
import type { Clock } from "../kernel/clock.ts";
import type { HomePaths } from "../settings/home.ts";
import type { Store } from "../store/store.ts";

export interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** Below this a day of work may not fit. */
const MIN_FREE_BYTES = 200 * 1024 * 1024;
/** Answers that nobody has fetched for a day. */
const OLD_PART_MS = 86_400_000;

export async function checkHost(deps: { store: Store; paths: HomePaths; clock: Clock }): Promise<Check[]> {
  return [
    present(deps.paths),
    integrity(deps.store),
    writable(deps.store),
    freeSpace(deps.paths),
    undelivered(deps.store, deps.clock),
  ];
}

/** Looks at the name only: opening the file here would drop the lock that this process holds on it. */
function present({ db }: HomePaths): Check {
  const there = statSync(db, { throwIfNoEntry: false }) !== undefined;
  const detail = there ? "there" : `${db} was removed while the host runs: what it keeps is gone at its end`;
  return { name: "database file", ok: there, detail };
}

function integrity(store: Store): Check {
  const found = store.integrity();
  return { name: "database", ok: found.length === 1 && found[0] === "ok", detail: found.slice(0, 3).join("; ") };
}

function writable(store: Store): Check {
  const paused = store.paused();
  return { name: "writing", ok: !paused, detail: paused ? "the disk cannot be written; it goes on by itself" : "ok" };
}

function freeSpace(paths: HomePaths): Check {
  const disk = statfsSync(paths.home);
  const free = disk.bavail * disk.bsize;
  return { name: "disk", ok: free >= MIN_FREE_BYTES, detail: `${Math.round(free / 1_048_576)} MB free` };
}

function undelivered(store: Store, clock: Clock): Check {
  const old = store.read.outbox.live(1_000).filter((part) => clock.now() - part.createdAt > OLD_PART_MS);
  const detail =
    old.length === 0 ? "nothing old" : `${old.length} parts wait for more than a day (laneway outbox list)`;
  return { name: "outbox", ok: old.length === 0, detail };
}
