// Owns: working a command off as a turn of its agent: what the model gets to see, and what transcript and outbox keep of the
// end. It is the queue's Runner.
import type { Clock } from "../kernel/clock.ts";
import { messageOf, StoreUnavailable } from "../kernel/errors.ts";
import type { Events } from "../kernel/events.ts";
import type { CommandId } from "../kernel/ids.ts";
import type { Log } from "../kernel/log.ts";
import type { Outcome } from "../queue/command.ts";
import type { Queue } from "../queue/queue.ts";
import type { CommandEnd, Runner } from "../queue/runner.ts";
import { type BusyMode, type Command, chatKey, type StepKind } from "../store/commands.ts";
import type { Step } from "../store/steps.ts";
import type { Store, Tx } from "../store/store.ts";
import type { Backend, ModelMessage, ReadImage, ToolSpec } from "../turns/backends/port.ts";
import { type Journal, makeJournal } from "../turns/journal.ts";
import type { TurnLimits } from "../turns/limits.ts";
import type { Tool } from "../turns/tools/port.ts";
import {
  callsWithoutResult,
  messageOfRow,
  messagesOf,
  type NewRow,
  noteRow,
  OUTCOME_UNKNOWN,
  toolRow,
  userRow,
} from "../turns/transcript.ts";
import {
  type AbsorbAt,
  modelIntent,
  runTurn,
  type TurnDeps,
  type TurnEnd,
  type TurnInput,
  toolIntent,
} from "../turns/turn.ts";
import { type Completion, completion } from "./completion.ts";
import type { Delivery, Placed } from "./delivery.ts";
import { type Media, messageExtraOf, type ReadMedia, shownText, unreadMedia } from "./message.ts";
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
  readonly delivery: Delivery;
  /** Taking waiting messages into a running turn: the queue's. */
  readonly steering: Pick<Queue, "absorbable" | "absorb">;
  readonly readMedia: ReadMedia;
  readonly readImage: ReadImage;
  readonly onProgress: (id: CommandId, kind: StepKind) => void;
  readonly jitter: () => number;
}

