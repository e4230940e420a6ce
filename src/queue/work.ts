// Owns: one command from its claim to its committed end. It knows no slots and no order: it is given a command and gives back
// what must wait again.
import type { Clock, Stop } from "../kernel/clock.ts";
import { FencedOff, StoreUnavailable } from "../kernel/errors.ts";
import type { CommandState, Events, HostEvent } from "../kernel/events.ts";
import type { CommandId } from "../kernel/ids.ts";
import { errorFields, type Log } from "../kernel/log.ts";
import { type Command, chatKey } from "../store/commands.ts";
import type { Store, Tx } from "../store/store.ts";
import { type Resolved, resolveAbsorbed } from "./absorb.ts";
import type { CommandEnd, Runner } from "./runner.ts";
import { type WaitingRow, waitingRow } from "./waiting.ts";

/** After a claim that failed for no known cause, so that a bug costs one try a second and not the processor. */
const CLAIM_RETRY_MS = 1_000;

export interface WorkDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: Events;
  readonly runner: Runner;
  /** After the commit that gave it back: a command that a turn had taken in waits again. */
  readonly onReturned: (command: Command) => void;
  /** How long a stopped command may take to end before its slot is freed without it. */
  readonly abortGraceMs: () => number;
}

type Claim =
  | { readonly kind: "claimed"; readonly command: Command }
  /** Claimed, but its work could not begin. */
  | { readonly kind: "broken"; readonly command: Command; readonly thrown: unknown }
  /** Not claimed: `back` waits again; without it there is nothing left to claim. */
  | { readonly kind: "none"; readonly back: WaitingRow | undefined };

/** What the commit of an end made of the command, and what its turn gave back. */
interface Settled {
  readonly state: CommandState;
  readonly resolved: Resolved;
}

const HANDED_BACK: CommandEnd = { state: "handed-back" };

/** The last resort: the command ends, its person sees that it failed, and nothing else is written. */
const BARE_END: CommandEnd = { state: "failed", outcome: { reason: "internal" }, write: () => {} };

/**
 * Claims the command, has it worked off and commits its end. Answers with what must wait again, if anything. The signal
 * stops it at any time; then it ends within the grace. Rejects only when not even a bare end could be written.
 */
export async function workOff(
  entry: WaitingRow,
  signal: AbortSignal,
  deps: WorkDeps,
  onClaimed: (command: Command) => void,
): Promise<WaitingRow | undefined> {
  const { clock, log } = deps;
  const claim = await claimEntry(entry, deps);
  if (claim.kind === "none") return claim.back;
  const { command } = claim;
  const startedMono = clock.mono();
  onClaimed(command);
  const { id: commandId, lane, claim: number, acceptedAt } = command;
  const waitedMs = Math.max(0, clock.now() - acceptedAt);
  log.info("command.started", { commandId, lane, claim: number, waitedMs });
  emit(command, "running", { lane, waitedMs }, deps);
  const end = claim.kind === "broken" ? endOfThrown(command, claim.thrown, deps) : await run(command, signal, deps);
  const settled = await settle(command, end, deps);
  const state = settled?.state;
  for (const back of settled?.resolved.returned ?? []) deps.onReturned(back);
  const ranMs = Math.round(clock.mono() - startedMono);
  log.info(eventOf(state), { commandId, state, ranMs });
  if (state !== undefined) {
    emit(command, state, { lane, ranMs }, deps);
    for (const one of settled?.resolved.ended ?? []) emit(one, state, undefined, deps);
  }
  return state === "queued" ? stillQueued(command.id, deps) : undefined;
}

/** queued → running together with the first step's intent, committed before work begins. */
async function claimEntry(entry: WaitingRow, deps: WorkDeps): Promise<Claim> {
  try {
    return await writeClaim(entry, deps, (tx, command) => deps.runner.begin(tx, command));
  } catch (thrown) {
    if (thrown instanceof FencedOff) return { kind: "none", back: undefined };
    if (thrown instanceof StoreUnavailable) return { kind: "none", back: entry };
    deps.log.error("command.claim-failed", { commandId: entry.id, ...errorFields(thrown) });
    return await claimUnbegun(entry, thrown, deps);
  }
}

/** What cannot begin is claimed all the same and ends as work that threw: its person hears of it and its session goes on. */
async function claimUnbegun(entry: WaitingRow, thrown: unknown, deps: WorkDeps): Promise<Claim> {
  try {
    const claim = await writeClaim(entry, deps, () => {});
    return claim.kind === "claimed" ? { ...claim, kind: "broken", thrown } : claim;
  } catch {
    // Not the fault of its beginning: it may go another time.
    return { kind: "none", back: { ...entry, notBefore: deps.clock.now() + CLAIM_RETRY_MS } };
  }
}

