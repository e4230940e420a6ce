// Owns: one try on one backend, with its timers. It ends within limit plus grace whatever the backend does; what the backend
// still sends after that is not heard any more (G19).
import type { Clock, Stop } from "../kernel/clock.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Backend, BackendEvent, BackendFailure, ModelRequest, ToolCall, Usage } from "./backends/port.ts";
import { type LimitName, limitText, startLimit, type TurnLimits } from "./limits.ts";

export interface Reply {
  readonly text: string;
  readonly calls: readonly ToolCall[];
  readonly reason: "stop" | "length" | "tool-calls";
  readonly usage: Usage;
}

export type AttemptEnd =
  | { readonly ok: true; readonly reply: Reply }
  | { readonly ok: false; readonly failure: BackendFailure; readonly partial: string };

interface AttemptDeps {
  readonly clock: Clock;
  readonly limits: TurnLimits;
  readonly onText: (delta: string) => void;
}

/** Never rejects. When `signal` aborts it ends with a failure of class `aborted`, within the grace at most. */
export async function attempt(
  backend: Backend,
  request: ModelRequest,
  signal: AbortSignal,
  deps: AttemptDeps,
): Promise<AttemptEnd> {
  const { limits, clock } = deps;
  const own = new AbortController();
  const heard: { text: string; calls: ToolCall[] } = { text: "", calls: [] };
  const over = Promise.withResolvers<AttemptEnd>();
  let live = true;
  let stopGrace: Stop = () => {};
  let fired: BackendFailure | undefined;

  const fail = (failure: BackendFailure): AttemptEnd => ({ ok: false, failure, partial: heard.text });
  const stopAll = (failure: BackendFailure) => {
    if (fired !== undefined) return;
    fired = failure;
    own.abort(failure.class);
    stopGrace = clock.after(limits.graceMs, () => over.resolve(fail(failure)));
  };
  const limit = (name: LimitName) =>
    startLimit(clock, limits[name], () =>
      stopAll({ class: "timeout", message: `${backend.name} ${limitText(name, limits[name])}` }),
    );
  const onAbort = () => stopAll({ class: "aborted", message: "the work was stopped" });
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();

  const stopAttempt = limit("attemptTimeoutMs");
  let stopQuiet = limit("firstTokenMs");
  const hear = (event: BackendEvent): AttemptEnd | undefined => {
    stopQuiet();
    if (event.type === "failure") return fail(fired ?? event.failure);
    if (event.type === "finish") return fired === undefined ? finished(backend, heard, event, fail) : fail(fired);
    stopQuiet = limit("idleMs");
    if (event.type === "tool-call") heard.calls.push(event.call);
    // After a limit or a stop nothing more is shown: the answer is void already.
    if (event.type === "text" && fired === undefined) {
      heard.text += event.delta;
      deps.onText(event.delta);
    }
    return undefined;
  };

  const read = async (): Promise<AttemptEnd> => {
    try {
      for await (const event of backend.complete(request, own.signal)) {
        if (!live) return fail(ended(backend));
        const end = hear(event);
        if (end !== undefined) return end;
      }
      return fail(fired ?? ended(backend));
    } catch (thrown) {
      // The port promises that this cannot happen; an adapter that breaks its promise fails its attempt and nothing else.
      return fail(fired ?? { class: "server", message: `${backend.name} broke: ${messageOf(thrown)}` });
    }
  };

  try {
    return await Promise.race([read(), over.promise]);
  } finally {
    live = false;
    for (const stop of [stopAttempt, stopQuiet, stopGrace]) stop();
    signal.removeEventListener("abort", onAbort);
    own.abort("over");
  }
}

function ended(backend: Backend): BackendFailure {
  return { class: "network", message: `${backend.name} ended its answer without a finish part` };
}

function finished(
  backend: Backend,
  heard: { text: string; calls: ToolCall[] },
  event: Extract<BackendEvent, { type: "finish" }>,
  fail: (failure: BackendFailure) => AttemptEnd,
): AttemptEnd {
  if (heard.text.trim() === "" && heard.calls.length === 0) {
    return fail({ class: "server", message: `${backend.name} gave an empty answer` });
  }
  return { ok: true, reply: { text: heard.text, calls: heard.calls, reason: event.reason, usage: event.usage } };
}
