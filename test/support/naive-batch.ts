// Owns: the control of the group commit's rule: its loop without the look at the transaction after a failed write.
import type { Database } from "better-sqlite3";

interface NaiveWrite {
  readonly name: string;
  readonly bytes: number;
}

/** Writes audit rows in one transaction, tries to undo those that fail, and goes on. Answers whose callers are told that they failed. */
export function naiveBatch(db: Database, writes: readonly NaiveWrite[]): string[] {
  const insert = db.prepare("insert into audit (at, actor, action, target, detail) values (0, '', ?, '', ?)");
  const succeeds = (run: () => unknown) => {
    try {
      run();
      return true;
    } catch {
      return false;
    }
  };
  const failed: string[] = [];
  db.exec("begin immediate");
  for (const { name, bytes } of writes) {
    succeeds(() => db.exec("savepoint one_write"));
    const written = succeeds(() => insert.run(name, "x".repeat(bytes)));
    succeeds(() => db.exec(written ? "release one_write" : "rollback to one_write; release one_write"));
    if (!written) failed.push(name);
  }
  return succeeds(() => db.exec("commit")) ? failed : writes.map((write) => write.name);
}
