// Owns: working a command off as a turn of its agent: what the model gets to see, and what transcript and outbox keep of the
// end. It is the queue's Runner.
import type { Clock } from "../kernel/clock.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Events } from "../kernel/events.ts";
import type { CommandId } from "../kernel/ids.ts";
import type { Log } from "../kernel/log.ts";
import type { Outcome } from "../queue/command.ts";
import type { CommandEnd, Runner } from "../queue/runner.ts";
import { type Command, chatKey, type StepKind } from "../store/commands.ts";
import type { Step } from "../store/steps.ts";
import type { Store, Tx } from "../store/store.ts";
import type { Backend, ModelMessage, ToolSpec } from "../turns/backends/port.ts";
import { type Journal, makeJournal } from "../turns/journal.ts";
import type { TurnLimits } from "../turns/limits.ts";
import type { Tool } from "../turns/tools/port.ts";
import {
  callsWithoutResult,
  messagesOf,
  type NewRow,
  noteRow,
  OUTCOME_UNKNOWN,
  toolRow,
  userRow,
} from "../turns/transcript.ts";
import { modelIntent, runTurn, type TurnDeps, type TurnEnd, type TurnInput, toolIntent } from "../turns/turn.ts";
import { type Completion, completion } from "./completion.ts";
import { addNotice, addPart, OWNER_ROUTE } from "./delivery.ts";
import { systemPrompt } from "./prompt.ts";
import { viewOf } from "./session.ts";

/** What a turn takes from the settings: a snapshot, except the tools. */
export interface AgentView {
  readonly backends: readonly Backend[];
  readonly tools: () => readonly Tool[];
  readonly toolSpec: (tool: Tool) => ToolSpec;
  readonly workspace: string;
  readonly systemPrompt: string | undefined;
  readonly contextTokens: number;
  readonly limits: TurnLimits;
  readonly iterations: number;
}

export interface AssistantDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: Events;
  readonly agent: (command: Command) => AgentView;
  readonly onProgress: (id: CommandId, kind: StepKind) => void;
  readonly jitter: () => number;
}

export function makeAssistant(deps: AssistantDeps): Runner {
  return {
    begin: (tx, command) => begin(tx, command, deps.clock.now()),
    run: (command, signal) => run(command, deps, signal),
    crashed: (command, thrown) => crashed(command, thrown, deps),
    cancelled: (tx, command) => keepStopped(tx, command, deps.clock.now()),
    gaveUp: (tx, command, outcome) => tellGivenUp(tx, command, outcome, deps.clock),
  };
}

/**
 * In the claim's transaction: the intent of the first step. A turn that a crash or a drain has cut continues after its last
 * finished step; a tool that was in flight gets the result "outcome unknown" and is not run again (G10).
 */
function begin(tx: Tx, command: Command, now: number): void {
  const steps = tx.steps.ofCommand(command.id);
  const next = (steps.at(-1)?.n ?? 0) + 1;
  if (steps.length === 0) {
    tx.steps.intend(command.id, modelIntent(next), now);
    return;
  }
  tx.steps.inFlightUnknown(command.id, now);
  const rows = tx.messages.ofCommand(command.id);
  const inFlight = new Set(
    steps.filter((step) => step.state === "intent" && step.kind === "tool").map((step) => step.callId),
  );
  const missing = callsWithoutResult(rows);
  const unknown = missing.filter((call) => inFlight.has(call.id));
  for (const [i, call] of unknown.entries()) {
    const row = toolRow({ callId: call.id, name: call.name, text: OUTCOME_UNKNOWN, isError: true });
    tx.messages.append(tx.nextSeq(), command.session, command.id, { ...row, n: rows.length + i }, now);
  }
  const first = missing.find((call) => !inFlight.has(call.id));
  tx.steps.intend(command.id, first === undefined ? modelIntent(next) : toolIntent(next, first), now);
}

async function run(command: Command, deps: AssistantDeps, signal: AbortSignal): Promise<CommandEnd> {
  const agent = deps.agent(command);
  const input = inputOf(command, agent, deps.store);
  const journal = makeJournal({
    store: deps.store,
    clock: deps.clock,
    command,
    rows: deps.store.read.messages.ofCommand(command.id).length,
    keepTranscript: command.kind === "message",
    onProgress: (kind) => deps.onProgress(command.id, kind),
  });
  const end = await runTurn(input, turnDeps(command, agent, journal, deps), signal);
  return endOf(command, end, journal, deps.clock);
}

function turnDeps(command: Command, agent: AgentView, journal: Journal, deps: AssistantDeps): TurnDeps {
  const { events, clock, log, jitter } = deps;
  const { id } = command;
  const chat = chatKey(command.route);
  return {
    ...agent,
    journal,
    clock,
    jitter,
    emit: {
      start: (again) => events.emit({ type: "stream.start", id, chatKey: chat, again }),
      text: (delta) => events.emit({ type: "stream.text", id, chatKey: chat, delta }),
      attempt: (backend, failed) => events.emit({ type: "attempt", backend, failed }),
      note: (note) => events.emit({ type: "stream.note", id, chatKey: chat, note }),
    },
    log: (event, fields) => log.info(event, { commandId: id, ...fields }),
  };
}

