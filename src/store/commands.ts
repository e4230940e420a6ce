// Owns: the SQL of the commands table. Each verb that changes a state is one UPDATE guarded by the old state; a guard that
// matches no row is a normal outcome and answers false or undefined.
import type { Database } from "better-sqlite3";
import type { CommandState } from "../kernel/events.ts";
import type { ClaimNumber, CommandId, Generation, SessionKey } from "../kernel/ids.ts";
import { chatLink } from "./chats.ts";

/** Where a message came from and its answer goes; fixed at acceptance. */
export interface Route {
  readonly channel: string;
  readonly account: string;
  readonly chat: string;
  readonly thread: string | undefined;
}

/** Parts go out in order within one chat key. */
export function chatKey(route: Route): string {
  const base = `${route.channel}:${route.account}:${route.chat}`;
  return route.thread === undefined ? base : `${base}:${route.thread}`;
}

/** The route behind a chat key; none of its parts but the last may hold a colon. */
export function routeOf(key: string): Route {
  const [channel = "", account = "", chat = "", ...thread] = key.split(":");
  return { channel, account, chat, thread: thread.length === 0 ? undefined : thread.join(":") };
}

export type Role = "owner" | "user" | "guest";
/** What happens to a message while its session is busy; see queue/absorb.ts. */
export type BusyMode = "steer" | "followup" | "collect" | "interrupt";
export type StepKind = "model" | "tool";

/** What is needed to make a command. `text` is what the person wrote; `extra` is JSON owned by the kind. */
export interface NewCommand {
  readonly lane: string;
  readonly priority: number;
  readonly orderKey: number;
  readonly session: SessionKey;
  readonly route: Route;
  readonly sender: string;
  readonly actor: string;
  readonly role: Role;
  readonly source: string;
  /** `message`: an ordinary turn. `control`: a chat command. `completion`: a stateless request with its own history. */
  readonly kind: "message" | "control" | "completion";
  /** Absent: `followup`. */
  readonly mode?: BusyMode;
  readonly text: string;
  readonly extra: string | undefined;
  readonly acceptedAt: number;
  /** It is not claimed before this instant; absent means at once. */
  readonly notBefore?: number;
}

export interface Command extends NewCommand {
  readonly id: CommandId;
  readonly state: CommandState;
  readonly notBefore: number;
  readonly mode: BusyMode;
  readonly claim: ClaimNumber;
  readonly generation: Generation;
  /** Its turn has a finished step and no end. */
  readonly open: boolean;
  /** The platform's id of the message in which its answer is shown while it grows. */
  readonly preview: string | undefined;
  readonly strikes: number;
  readonly strikeKind: StepKind | undefined;
  /** The last step number at the last host death: only a step after it is progress. */
  readonly deathStep: number;
  /** The turn that has taken it in, from which step on. */
  readonly absorbedBy: CommandId | undefined;
  readonly absorbedStep: number | undefined;
  readonly startedAt: number | undefined;
  readonly finishedAt: number | undefined;
  /** JSON: why it ended, for people. */
  readonly outcome: string | undefined;
}

/** Of a queued command what decides when it goes: a long queue is read without its texts. */
export type QueuedCommand = Pick<
  Command,
  | "id"
  | "lane"
  | "orderKey"
  | "session"
  | "route"
  | "sender"
  | "actor"
  | "source"
  | "acceptedAt"
  | "notBefore"
  | "mode"
  | "open"
  | "strikes"
>;

interface Row {
  id: number;
  state: CommandState;
  lane: string;
  priority: number;
  order_key: number;
  session: string;
  channel: string;
  account: string;
  chat: string;
  thread: string | null;
  sender: string;
  actor: string;
  role: Role;
  source: string;
  kind: NewCommand["kind"];
  mode: BusyMode;
  text: string;
  extra: string | null;
  accepted_at: number;
  not_before: number;
  claim: number;
  generation: number;
  open: number;
  preview: string | null;
  strikes: number;
  strike_kind: StepKind | null;
  death_step: number;
  absorbed_by: number | null;
  absorbed_step: number | null;
  started_at: number | null;
  finished_at: number | null;
  outcome: string | null;
}

function parseQueued(row: Row): QueuedCommand {
  return {
    id: row.id as CommandId,
    lane: row.lane,
    orderKey: row.order_key,
    session: row.session as SessionKey,
    route: { channel: row.channel, account: row.account, chat: row.chat, thread: row.thread ?? undefined },
    sender: row.sender,
    actor: row.actor,
    source: row.source,
    acceptedAt: row.accepted_at,
    notBefore: row.not_before,
    mode: row.mode,
    open: row.open === 1,
    strikes: row.strikes,
  };
}

