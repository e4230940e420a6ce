// Owns: the SQL of the step journal: every model call and tool call, as an intent before and a result after (G10).
import type { Database } from "better-sqlite3";
import type { CommandId } from "../kernel/ids.ts";
import type { StepKind } from "./commands.ts";

export interface Step {
  readonly command: CommandId;
  readonly n: number;
  readonly kind: StepKind;
  readonly state: "intent" | "done" | "unknown";
  /** The backend or the tool. */
  readonly name: string;
  readonly callId: string | undefined;
  readonly startedAt: number;
  readonly endedAt: number | undefined;
  /** JSON with figures (usage, attempts); the text is in the transcript. */
  readonly result: string | undefined;
}

export interface StepIntent {
  readonly n: number;
  readonly kind: StepKind;
  readonly name: string;
  readonly callId?: string;
  readonly inputHash?: string;
}

interface Row {
  command: number;
  n: number;
  kind: StepKind;
  state: Step["state"];
  name: string;
  call_id: string | null;
  started_at: number;
  ended_at: number | null;
  result: string | null;
}

function parse(row: Row): Step {
  return {
    command: row.command as CommandId,
    n: row.n,
    kind: row.kind,
    state: row.state,
    name: row.name,
    callId: row.call_id ?? undefined,
    startedAt: row.started_at,
    endedAt: row.ended_at ?? undefined,
    result: row.result ?? undefined,
  };
}

export function stepReads(db: Database) {
  const ofCommand = db.prepare("select * from steps where command = ? order by n");
  return {
    ofCommand: (command: CommandId): Step[] => ofCommand.all(command).map((row) => parse(row as Row)),
  };
}

export function stepWrites(db: Database) {
  const insert = db.prepare(
    `insert into steps (command, n, kind, state, name, call_id, input_hash, started_at)
     values (?, ?, ?, 'intent', ?, ?, ?, ?)`,
  );
  const done = db.prepare(
    `update steps set state = 'done', name = coalesce(?, name), result = ?, ended_at = ?
     where command = ? and n = ? and state = 'intent'`,
  );
  const unknown = db.prepare("update steps set state = 'unknown', ended_at = ? where command = ? and state = 'intent'");
  return {
    ...stepReads(db),
    intend(command: CommandId, step: StepIntent, now: number): void {
      insert.run(command, step.n, step.kind, step.name, step.callId ?? null, step.inputHash ?? null, now);
    },
    /** intent → done. `name` replaces the intended one when another backend answered. */
    done: (command: CommandId, n: number, result: string, now: number, name?: string): boolean =>
      done.run(name ?? null, result, now, command, n).changes === 1,
    /** intent → unknown, for every step of the command that is in flight. */
    inFlightUnknown: (command: CommandId, now: number): void => {
      unknown.run(now, command);
    },
  };
}
