// Owns: group commit. The writes of one loop turn share one transaction and one sync; each has a savepoint, so that one that
// fails fails alone. When SQLite gave the whole transaction up (full disk, I/O error, damage), nothing of the batch was kept
// and everybody is told so.
import type { Database } from "better-sqlite3";
import type { CrashPoint } from "../kernel/crashpoint.ts";
import { DataUnusable, FencedOff, messageOf, StoreUnavailable, systemCode } from "../kernel/errors.ts";
import type { Generation } from "../kernel/ids.ts";

interface Write {
  readonly name: string;
  readonly run: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

type Result<T = unknown> = { ok: true; value: T } | { ok: false; error: unknown };

interface BatchDeps {
  readonly db: Database;
  readonly generation: Generation;
  readonly crashPoint: CrashPoint;
  /** The whole batch was rolled back by a cause outside of it. */
  readonly onUnavailable: (error: StoreUnavailable) => void;
  /** No write will ever succeed again in this process: it must end with the error's exit code. */
  readonly onFatal: (error: FencedOff | DataUnusable) => void;
}

export interface Batch {
  /** Runs `fn`, which is SQL only, in the next commit. Resolves after that commit; rejects when nothing of it was kept. */
  write<T>(name: string, fn: () => T): Promise<T>;
  /** Commits what is waiting now. For shutdown. */
  flush(): void;
}

export function makeBatch(deps: BatchDeps): Batch {
  const { db } = deps;
  const begin = db.prepare("begin immediate");
  const commit = db.prepare("commit");
  const rollback = db.prepare("rollback");
  const savepoint = db.prepare("savepoint one_write");
  const release = db.prepare("release one_write");
  const rollbackTo = db.prepare("rollback to one_write");
  const readGeneration = db.prepare("select value from meta where key = 'generation'").pluck();
  let waiting: Write[] = [];

  const runOne = (write: Write): Result => {
    savepoint.run();
    try {
      const value = write.run();
      if (value instanceof Promise)
        throw new TypeError(`the write "${write.name}" is asynchronous: it would run on outside`);
      release.run();
      return { ok: true, value };
    } catch (error) {
      if (!db.inTransaction || isStorageFault(error)) throw new WholeBatch(error);
      rollbackTo.run();
      release.run();
      return { ok: false, error };
    }
  };

  const runAll = (writes: readonly Write[]): Result[] => {
    begin.run();
    const current = readGeneration.get();
    if (current !== deps.generation) {
      throw new FencedOff(`another host took over (generation ${String(current)}, this one is ${deps.generation})`);
    }
    const results = writes.map(runOne);
    for (const write of writes) deps.crashPoint(`commit.before:${write.name}`);
    commit.run();
    for (const write of writes) deps.crashPoint(`commit.after:${write.name}`);
    return results;
  };

  const endTransaction = () => {
    try {
      if (db.inTransaction) rollback.run();
    } catch {
      // The writers must hear of it in any case. A transaction that stays open makes the next `begin` fail, which comes here again.
    }
  };

  const flush = () => {
    const writes = waiting;
    if (writes.length === 0) return;
    waiting = [];
    let results: Result[];
    try {
      results = runAll(writes);
    } catch (thrown) {
      endTransaction();
      rejectAll(writes, thrown, deps);
      return;
    }
    writes.forEach((write, i) => {
      const result = results[i];
      if (result?.ok === true) write.resolve(result.value);
      else write.reject(result?.error);
    });
  };

  return {
    write<T>(name: string, fn: () => T): Promise<T> {
      return new Promise<T>((resolve, reject) => {
        if (waiting.length === 0) setImmediate(flush);
        waiting.push({ name, run: fn, resolve: (value) => resolve(value as T), reject });
      });
    },
    flush,
  };
}

/**
 * Inside a write: runs `fn` in a savepoint of its own, so that what it wrote can fail alone. Faults of the disk pass on: they end
 * the whole batch.
 */
export function makeAttempt(db: Database): <T>(fn: () => T) => Result<T> {
  const savepoint = db.prepare("savepoint one_attempt");
  const release = db.prepare("release one_attempt");
  const rollbackTo = db.prepare("rollback to one_attempt");
  return (fn) => {
    savepoint.run();
    try {
      const value = fn();
      release.run();
      return { ok: true, value };
    } catch (error) {
      if (!db.inTransaction || isStorageFault(error)) throw error;
      rollbackTo.run();
      release.run();
      return { ok: false, error };
    }
  };
}

/** Carries the error that ended the whole transaction out of the loop. */
class WholeBatch extends Error {
  constructor(cause: unknown) {
    super("the transaction was given up", { cause });
  }
}

function rejectAll(writes: readonly Write[], thrown: unknown, deps: BatchDeps): void {
  const error = told(thrown instanceof WholeBatch ? thrown.cause : thrown);
  if (error instanceof StoreUnavailable) deps.onUnavailable(error);
  else deps.onFatal(error);
  for (const write of writes) write.reject(error);
}

/** What the cause means for those who wait: some pass by themselves, the others end the process. */
function told(cause: unknown): FencedOff | DataUnusable | StoreUnavailable {
  if (cause instanceof FencedOff) return cause;
  const code = systemCode(cause) ?? "unknown cause";
  if (isDamage(code)) {
    return new DataUnusable(`the database is damaged: ${messageOf(cause)} (${code})`, {
      hint: "Nothing was deleted. Keep the file as it is, check the disk, and restore the latest backup into a new home.",
      cause,
    });
  }
  return new StoreUnavailable(`the database cannot be written now (${code})`, {
    hint: "Nothing of this was kept. It goes on by itself when the disk can be written again.",
    cause,
  });
}

/** Damage in the file does not pass: to wait for it would leave every client waiting for ever. */
function isDamage(code: string): boolean {
  return /^SQLITE_(CORRUPT|NOTADB)/.test(code);
}

/** Faults of the disk, as opposed to a write that does not fit (sqlite.org/rescode.html). */
function isStorageFault(error: unknown): boolean {
  const code = systemCode(error) ?? "";
  return /^SQLITE_(FULL|IOERR|CANTOPEN|READONLY|CORRUPT|NOTADB|NOMEM|BUSY|PROTOCOL)/.test(code);
}