export function makeAssistant(deps: AssistantDeps): Runner {
  return {
    begin: (tx, command) => begin(tx, command, deps.clock.now()),
    run: (command, signal) => run(command, deps, signal),
    crashed: (command, thrown) => crashed(command, thrown, deps),
    cancelled: (tx, command) => keepStopped(tx, command, deps.clock.now()),
    givenBack: (tx, command) => {
      tx.messages.takeBack(command.session, command.id);
    },
    gaveUp: (tx, command, outcome) => tellGivenUp(tx, command, outcome, deps.delivery),
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
  const agent = chosenFirst(deps.agent(command), deps.store.read.sessions.get(command.session)?.backend);
  const input = inputOf(command, agent, deps.store, await mediaOf(command, deps, signal));
  const journal = makeJournal({
    store: deps.store,
    clock: deps.clock,
    command,
    rows: deps.store.read.messages.ofCommand(command.id).length,
    keepTranscript: command.kind === "message",
    onProgress: (kind) => deps.onProgress(command.id, kind),
  });
  const end = await runTurn(input, turnDeps(command, agent, journal, deps), signal);
  return endOf(command, end, journal, deps);
}

/** The backend that /model chose goes first; the others follow when it fails. One that is gone chooses nothing. */
function chosenFirst(agent: AgentView, chosen: string | undefined): AgentView {
  if (chosen === undefined) return agent;
  const isChosen = (backend: Backend) => backend.name === chosen;
  const backends = [...agent.backends.filter(isChosen), ...agent.backends.filter((backend) => !isChosen(backend))];
  return { ...agent, backends };
}

function turnDeps(command: Command, agent: AgentView, journal: Journal, deps: AssistantDeps): TurnDeps {
  const { events, clock, log, jitter } = deps;
  const { id, orderKey, lane } = command;
  const chat = chatKey(command.route);
  return {
    ...agent,
    // What people wait for runs in main; what agents and schedules begin has lanes of its own.
    caller: { id, orderKey, forPerson: lane === "main" },
    absorb: (at, own) => absorb(command, at, journal, deps, own),
    readImage: deps.readImage,
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

/**
 * Messages that came while the turn ran (steering), or that wait to be answered together (collect, at its first call). Their
 * files are fetched first; what is no longer waiting then is not taken.
 */
async function absorb(
  command: Command,
  { step, first, unwritten }: AbsorbAt,
  journal: Journal,
  deps: AssistantDeps,
  signal: AbortSignal,
): Promise<readonly ModelMessage[]> {
  const { store, clock, steering } = deps;
  if (command.kind !== "message") return [];
  const modes: readonly BusyMode[] = first && command.mode === "collect" ? ["collect"] : first ? [] : ["steer"];
  const waiting = steering.absorbable(command, modes);
  if (waiting.length === 0) return [];
  const rows = new Map<CommandId, NewRow[]>();
  for (const id of waiting) {
    const one = store.read.commands.get(id);
    if (one !== undefined) rows.set(id, rowsOf(one, undefined, await mediaOf(one, deps, signal)));
  }
  let early = { kept: () => {} };
  const write = (tx: Tx, absorbed: readonly Command[]) => {
    early = journal.writeEarly(tx, unwritten);
    for (const one of absorbed) {
      for (const [n, row] of (rows.get(one.id) ?? []).entries()) {
        tx.messages.append(tx.nextSeq(), one.session, one.id, { ...row, n }, clock.now());
      }
    }
  };
  const taken = await steering.absorb(command, step, [...rows.keys()], write).catch((thrown: unknown) => {
    // While the disk is full nothing joins; the turn goes on, and what waits is the next one's.
    if (thrown instanceof StoreUnavailable) return [];
    throw thrown;
  });
  if (taken.length > 0) early.kept();
  return taken.flatMap((one) => (rows.get(one.id) ?? []).map(messageOfRow));
}

/** Only for a message that is not in the transcript yet. */
async function mediaOf(command: Command, { store, readMedia }: AssistantDeps, signal: AbortSignal): Promise<Media> {
  const extra = messageExtraOf(command);
  if (extra === undefined || extra.attachments.length === 0) return NO_MEDIA;
  if (store.read.messages.ofCommand(command.id).length > 0) return NO_MEDIA;
  return readMedia(command, extra, signal);
}

const NO_MEDIA: Media = { lines: [], images: [] };

function inputOf(command: Command, agent: AgentView, store: Store, media: Media): TurnInput {
  const steps = store.read.steps.ofCommand(command.id);
  const base = { firstStep: steps.at(-1)?.n ?? 1, callsDone: modelCallsDone(steps) };
  const system: ModelMessage = { role: "system", text: systemPrompt(agent.systemPrompt) };
  if (command.kind === "completion") {
    const { messages, clientTools, sampling } = completionOf(command);
    return { ...base, messages: [system, ...messages], unwritten: [], pending: [], clientTools, sampling };
  }
  const { earlier, own } = viewOf(store.read, command.session, command.id, agent.contextTokens);
  const extra = extraOf(command);
  const unwritten = own.length === 0 ? rowsOf(command, extra, media) : [];
  const pending = callsWithoutResult(own);
  const theirs = (extra?.messages ?? []).filter((message) => message.role === "system");
  const messages = [system, ...theirs, ...messagesOf([...earlier, ...own, ...unwritten])];
  // messagesOf has closed the calls that are still to be run: their results come first.
  if (pending.length > 0) messages.splice(-pending.length);
  const { clientTools = [], sampling = {} } = extra ?? {};
  return { ...base, messages, unwritten, pending, clientTools, sampling };
}

/** What a command adds to the transcript: results of tools that a client ran, and the person's message. */
function rowsOf(command: Command, extra: Completion | undefined, media: Media): NewRow[] {
  const results = (extra?.messages ?? []).flatMap((message) => (message.role === "tool" ? [toolRow(message)] : []));
  const text = shownText(command.text, messageExtraOf(command), media);
  return text === "" && media.images.length === 0 ? results : [...results, userRow(text, media.images)];
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

function endOf(command: Command, end: TurnEnd, journal: Journal, deps: AssistantDeps): CommandEnd {
  switch (end.kind) {
    case "stopped":
    case "fenced":
      // A cancelled command has ended already, so this finds no row; a drained one goes back to its place.
      return { state: "handed-back" };
    case "answer": {
      const text = end.cut ? `${end.text}\n\n(Cut off at the length limit of the model.)` : end.text;
      const extra = JSON.stringify({ finish: end.cut ? "length" : "stop", usage: end.last.result });
      return told("done", { reason: "answered" }, deps.delivery, (tx) => {
        journal.writeEnd(tx, end.last);
        return answerPart(tx, command, { class: "answer", text, extra }, deps.delivery);
      });
    }
    case "tool-calls": {
      const extra = JSON.stringify({ finish: "tool_calls", usage: end.last.result, calls: end.calls });
      return told("done", { reason: "tool-calls" }, deps.delivery, (tx) => {
        journal.writeEnd(tx, end.last);
        return answerPart(tx, command, { class: "answer", text: end.text, extra }, deps.delivery);
      });
    }
    case "failed": {
      const outcome: Outcome = {
        reason: end.failures.length === 0 ? "limit" : "backends-failed",
        message: end.message,
      };
      return failedEnd(command, outcome, end.partial, deps);
    }
  }
}

/** An end whose person is told in the same transaction; what a push channel is to send is handed over after the commit. */
function told(
  state: "done" | "failed",
  outcome: Outcome,
  delivery: Delivery,
  write: (tx: Tx) => Placed,
): Extract<CommandEnd, { state: "done" | "failed" }> {
  let placed: Placed | undefined;
  return {
    ...{ state, outcome },
    write: (tx) => {
      placed = write(tx);
    },
    after: () => {
      if (placed !== undefined) delivery.send(placed);
    },
  };
}

function answerPart(tx: Tx, command: Command, part: Parameters<Delivery["answer"]>[2], delivery: Delivery): Placed {
  return delivery.answer(tx, command, { ...part, replyTo: messageExtraOf(command)?.refs[0] });
}

/** The person is told, what was streamed is kept and marked, and the transcript says that this message has no answer. */
function failedEnd(
  command: Command,
  outcome: Outcome,
  partial: string,
  { delivery, clock }: AssistantDeps,
): CommandEnd {
  const message = outcome.message ?? "The message could not be answered.";
  const text = partial.trim() === "" ? message : `${partial}\n\n(Incomplete. ${message})`;
  return told("failed", outcome, delivery, (tx) => {
    leaveNote(tx, command, `No answer: ${message}`, clock.now());
    return answerPart(tx, command, { class: "failure", text }, delivery);
  });
}

function crashed(command: Command, thrown: unknown, { delivery }: AssistantDeps): CommandEnd {
  const outcome: Outcome = { reason: "internal", message: `Laneway failed on this message: ${messageOf(thrown)}` };
  return told("failed", outcome, delivery, (tx) =>
    answerPart(tx, command, { class: "failure", text: outcome.message ?? "" }, delivery),
  );
}

/** A stopped turn stays in the transcript, so that the next one knows of it. A message that was never started leaves nothing. */
function keepStopped(tx: Tx, command: Command, now: number): void {
  if (command.state === "queued" && !command.open) return;
  // The turn that took it in goes on, and its rows stand behind this one's.
  if (command.state === "absorbed") return;
  leaveNote(tx, command, "Stopped before the answer was complete", now);
}

/** The transcript of a turn without an answer ends with a note, behind what the command added, which stands there once. */
function leaveNote(tx: Tx, command: Command, note: string, now: number): void {
  if (command.kind !== "message") return;
  const rows = tx.messages.ofCommand(command.id);
  const added = rows.length === 0 ? rowsOf(command, extraOf(command), unreadMedia(messageExtraOf(command))) : [];
  for (const [i, row] of [...added, noteRow(note)].entries()) {
    tx.messages.append(tx.nextSeq(), command.session, command.id, { ...row, n: rows.length + i }, now);
  }
}

/** At boot, before anything is sent: what stands in the outbox then goes out by itself. */
function tellGivenUp(tx: Tx, command: Command, outcome: Outcome, delivery: Delivery): void {
  const message = outcome.message ?? outcome.reason;
  answerPart(tx, command, { class: "failure", text: message }, delivery);
  if (delivery.isOwners(command.route)) return;
  const { channel } = command.route;
  delivery.tellOwner(tx, `A message from ${channel} was given up (command ${command.id}). ${message}`);
}