function parse(row: Row): Command {
  return {
    ...parseQueued(row),
    state: row.state,
    priority: row.priority,
    role: row.role,
    kind: row.kind,
    text: row.text,
    extra: row.extra ?? undefined,
    claim: row.claim as ClaimNumber,
    generation: row.generation as Generation,
    preview: row.preview ?? undefined,
    strikeKind: row.strike_kind ?? undefined,
    deathStep: row.death_step,
    absorbedBy: row.absorbed_by === null ? undefined : (row.absorbed_by as CommandId),
    absorbedStep: row.absorbed_step ?? undefined,
    startedAt: row.started_at ?? undefined,
    finishedAt: row.finished_at ?? undefined,
    outcome: row.outcome ?? undefined,
  };
}

/** The fence: a write of a turn counts only while this claim of this host holds the command. */
export interface Fence {
  readonly id: CommandId;
  readonly claim: ClaimNumber;
  readonly generation: Generation;
}

/** A stateless request brings its whole history; once it has ended nobody reads that again. */
const FORGET_HISTORY = "extra = case kind when 'completion' then null else extra end";

/** The condition of the index commands_live, word for word: without it SQLite reads the whole history instead. */
const LIVE = "state in ('queued','running','waiting','absorbed')";

export function commandReads(db: Database) {
  const byId = db.prepare("select * from commands where id = ?");
  // Its first half is the condition of the index commands_session_gate, word for word.
  const runningIn = db.prepare(
    `select * from commands where session = ? and (state in ('running','waiting') or (state = 'queued' and open = 1))
       and state <> 'queued'`,
  );
  const stateOf = db.prepare("select state from commands where id = ?").pluck();
  const live = db.prepare(`select * from commands where ${LIVE} order by id limit ?`);
  const recent = db.prepare("select * from commands where id < ? order by id desc limit ?");
  const queued = db.prepare(
    `select id, lane, order_key, session, channel, account, chat, thread, sender, actor, source, accepted_at, not_before, mode,
       open, strikes
     from commands where ${LIVE} and state = 'queued' order by order_key, id`,
  );
  const notToRun = db.prepare(
    `select * from commands where ${LIVE} and state = 'queued' and (kind = 'completion' or (open = 0 and accepted_at < ?))
     order by id`,
  );
  const running = db.prepare(`select * from commands where ${LIVE} and state in ('running','waiting') order by id`);
  const lastId = db.prepare("select coalesce(max(id), 0) from commands").pluck();
  return {
    get: (id: CommandId): Command | undefined => optional(byId.get(id)),
    live: (limit: number): Command[] => many(live.all(limit)),
    recent: (before: number, limit: number): Command[] => many(recent.all(before, limit)),
    /** The command that has the session now: it runs, or waits for a person. */
    runningIn: (session: SessionKey): Command | undefined => optional(runningIn.get(session)),
    stateOf: (id: CommandId): CommandState | undefined => stateOf.get(id) as CommandState | undefined,
    running: (): Command[] => many(running.all()),
    lastId: (): number => Number(lastId.get()),
    /** In the order of their keys; one at a time, so that a long queue costs no second copy in memory. */
    *queued(): Generator<QueuedCommand> {
      for (const row of queued.iterate()) yield parseQueued(row as Row);
    },
    /** Queued ones that boot does not run: stateless requests, and those accepted before an instant that are not half done. */
    notToRun: (acceptedBefore: number): Command[] => many(notToRun.all(acceptedBefore)),
  };
}