function inputOf(command: Command, agent: AgentView, store: Store): TurnInput {
  const steps = store.read.steps.ofCommand(command.id);
  const base = { firstStep: steps.at(-1)?.n ?? 1, callsDone: modelCallsDone(steps) };
  const system: ModelMessage = { role: "system", text: systemPrompt(agent.systemPrompt) };
  if (command.kind === "completion") {
    const { messages, clientTools, sampling } = completionOf(command);
    return { ...base, messages: [system, ...messages], unwritten: [], pending: [], clientTools, sampling };
  }
  const { earlier, own } = viewOf(store.read, command.session, command.id, agent.contextTokens);
  const extra = extraOf(command);
  const unwritten = own.length === 0 ? rowsOf(command, extra) : [];
  const pending = callsWithoutResult(own);
  const theirs = (extra?.messages ?? []).filter((message) => message.role === "system");
  const messages = [system, ...theirs, ...messagesOf([...earlier, ...own, ...unwritten])];
  // messagesOf has closed the calls that are still to be run: their results come first.
  if (pending.length > 0) messages.splice(-pending.length);
  const { clientTools = [], sampling = {} } = extra ?? {};
  return { ...base, messages, unwritten, pending, clientTools, sampling };
}

/** What a command adds to the transcript: results of tools that a client ran, and the person's message. */
function rowsOf(command: Command, extra: Completion | undefined): NewRow[] {
  const results = (extra?.messages ?? []).flatMap((message) => (message.role === "tool" ? [toolRow(message)] : []));
  return command.text === "" ? results : [...results, userRow(command.text)];
}

function extraOf(command: Command): Completion | undefined {
  return command.extra === undefined ? undefined : completionOf(command);
}

function completionOf(command: Command): Completion {
  return completion.parse(JSON.parse(command.extra ?? "{}"));
}

function modelCallsDone(steps: readonly Step[]): number {
  return steps.filter((step) => step.kind === "model" && step.state === "done").length;
}

function endOf(command: Command, end: TurnEnd, journal: Journal, clock: Clock): CommandEnd {
  switch (end.kind) {
    case "stopped":
    case "fenced":
      // A cancelled command has ended already, so this finds no row; a drained one goes back to its place.
      return { state: "handed-back" };
    case "answer": {
      const text = end.cut ? `${end.text}\n\n(Cut off at the length limit of the model.)` : end.text;
      const extra = JSON.stringify({ finish: end.cut ? "length" : "stop", usage: end.last.result });
      return finished("answered", (tx) => {
        journal.writeEnd(tx, end.last);
        addPart(tx, command, clock, { class: "answer", text, extra });
      });
    }
    case "tool-calls": {
      const extra = JSON.stringify({ finish: "tool_calls", usage: end.last.result, calls: end.calls });
      return finished("tool-calls", (tx) => {
        journal.writeEnd(tx, end.last);
        addPart(tx, command, clock, { class: "answer", text: end.text, extra });
      });
    }
    case "failed": {
      const outcome: Outcome = {
        reason: end.failures.length === 0 ? "limit" : "backends-failed",
        message: end.message,
      };
      return failedEnd(command, outcome, end.partial, clock);
    }
  }
}

function finished(reason: Outcome["reason"], write: (tx: Tx) => void): CommandEnd {
  return { state: "done", outcome: { reason }, write };
}

/** The person is told, what was streamed is kept and marked, and the transcript says that this message has no answer. */
function failedEnd(command: Command, outcome: Outcome, partial: string, clock: Clock): CommandEnd {
  const message = outcome.message ?? "The message could not be answered.";
  const text = partial.trim() === "" ? message : `${partial}\n\n(Incomplete. ${message})`;
  return {
    state: "failed",
    outcome,
    write: (tx) => {
      leaveNote(tx, command, `No answer: ${message}`, clock.now());
      addPart(tx, command, clock, { class: "failure", text });
    },
  };
}

function crashed(command: Command, thrown: unknown, deps: AssistantDeps): CommandEnd {
  const outcome: Outcome = { reason: "internal", message: `Laneway failed on this message: ${messageOf(thrown)}` };
  return {
    state: "failed",
    outcome,
    write: (tx) => addPart(tx, command, deps.clock, { class: "failure", text: outcome.message ?? "" }),
  };
}

/** A stopped turn stays in the transcript, so that the next one knows of it. A message that was never started leaves nothing. */
function keepStopped(tx: Tx, command: Command, now: number): void {
  if (command.state === "queued" && !command.open) return;
  leaveNote(tx, command, "Stopped before the answer was complete", now);
}

/** The transcript of a turn without an answer ends with a note, behind what the command added, which stands there once. */
function leaveNote(tx: Tx, command: Command, note: string, now: number): void {
  if (command.kind !== "message") return;
  const rows = tx.messages.ofCommand(command.id);
  const added = rows.length === 0 ? rowsOf(command, extraOf(command)) : [];
  for (const [i, row] of [...added, noteRow(note)].entries()) {
    tx.messages.append(tx.nextSeq(), command.session, command.id, { ...row, n: rows.length + i }, now);
  }
}

function tellGivenUp(tx: Tx, command: Command, outcome: Outcome, clock: Clock): void {
  const message = outcome.message ?? outcome.reason;
  addPart(tx, command, clock, { class: "failure", text: message });
  if (chatKey(command.route) === chatKey(OWNER_ROUTE)) return;
  addNotice(
    tx,
    OWNER_ROUTE,
    clock,
    `A message from ${command.route.channel} was given up (command ${command.id}). ${message}`,
  );
}
