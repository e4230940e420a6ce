// Owns: the SQL of the audit trail: privileged actions and refusals, written before the action (G26).
import type { Database } from "better-sqlite3";

export interface AuditEntry {
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  /** Fields, never a secret. */
  readonly detail: Readonly<Record<string, unknown>>;
}

export function auditReads(db: Database) {
  const recent = db.prepare("select at, actor, action, target, detail from audit order by id desc limit ?");
  return {
    recent: (limit: number): (AuditEntry & { at: number })[] =>
      recent.all(limit).map((raw) => {
        const row = raw as { at: number; actor: string; action: string; target: string; detail: string };
        return { ...row, detail: JSON.parse(row.detail) as Record<string, unknown> };
      }),
  };
}

export function auditWrites(db: Database) {
  const insert = db.prepare("insert into audit (at, actor, action, target, detail) values (?, ?, ?, ?, ?)");
  return {
    ...auditReads(db),
    add(entry: AuditEntry, now: number): void {
      insert.run(now, entry.actor, entry.action, entry.target, JSON.stringify(entry.detail));
    },
  };
}
