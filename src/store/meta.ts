// Owns: the SQL of single facts about this data directory.
import type { Database } from "better-sqlite3";
import type { Generation } from "../kernel/ids.ts";

/** Larger than the free tail of a page, so that a probe of a full disk needs new space. */
const PROBE_BYTES = 65_536;

export function metaWrites(db: Database) {
  const put = db.prepare(
    "insert into meta (key, value) values (?, ?) on conflict (key) do update set value = excluded.value",
  );
  const drop = db.prepare("delete from meta where key = ?");
  return {
    /** This host was told to stop: what it leaves running takes no strike (G8). */
    planStop: (generation: Generation): void => {
      put.run("planned_stop", generation);
    },
    /** Writes and removes some bytes: it succeeds only when the disk can be written. */
    probe(): void {
      put.run("probe", Buffer.alloc(PROBE_BYTES, 1));
      drop.run("probe");
    },
  };
}
