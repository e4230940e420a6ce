// Owns: bringing the schema up to date. Each migration is one transaction together with its number, so that a kill leaves
// the old schema or the new one, never a mix (G20).
import type { Database } from "better-sqlite3";
import { DataUnusable } from "../kernel/errors.ts";
import type { Migration } from "./schema.ts";

/** Applies what is missing. Throws as `refuseNewer` does. */
export function migrate(db: Database, migrations: readonly Migration[]): void {
  refuseNewer(db, migrations);
  const found = schemaOf(db);
  for (const migration of migrations) {
    if (migration.version <= found) continue;
    const apply = db.transaction(() => {
      db.exec(migration.sql);
      db.pragma(`user_version = ${migration.version}`);
    });
    apply.immediate();
  }
}

/** Throws DataUnusable when the data is of a newer version than this program. Changes nothing. */
export function refuseNewer(db: Database, migrations: readonly Migration[]): void {
  const known = migrations.at(-1)?.version ?? 0;
  const found = schemaOf(db);
  if (found <= known) return;
  throw new DataUnusable(`the data is of schema ${found}, this program knows schemas up to ${known}`, {
    hint: "It was written by a newer Laneway: start that version, or restore a backup from before the update.",
  });
}

function schemaOf(db: Database): number {
  return Number(db.pragma("user_version", { simple: true }));
}
