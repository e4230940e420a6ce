// Owns: one model call over the chain of backends: attempts, failover, and the one message when nothing is left. Which error
// class leads where stands in failover.ts. The counters are of this call and are never reset within it (Q5.2).
import type { Clock, Stop } from "../kernel/clock.ts";
import { Aborted } from "../kernel/errors.ts";
import { type AttemptEnd, attempt, type Reply } from "./attempt.ts";
import type { Backend, BackendFailure, ErrorClass, ModelRequest } from "./backends/port.ts";
import { exhaustedMessage, type NamedFailure, planNext } from "./failover.ts";
import type { Caller } from "./grants.ts";
import { busyText, startLimit, type TurnLimits } from "./limits.ts";

export interface ChainDeps {
  /** In the order in which they are asked. */
  readonly backends: readonly Backend[];
  /** Decides who goes first at a backend that answers only so many at once. */
  readonly caller: Caller;
  readonly limits: TurnLimits;
  readonly clock: Clock;
  readonly emit: {
    /** A model call begins; `again` when an earlier try of it failed. */
    readonly start: (again: boolean) => void;
    readonly text: (delta: string) => void;
    /** One try has ended; an abort says nothing of the backend and is not told. */
    readonly attempt: (backend: string, failed: ErrorClass | undefined) => void;
    /** What the turn does now, for whoever watches. */
    readonly note: (note: string) => void;
  };
  readonly log: (
    event: "turn.attempt" | "turn.failover" | "turn.step" | "turn.timeout",
    fields: Record<string, unknown>,
  ) => void;
  /** A number in [0, 1) that spreads the waits. */
  readonly jitter: () => number;
}

export type ModelEnd =
  | { readonly ok: true; readonly reply: Reply; readonly backend: string; readonly attempts: number }
  | {
      readonly ok: false;
      readonly message: string;
      readonly failures: readonly BackendFailure[];
      readonly partial: string;
    };

/** What the tries of one call have brought so far. */
interface Tries {
  made: number;
  /** The longest text that a failed try streamed: the most that can still be shown. */
  partial: string;
  readonly failures: NamedFailure[];
}

/** One call on its way through the chain. */
interface Call {
  readonly request: ModelRequest;
  readonly deps: ChainDeps;
  readonly signal: AbortSignal;
  readonly tries: Tries;
}

/** Never rejects. Ends early when `signal` aborts. */
export async function callModel(request: ModelRequest, deps: ChainDeps, signal: AbortSignal): Promise<ModelEnd> {
  const tries: Tries = { made: 0, partial: "", failures: [] };
  for (const [i, backend] of deps.backends.entries()) {
    const end = await askBackend(backend, deps.backends[i + 1], { request, deps, signal, tries });
    if (end !== undefined) return end;
    deps.log("turn.failover", { from: backend.name, class: tries.failures.at(-1)?.class });
  }
  return exhausted(tries);
}

/** The end of the call, or undefined when the next backend is to be asked. */
async function askBackend(backend: Backend, next: Backend | undefined, call: Call): Promise<ModelEnd | undefined> {
  const { deps, signal, tries } = call;
  for (let used = 1; ; used += 1) {
    const asked = deps.clock.mono();
    const release = await leaveToAsk(backend, next, call);
    if (release === undefined) return signal.aborted ? exhausted(tries) : undefined;
    tries.made += 1;
    const end = await tryOnce(backend, call, deps.clock.mono() - asked).finally(release);
    if (end.ok) return { ok: true, reply: end.reply, backend: backend.name, attempts: tries.made };
    if (end.partial.length > tries.partial.length) tries.partial = end.partial;
    tries.failures.push({ ...end.failure, backend: backend.name });
    const plan = await planAfter(end.failure, used, call);
    if (plan !== "again") return plan === "next" ? undefined : exhausted(tries);
  }
}

/** What follows a failed try, after the wait that it asks for. */
async function planAfter(
  failure: BackendFailure,
  used: number,
  { deps, signal }: Call,
): Promise<"again" | "next" | "over"> {
  if (signal.aborted) return "over";
  const plan = planNext(failure, { used, max: deps.limits.attempts, jitter: deps.jitter() });
  if (plan.kind === "next") return "next";
  return plan.kind === "retry" && (await pause(plan.afterMs, deps, signal)) ? "again" : "over";
}

/**
 * The backend's grant for one try, to be given back at its end. Undefined when the call was stopped, be it while the step before
 * was written: no answer begins then, or watchers would be shown one that never ends. Undefined too when it has waited as long
 * as a try may take and there is a next backend; without one it waits on, until the turn's own limit.
 */
async function leaveToAsk(backend: Backend, next: Backend | undefined, call: Call): Promise<Stop | undefined> {
  const { deps, signal, tries } = call;
  const limitMs = next === undefined ? 0 : deps.limits.attemptTimeoutMs;
  const release = await grantWithin(limitMs, backend, call);
  if (signal.aborted) {
    release?.();
    return undefined;
  }
  if (release === undefined && next !== undefined) {
    deps.emit.note(`${backend.name} is busy, asking ${next.name}`);
    tries.failures.push({ class: "overloaded", message: busyText(backend.name, limitMs), backend: backend.name });
  }
  return release;
}

/** @param limitMs 0 means no limit */
async function grantWithin(limitMs: number, { name, grants }: Backend, call: Call): Promise<Stop | undefined> {
  const { deps, signal } = call;
  if (grants === undefined) return () => {};
  if (!grants.isFree()) deps.emit.note(`waiting for ${name}, which is busy`);
  const late = new AbortController();
  const stopLimit = startLimit(deps.clock, limitMs, () => late.abort("busy"));
  try {
    return await grants.take(deps.caller, AbortSignal.any([signal, late.signal]));
  } catch (thrown) {
    if (thrown instanceof Aborted) return undefined;
    throw thrown;
  } finally {
    stopLimit();
  }
}

function exhausted({ failures, partial }: Tries): ModelEnd {
  return { ok: false, message: exhaustedMessage(failures), failures, partial };
}

async function tryOnce(
  backend: Backend,
  { request, deps, signal, tries }: Call,
  waitedMs: number,
): Promise<AttemptEnd> {
  const started = deps.clock.mono();
  deps.emit.start(tries.made > 1);
  const end = await attempt(backend, request, signal, {
    clock: deps.clock,
    limits: deps.limits,
    onText: deps.emit.text,
  });
  const failed = end.ok ? undefined : end.failure.class;
  if (failed !== "aborted") deps.emit.attempt(backend.name, failed);
  deps.log("turn.attempt", {
    backend: backend.name,
    ok: end.ok,
    ...(end.ok ? {} : { class: end.failure.class, status: end.failure.status }),
    ...(waitedMs > 0 && { waitedMs: Math.round(waitedMs) }),
    ranMs: Math.round(deps.clock.mono() - started),
  });
  return end;
}

/** False when the wait was ended by the signal. */
async function pause(ms: number, deps: ChainDeps, signal: AbortSignal): Promise<boolean> {
  try {
    await deps.clock.sleep(ms, signal);
    return true;
  } catch (thrown) {
    if (thrown instanceof Aborted) return false;
    throw thrown;
  }
}
