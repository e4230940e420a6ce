// Owns: opening the database: lock, file system, pragmas, migrations, generation. After it the process is the one host of
// its data directory, or it has ended with a clear error.

import { dirname } from "node:path";
import Database from "better-sqlite3";
import type { Stop } from "../kernel/clock.ts";
import { DataUnusable, LanewayError, messageOf, StoreUnavailable, systemCode } from "../kernel/errors.ts";
import type { Generation } from "../kernel/ids.ts";
import { refuseNetworkFileSystem } from "./filesystem.ts";
import { takeLock } from "./lock.ts";
import { migrate, refuseNewer } from "./migrate.ts";
import { migrations as allMigrations, type Migration } from "./schema.ts";

export interface Opened {
  readonly db: Database.Database;
  readonly generation: Generation;
  /** The host before this one said that it would stop (SIGTERM): its end is no strike against what ran (G8). */
  readonly plannedStop: boolean;
  readonly close: Stop;
}

interface OpenOptions {
  readonly db: string;
  readonly lockDb: string;
  /** Names the host that holds the lock, for the message of exit 75. */
  readonly holder: () => string | undefined;
  readonly migrations?: readonly Migration[];
}

/**
 * Throws AlreadyRunning (75), DataUnusable (65), or StoreUnavailable when the disk is full or broken for now: then the data
 * is what it was, and a later start can succeed (G14).
 */
export function openDatabase(options: OpenOptions): Opened {
  const migrations = options.migrations ?? allMigrations;
  refuseNetworkFileSystem(dirname(options.db));
  const unlock = takeLock(options.lockDb, options.holder);
  let db: Database.Database | undefined;
  try {
    db = new Database(options.db);
    // Before anything is written: switching to WAL would change a file that is not ours to change.
    refuseNewer(db, migrations);
    setPragmas(db);
    migrate(db, migrations);
    const born = raiseGeneration(db);
    assertDurable(db);
    const opened = db;
    return {
      db,
      ...born,
      close: () => closeBoth(opened, unlock),
    };
  } catch (thrown) {
    closeBoth(db, unlock);
    throw thrown instanceof LanewayError ? thrown : unusable(options.db, thrown);
  }
}

/** The lock goes last, and goes whatever happens. */
function closeBoth(db: Database.Database | undefined, unlock: Stop): void {
  try {
    db?.close();
  } finally {
    unlock();
  }
}

function setPragmas(db: Database.Database): void {
  db.pragma("journal_mode = WAL");
  // Set after the switch to WAL: the build's own default there is NORMAL, which loses acknowledged rows at a power cut.
  db.pragma("synchronous = FULL");
  db.pragma("busy_timeout = 5000");
  // Each write of a batch is a savepoint; its undo pages would otherwise go through a temporary file, at twice the cost.
  db.pragma("temp_store = MEMORY");
  db.pragma("foreign_keys = ON");
  db.pragma("trusted_schema = OFF");
  db.pragma("wal_autocheckpoint = 1000");
  db.pragma(`journal_size_limit = ${64 * 1024 * 1024}`);
}

/**
 * Throws DataUnusable unless what is committed is also synced. Read back after the first write, because only then does the
 * drop to NORMAL show. 2 is FULL (sqlite.org/pragma.html).
 */
export function assertDurable(db: Database.Database): void {
  const found = {
    journal_mode: db.pragma("journal_mode", { simple: true }),
    synchronous: db.pragma("synchronous", { simple: true }),
    foreign_keys: db.pragma("foreign_keys", { simple: true }),
  };
  if (found.journal_mode === "wal" && found.synchronous === 2 && found.foreign_keys === 1) return;
  throw new DataUnusable(`expected WAL with synchronous=FULL and foreign keys on, found ${JSON.stringify(found)}`, {
    hint: "This build of SQLite cannot keep what it acknowledges; use the one in package-lock.json.",
  });
}

function raiseGeneration(db: Database.Database): { generation: Generation; plannedStop: boolean } {
  const read = db.prepare("select value from meta where key = ?").pluck();
  const put = db.prepare(
    "insert into meta (key, value) values (?, ?) on conflict (key) do update set value = excluded.value",
  );
  const raise = db.transaction(() => {
    const last = Number(read.get("generation") ?? 0);
    const plannedStop = Number(read.get("planned_stop") ?? -1) === last;
    put.run("generation", last + 1);
    return { generation: (last + 1) as Generation, plannedStop };
  });
  return raise.immediate();
}

function unusable(file: string, thrown: unknown): LanewayError {
  const code = systemCode(thrown) ?? "";
  const message = `the database ${file} cannot be opened: ${messageOf(thrown)}`;
  if (/^SQLITE_(FULL|IOERR|BUSY|NOMEM|PROTOCOL)/.test(code)) {
    const hint =
      "Nothing was deleted. Free space or mend the disk, close other programs that use the file, then start again.";
    return new StoreUnavailable(message, { hint, cause: thrown });
  }
  const hint = /CORRUPT|NOTADB/.test(code)
    ? "Keep the file as it is and restore the latest backup into a new home."
    : "Check the disk and the rights of the folder, then start again; nothing was deleted.";
  return new DataUnusable(message, { hint, cause: thrown });
}
