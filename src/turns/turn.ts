// Owns: the loop of a turn: model call, tools, until an answer. It reads no rows and knows no session: what it needs comes
// in, what it did goes to the journal step by step, and its last step is committed with the command's end.
import { Aborted } from "../kernel/errors.ts";
import type { StepIntent } from "../store/steps.ts";
import type { Reply } from "./attempt.ts";
import type {
  BackendFailure,
  ModelMessage,
  ModelRequest,
  ReadImage,
  Sampling,
  ToolCall,
  ToolSpec,
} from "./backends/port.ts";
import { type ChainDeps, callModel, type ModelEnd } from "./chain.ts";
import { ClaimLost, type Journal, type StepEnd } from "./journal.ts";
import { limitText, startLimit } from "./limits.ts";
import { runTool, type Tool } from "./tools/port.ts";
import { assistantRow, type NewRow, toolRow } from "./transcript.ts";

export interface TurnInput {
  /** System prompt, transcript and the person's message. */
  readonly messages: readonly ModelMessage[];
  /** What the command adds and is not in the transcript yet: it becomes rows with the first finished step. */
  readonly unwritten: readonly NewRow[];
  /** Calls of the last assistant message that were never started (after a crash). */
  readonly pending: readonly ToolCall[];
  /** The number of the step whose intent the claim has written. */
  readonly firstStep: number;
  /** Model calls that this command has finished already. */
  readonly callsDone: number;
  /** Tools that the client runs: a call of one ends the turn. */
  readonly clientTools: readonly ToolSpec[];
  readonly sampling: Sampling;
}

export interface TurnDeps extends ChainDeps {
  /** Read at every step, so that a revocation works at once. */
  readonly tools: () => readonly Tool[];
  readonly toolSpec: (tool: Tool) => ToolSpec;
  readonly workspace: string;
  /** Gives the bytes of the images that messages refer to. Absent: no model is shown one. */
  readonly readImage?: ReadImage | undefined;
  /** Most model calls of one turn; the last one gets no tools and must sum up (Q18.1). */
  readonly iterations: number;
  readonly journal: Journal;
  /**
   * Commits what waits for this turn into its transcript at the model step `step`, behind `unwritten`, and gives it for the
   * request; empty when nothing waits, and then nothing was written. Rejects with Aborted.
   */
  readonly absorb: (at: AbsorbAt, signal: AbortSignal) => Promise<readonly ModelMessage[]>;
}

export interface AbsorbAt {
  readonly step: number;
  /** The turn has called no model yet. */
  readonly first: boolean;
  readonly unwritten: readonly NewRow[];
}

export type TurnEnd =
  | { readonly kind: "answer"; readonly text: string; readonly cut: boolean; readonly last: StepEnd }
  /** The model calls tools that the client runs. */
  | { readonly kind: "tool-calls"; readonly text: string; readonly calls: readonly ToolCall[]; readonly last: StepEnd }
  | {
      readonly kind: "failed";
      readonly message: string;
      readonly failures: readonly BackendFailure[];
      readonly partial: string;
    }
  /** Stopped from outside; the reason is the signal's. */
  | { readonly kind: "stopped" }
  /** The claim is no longer ours: nothing may be written. */
  | { readonly kind: "fenced" };

/** Works one command off. Never rejects for what backends and tools do. */
export async function runTurn(input: TurnInput, deps: TurnDeps, signal: AbortSignal): Promise<TurnEnd> {
  const own = new AbortController();
  const both = AbortSignal.any([signal, own.signal]);
  const stopLimit = startLimit(deps.clock, deps.limits.turnTimeoutMs, () => {
    deps.log("turn.timeout", { limit: "turnTimeoutMs" });
    own.abort("turn-timeout");
  });
  try {
    return await loop(input, deps, both);
  } catch (thrown) {
    if (thrown instanceof ClaimLost) return { kind: "fenced" };
    if (!(thrown instanceof Aborted)) throw thrown;
    return stoppedOrLate(signal, deps, "");
  } finally {
    stopLimit();
  }
}

async function loop(input: TurnInput, deps: TurnDeps, signal: AbortSignal): Promise<TurnEnd> {
  const messages = [...input.messages];
  let unwritten = input.unwritten;
  let step = input.firstStep;
  let pending = input.pending;
  for (let call = input.callsDone + 1; ; call += 1) {
    step = await runTools(pending, step, messages, deps, signal);
    const absorbed = await deps.absorb({ step, first: call === 1, unwritten }, signal);
    if (absorbed.length > 0) unwritten = [];
    messages.push(...absorbed);
    const lastCall = call >= deps.iterations;
    const end = await callModel(modelRequest(messages, input, deps, lastCall), deps, signal);
    if (!end.ok) return modelFailed(end, signal, deps);
    const reply = lastCall ? withoutCalls(end.reply) : end.reply;
    const first = reply.calls[0];
    if (first === undefined) return answer(reply, modelStep(step, end, reply, unwritten), lastCall);
    const theirs = reply.calls.filter((one) => input.clientTools.some((tool) => tool.name === one.name));
    if (theirs.length > 0) return handedOver(step, end, theirs, unwritten);
    await deps.journal.advance(modelStep(step, end, reply, unwritten), toolIntent(step + 1, first), signal);
    unwritten = [];
    messages.push({ role: "assistant", text: reply.text, calls: reply.calls });
    pending = reply.calls;
    step += 1;
  }
}