async function writeClaim(
  entry: WaitingRow,
  { store, clock }: WorkDeps,
  begin: (tx: Tx, command: Command) => void,
): Promise<Claim> {
  const command = await store.write("claim", (tx) => {
    const claimed = tx.commands.claim(entry.id, store.generation, clock.now());
    if (claimed !== undefined) begin(tx, claimed);
    return claimed;
  });
  return command === undefined ? { kind: "none", back: undefined } : { kind: "claimed", command };
}

/** The end of the work. Work that was stopped is handed back when it rejects or does not end within its grace. */
async function run(command: Command, signal: AbortSignal, deps: WorkDeps): Promise<CommandEnd> {
  // Stopped while its claim was written.
  if (signal.aborted) return HANDED_BACK;
  const overdue = Promise.withResolvers<CommandEnd>();
  let stopGrace: Stop = () => {};
  const onAbort = () => {
    stopGrace = deps.clock.after(deps.abortGraceMs(), () => {
      deps.log.warn("command.overdue", { commandId: command.id });
      overdue.resolve(HANDED_BACK);
    });
  };
  signal.addEventListener("abort", onAbort);
  try {
    return await Promise.race([deps.runner.run(command, signal), overdue.promise]);
  } catch (thrown) {
    return signal.aborted ? HANDED_BACK : endOfThrown(command, thrown, deps);
  } finally {
    signal.removeEventListener("abort", onAbort);
    stopGrace();
  }
}

function endOfThrown(command: Command, thrown: unknown, { log, runner }: WorkDeps): CommandEnd {
  log.error("command.crashed", { commandId: command.id, ...errorFields(thrown) });
  try {
    return runner.crashed(command, thrown);
  } catch (again) {
    log.error("command.crashed", { commandId: command.id, ...errorFields(again) });
    return BARE_END;
  }
}

/**
 * Commits the end and answers the state; undefined when the fence no longer holds. While the disk is full the result is held
 * in memory and written when it can be (G14). An end that cannot be written gives way to that of work that threw, and this
 * one to a bare one: a row left `running` would block its session until the next boot.
 */
async function settle(command: Command, end: CommandEnd, deps: WorkDeps): Promise<Settled | undefined> {
  const fallbacks = [(thrown: unknown) => endOfThrown(command, thrown, deps), () => BARE_END];
  for (let attempt = end; ; ) {
    try {
      const settled = await writeEnd(command, attempt, deps);
      if (settled !== undefined && attempt.state !== "handed-back") attempt.after?.();
      return settled;
    } catch (thrown) {
      if (thrown instanceof FencedOff) return undefined;
      if (thrown instanceof StoreUnavailable) {
        await deps.store.writable(new AbortController().signal);
        continue;
      }
      const fallback = fallbacks.shift();
      if (fallback === undefined) throw thrown;
      attempt = fallback(thrown);
    }
  }
}

async function writeEnd(
  command: Command,
  end: CommandEnd,
  { store, clock, runner }: WorkDeps,
): Promise<Settled | undefined> {
  if (end.state === "handed-back") {
    const back = await store.write("hand-back", (tx) => tx.commands.handBack(command));
    return back ? { state: "queued", resolved: { returned: [], ended: [] } } : undefined;
  }
  return await store.write("finish", (tx) => {
    const now = clock.now();
    if (!tx.commands.finish(command, end.state, now, JSON.stringify(end.outcome))) return undefined;
    // What a failed turn gives back must have left the transcript before the note about the failure stands there; an answer's
    // last step is done only once it is written, and what it held ends with it.
    const resolve = () => resolveAbsorbed(tx, command.id, end.state, now, runner);
    const early = end.state === "failed" ? resolve() : undefined;
    end.write(tx);
    return { state: end.state, resolved: early ?? resolve() };
  });
}

/** As the row is now: its turn may be half done since the claim, and it may have been cancelled since it was handed back. */
function stillQueued(id: CommandId, { store }: WorkDeps): WaitingRow | undefined {
  const command = store.read.commands.get(id);
  return command?.state === "queued" ? waitingRow(command) : undefined;
}

function eventOf(state: CommandState | undefined): string {
  if (state === undefined) return "command.fenced";
  return state === "queued" ? "command.handed-back" : "command.finished";
}

type Timing = NonNullable<Extract<HostEvent, { type: "command" }>["timing"]>;

function emit(
  { id, session, route }: Command,
  state: CommandState,
  timing: Timing | undefined,
  { events }: WorkDeps,
): void {
  events.emit({
    type: "command",
    id,
    session,
    chatKey: chatKey(route),
    state,
    ...(timing !== undefined && { timing }),
  });
}