export function commandWrites(db: Database) {
  const insert = db.prepare(
    `insert into commands (id, state, lane, priority, order_key, session, channel, account, chat, thread, sender, actor, role,
       source, kind, mode, prev, text, extra, accepted_at, not_before, finished_at)
     values (@id, @state, @lane, @priority, @orderKey, @session, @channel, @account, @chat, @thread, @sender, @actor, @role,
       @source, @kind, @mode, @prev, @text, @extra, @acceptedAt, @notBefore, @finishedAt)`,
  );
  const link = chatLink(db);
  const claim = db.prepare(
    `update commands set state = 'running', claim = claim + 1, generation = ?, started_at = ?
     where id = ? and state = 'queued' returning *`,
  );
  const hold = db.prepare(
    "update commands set open = 1 where id = ? and claim = ? and generation = ? and state = 'running'",
  );
  const finish = db.prepare(
    `update commands set state = ?, open = 0, finished_at = ?, outcome = ?, ${FORGET_HISTORY}
     where id = ? and claim = ? and generation = ? and state = 'running'`,
  );
  const handBack = db.prepare(
    "update commands set state = 'queued' where id = ? and claim = ? and generation = ? and state = 'running'",
  );
  const cancel = db.prepare(
    `update commands set state = 'cancelled', open = 0, finished_at = ?, outcome = ?, ${FORGET_HISTORY}
     where id = ? and state in ('queued','running','waiting','absorbed')`,
  );
  const orphanToQueue = db.prepare(
    `update commands set state = 'queued', strikes = ?, strike_kind = ?, death_step = ?
     where id = ? and state = 'running' and generation < ?`,
  );
  const giveUp = db.prepare(
    `update commands set state = 'dead', open = 0, finished_at = ?, outcome = ?
     where id = ? and (state = 'queued' or (state = 'running' and generation < ?))`,
  );
  const rewrite = db.prepare(
    "update commands set text = ?, extra = ?, not_before = ? where id = ? and state = 'queued' and claim = 0",
  );
  const preview = db.prepare(
    "update commands set preview = ? where id = ? and claim = ? and generation = ? and state in ('running','queued')",
  );
  const forgive = db.prepare("update commands set strikes = 0, strike_kind = null where id = ? and strikes > 0");
  return {
    ...commandReads(db),
    insert(id: CommandId, command: NewCommand, state: "queued" | "done"): void {
      const { route, extra, ...plain } = command;
      insert.run({
        ...plain,
        ...route,
        id,
        state,
        notBefore: command.notBefore ?? 0,
        mode: command.mode ?? "followup",
        thread: route.thread ?? null,
        extra: extra ?? null,
        // A stateless request is in no chat that anybody looks at.
        prev: command.kind === "completion" ? 0 : link(chatKey(route), id),
        finishedAt: state === "done" ? command.acceptedAt : null,
      });
    },
    /** queued → running. Raises the claim number; undefined when the command is no longer queued. */
    claim: (id: CommandId, generation: Generation, now: number): Command | undefined =>
      optional(claim.get(generation, now, id)),
    /** A step finished: marks the turn as half done. False when the fence no longer holds. */
    hold: (fence: Fence): boolean => hold.run(fence.id, fence.claim, fence.generation).changes === 1,
    /** running → done | failed. */
    finish: (fence: Fence, state: "done" | "failed", now: number, outcome: string): boolean =>
      finish.run(state, now, outcome, fence.id, fence.claim, fence.generation).changes === 1,
    /** running → queued at its old place, without penalty. `open` stays as it is. */
    handBack: (fence: Fence): boolean => handBack.run(fence.id, fence.claim, fence.generation).changes === 1,
    /** queued | running | waiting | absorbed → cancelled. */
    cancel: (id: CommandId, now: number, outcome: string): boolean => cancel.run(now, outcome, id).changes === 1,
    /** running of an earlier generation → queued. */
    orphanToQueue: (
      id: CommandId,
      strikes: number,
      strikeKind: StepKind | undefined,
      deathStep: number,
      generation: Generation,
    ): boolean => orphanToQueue.run(strikes, strikeKind ?? null, deathStep, id, generation).changes === 1,
    /** queued, or running of an earlier generation → dead. */
    giveUp: (id: CommandId, generation: Generation, now: number, outcome: string): boolean =>
      giveUp.run(now, outcome, id, generation).changes === 1,
    /** Another text for what nobody has begun: an edit, or the rest of it came. False when it was begun. */
    rewrite: (id: CommandId, to: { text: string; extra: string; notBefore: number }): boolean =>
      rewrite.run(to.text, to.extra, to.notBefore, id).changes === 1,
    /** The message that shows its answer while it grows. False when the turn has ended, and for an earlier claim. */
    preview: (fence: Fence, ref: string): boolean =>
      preview.run(ref, fence.id, fence.claim, fence.generation).changes === 1,
    /** Progress was made: earlier strikes no longer count. */
    forgive: (id: CommandId): boolean => forgive.run(id).changes === 1,
  };
}

export function optional(row: unknown): Command | undefined {
  return row === undefined ? undefined : parse(row as Row);
}

export function many(rows: unknown[]): Command[] {
  return rows.map((row) => parse(row as Row));
}