/** Runs the calls in order. `step` is the step whose intent is written; answers the model step that follows. */
async function runTools(
  calls: readonly ToolCall[],
  step: number,
  messages: ModelMessage[],
  deps: TurnDeps,
  signal: AbortSignal,
): Promise<number> {
  let n = step;
  for (const [i, call] of calls.entries()) {
    deps.emit.note(`running ${call.name}`);
    const started = deps.clock.mono();
    const result = await runTool(deps.tools(), call, { workspace: deps.workspace, signal }, deps.clock);
    const ranMs = Math.round(deps.clock.mono() - started);
    deps.log("turn.step", { step: n, kind: "tool", name: call.name, isError: result.isError, ranMs });
    const message = { role: "tool", callId: call.id, name: call.name, ...result } as const;
    const next = calls[i + 1];
    const ended = {
      n,
      kind: "tool",
      name: call.name,
      result: { isError: result.isError, ranMs },
      rows: [toolRow(message)],
    } as const;
    await deps.journal.advance(ended, next === undefined ? modelIntent(n + 1) : toolIntent(n + 1, next), signal);
    messages.push(message);
    n += 1;
  }
  return n;
}

export function modelIntent(n: number): StepIntent {
  return { n, kind: "model", name: "model" };
}

export function toolIntent(n: number, call: ToolCall): StepIntent {
  return { n, kind: "tool", name: call.name, callId: call.id };
}

/** As a user message: some models refuse a system message that is not the first. */
const SUM_UP =
  "[From the host] You have used up the model calls of this turn. Answer now with what you have, without tools, and say what is left undone.";

function modelRequest(
  messages: readonly ModelMessage[],
  input: TurnInput,
  deps: TurnDeps,
  lastCall: boolean,
): ModelRequest {
  const { sampling } = input;
  const { readImage } = deps;
  if (lastCall) return { messages: [...messages, { role: "user", text: SUM_UP }], tools: [], sampling, readImage };
  const own = deps.tools().map(deps.toolSpec);
  // A client's tool goes before one of ours with the same name: the client asked for it by that name.
  const kept = own.filter((tool) => !input.clientTools.some((other) => other.name === tool.name));
  return { messages, tools: [...kept, ...input.clientTools], sampling, readImage };
}

type Answered = Extract<ModelEnd, { ok: true }>;

function modelStep(n: number, end: Answered, { text, calls }: Reply, unwritten: readonly NewRow[]): StepEnd {
  const result = { ...end.reply.usage, attempts: end.attempts };
  return { n, kind: "model", name: end.backend, result, rows: [...unwritten, assistantRow(text, calls)] };
}

/** The last call had no tools to call: what it calls all the same is not run, and the transcript does not keep it open. */
function withoutCalls(reply: Reply): Reply {
  const isEmpty = reply.text.trim() === "";
  return {
    ...reply,
    calls: [],
    text: isEmpty ? "I used up the model calls of this turn before I had an answer." : reply.text,
  };
}

function answer({ text, reason }: Reply, last: StepEnd, lastCall: boolean): TurnEnd {
  const shown = lastCall ? `${text}\n\n(Stopped at the limit of model calls: budget.iterations.)` : text;
  return { kind: "answer", text: shown, cut: reason === "length", last };
}

/** The client can run only its own tools. Calls of ours in the same reply are left out: the model may ask again. */
function handedOver(n: number, end: Answered, theirs: readonly ToolCall[], unwritten: readonly NewRow[]): TurnEnd {
  const last = modelStep(n, end, { ...end.reply, calls: theirs }, unwritten);
  return { kind: "tool-calls", text: end.reply.text, calls: theirs, last };
}

function modelFailed(end: Extract<ModelEnd, { ok: false }>, signal: AbortSignal, deps: TurnDeps): TurnEnd {
  if (signal.aborted) return stoppedOrLate(signal, deps, end.partial);
  return { kind: "failed", message: end.message, failures: end.failures, partial: end.partial };
}

function stoppedOrLate(signal: AbortSignal, deps: TurnDeps, partial: string): TurnEnd {
  if (signal.reason !== "turn-timeout" && signal.aborted) return { kind: "stopped" };
  const message = `The turn ${limitText("turnTimeoutMs", deps.limits.turnTimeoutMs)}.`;
  return { kind: "failed", message, failures: [], partial };
}
