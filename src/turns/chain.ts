// Owns: one model call over the chain of backends: attempts, failover, and the one message when nothing is left. Which error
// class leads where stands in failover.ts. The counters are of this call and are never reset within it (Q5.2).
import type { Clock } from "../kernel/clock.ts";
import { Aborted } from "../kernel/errors.ts";
import { type AttemptEnd, attempt, type Reply } from "./attempt.ts";
import type { Backend, BackendFailure, ErrorClass, ModelRequest } from "./backends/port.ts";
import { exhaustedMessage, type NamedFailure, planNext } from "./failover.ts";
import type { TurnLimits } from "./limits.ts";

export interface ChainDeps {
  /** In the order in which they are asked. */
  readonly backends: readonly Backend[];
  readonly limits: TurnLimits;
  readonly clock: Clock;
  readonly emit: {
    /** A model call begins; `again` when an earlier try of it failed. */
    readonly start: (again: boolean) => void;
    readonly text: (delta: string) => void;
    /** One try has ended; an abort says nothing of the backend and is not told. */
    readonly attempt: (backend: string, failed: ErrorClass | undefined) => void;
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

/** Never rejects. Ends early when `signal` aborts. */
export async function callModel(request: ModelRequest, deps: ChainDeps, signal: AbortSignal): Promise<ModelEnd> {
  const tries: Tries = { made: 0, partial: "", failures: [] };
  for (const backend of deps.backends) {
    const end = await askBackend(backend, request, tries, deps, signal);
    if (end !== undefined) return end;
    deps.log("turn.failover", { from: backend.name, class: tries.failures.at(-1)?.class });
  }
  return exhausted(tries);
}

/** The end of the call, or undefined when the next backend is to be asked. */
async function askBackend(
  backend: Backend,
  request: ModelRequest,
  tries: Tries,
  deps: ChainDeps,
  signal: AbortSignal,
): Promise<ModelEnd | undefined> {
  for (let used = 1; ; used += 1) {
    // Stopped while the step before was written: no answer begins, or watchers would be shown one that never ends.
    if (signal.aborted) return exhausted(tries);
    tries.made += 1;
    deps.emit.start(tries.made > 1);
    const end = await tryOnce(backend, request, deps, signal);
    if (end.ok) return { ok: true, reply: end.reply, backend: backend.name, attempts: tries.made };
    if (end.partial.length > tries.partial.length) tries.partial = end.partial;
    tries.failures.push({ ...end.failure, backend: backend.name });
    if (signal.aborted) return exhausted(tries);
    const plan = planNext(end.failure, { used, max: deps.limits.attempts, jitter: deps.jitter() });
    if (plan.kind === "next") return undefined;
    if (plan.kind === "stop" || !(await pause(plan.afterMs, deps, signal))) return exhausted(tries);
  }
}

function exhausted({ failures, partial }: Tries): ModelEnd {
  return { ok: false, message: exhaustedMessage(failures), failures, partial };
}

async function tryOnce(
  backend: Backend,
  request: ModelRequest,
  deps: ChainDeps,
  signal: AbortSignal,
): Promise<AttemptEnd> {
  const started = deps.clock.mono();
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
