// Owns: one host per data directory (G13). The lock is an exclusive transaction on lock.db, which the kernel frees when the
// process dies. Never open or close the lock file by ordinary file calls: closing any descriptor drops POSIX locks.
import Database from "better-sqlite3";
import type { Stop } from "../kernel/clock.ts";
import { AlreadyRunning, DataUnusable, messageOf, systemCode } from "../kernel/errors.ts";

/**
 * A host keeps the lock all its life, a rival start only for the moments in which SQLite climbs to it. Without a wait two
 * starts can meet half-way, see each other's half-taken lock and both give up, and a supervisor restarts neither.
 */
const RIVAL_WAIT_MS = 250;

/** Takes the lock or throws AlreadyRunning within a moment. `holder` tells who has it, for the message. */
export function takeLock(file: string, holder: () => string | undefined): Stop {
  const db = openLockFile(file);
  try {
    // Not WAL, so that an exclusive transaction keeps readers out too; and in memory, so that the lock can be taken on a full
    // disk, where the host must be able to start and wait.
    db.pragma("journal_mode = MEMORY");
    db.exec("begin exclusive");
  } catch (thrown) {
    db.close();
    const code = systemCode(thrown) ?? "";
    if (!code.startsWith("SQLITE_BUSY")) throw lockBroken(file, thrown);
    const who = holder();
    throw new AlreadyRunning(`another Laneway holds this data directory${who === undefined ? "" : ` (${who})`}`, {
      hint: "Use that one, stop it first, or set LANEWAY_HOME to another folder.",
      cause: thrown,
    });
  }
  return () => db.close();
}

function openLockFile(file: string): Database.Database {
  try {
    return new Database(file, { timeout: RIVAL_WAIT_MS });
  } catch (thrown) {
    throw lockBroken(file, thrown);
  }
}

function lockBroken(file: string, cause: unknown): DataUnusable {
  return new DataUnusable(`the lock file ${file} cannot be used: ${messageOf(cause)}`, {
    hint: "Check the disk and the rights of the folder. The file holds no data: when no Laneway runs on this home, it may be deleted.",
    cause,
  });
}
