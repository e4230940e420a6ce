// Owns: the SQL of commands that a running turn has taken in. Each move is one UPDATE guarded by the old state, as in commands.ts.
import type { Database } from "better-sqlite3";
import type { CommandId } from "../kernel/ids.ts";
import { type Command, type Fence, many, optional } from "./commands.ts";

export function absorbedWrites(db: Database) {
  const absorbedBy = db.prepare("select * from commands where absorbed_by = ? and state = 'absorbed' order by id");
  // One column: each one of a row costs, also when there is no row.
  const hasAbsorbed = db.prepare("select 1 from commands where absorbed_by = ? and state = 'absorbed'").pluck();
  const absorb = db.prepare(
    `update commands set state = 'absorbed', absorbed_by = ?, absorbed_step = ?
     where id = ? and state = 'queued' and open = 0 and strikes = 0
       and exists (select 1 from commands t where t.id = ? and t.claim = ? and t.generation = ? and t.state = 'running')
     returning *`,
  );
  const giveBack = db.prepare(
    `update commands set state = 'queued', absorbed_by = null, absorbed_step = null, strikes = strikes + ?,
       strike_kind = case when ? > 0 then 'model' else strike_kind end
     where id = ? and state = 'absorbed' returning *`,
  );
  const endWith = db.prepare(
    "update commands set state = ?, finished_at = ?, outcome = ? where id = ? and state = 'absorbed' and absorbed_by = ?",
  );
  return {
    hasAbsorbed: (turn: CommandId): boolean => hasAbsorbed.get(turn) !== undefined,
    /** What a turn has taken in and not resolved, in the order of their ids. */
    absorbedBy: (turn: CommandId): Command[] => many(absorbedBy.all(turn)),
    /** queued → absorbed, into the next step of a turn that still runs at this claim. Undefined when either moved on. */
    absorb: (id: CommandId, turn: Fence, step: number): Command | undefined =>
      optional(absorb.get(turn.id, step, id, turn.id, turn.claim, turn.generation)),
    /** absorbed → queued at its old place; `strikes` is what the death of its host adds. */
    giveBack: (id: CommandId, strikes: 0 | 1): Command | undefined => optional(giveBack.get(strikes, strikes, id)),
    /** absorbed → the end of its turn. */
    endWith: (
      id: CommandId,
      turn: CommandId,
      state: "done" | "failed" | "dead" | "cancelled",
      now: number,
      outcome: string,
    ): boolean => endWith.run(state, now, outcome, id, turn).changes === 1,
  };
}
