// Owns: the verbs of `/api`: one table of name, input and effect, for page, terminal and CLI alike. The caller is the owner.
import { z } from "zod";
import type { Delivery } from "../agents/delivery.ts";
import { agentOf } from "../agents/session.ts";
import type { Clock } from "../kernel/clock.ts";
import { InvalidInput, NotFound } from "../kernel/errors.ts";
import type { Events } from "../kernel/events.ts";
import type { CommandId, Ids, PartId, SessionKey } from "../kernel/ids.ts";
import { visible } from "../kernel/visible.ts";
import { isFinal } from "../queue/command.ts";
import { checkLane, OWNER } from "../queue/lane.ts";
import type { Queue } from "../queue/queue.ts";
import { type Command, chatKey, type Route } from "../store/commands.ts";
import type { Part } from "../store/outbox.ts";
import type { Peer } from "../store/peers.ts";
import type { Store } from "../store/store.ts";
import { messageOfRow } from "../turns/transcript.ts";
import { type Accept, hashOf } from "./accept.ts";
import { chatCommandList } from "./chat-commands.ts";
import { approve, deny, targetOf } from "./pairing.ts";
import type { HostStatus } from "./status.ts";
import { history } from "./timeline.ts";
import { whenFinal } from "./when-final.ts";

export interface VerbDeps {
  readonly store: Store;
  readonly queue: Queue;
  readonly clock: Clock;
  readonly events: Events;
  readonly accept: Accept;
  readonly status: () => HostStatus;
  readonly link: () => string;
  readonly delivery: Delivery;
  readonly ids: Ids;
  readonly doctor: () => Promise<{ name: string; ok: boolean; detail: string }[]>;
}

export interface VerbResult {
  readonly status: 200 | 202;
  readonly body: unknown;
}

interface Verb {
  /** Throws InvalidInput for input that does not fit, or what the verb throws. */
  readonly run: (name: string, raw: unknown, deps: VerbDeps, signal: AbortSignal) => unknown;
  readonly status: VerbResult["status"];
}

/** Ties the type of the input to the schema. */
function verb<Input>(
  input: z.ZodType<Input>,
  run: (input: Input, deps: VerbDeps, signal: AbortSignal) => unknown,
  status: VerbResult["status"] = 200,
): Verb {
  return {
    status,
    run(name, raw, deps, signal) {
      const parsed = input.safeParse(raw);
      if (!parsed.success) {
        throw new InvalidInput(`the input of ${name} does not fit: ${z.prettifyError(parsed.error)}`);
      }
      return run(parsed.data, deps, signal);
    },
  };
}

/** Part of a session key, so no colon. */
export const chatName = z.string().regex(/^[\w.-]{1,64}$/, "expected letters, digits, . _ and - (at most 64)");
export const pullChannel = z.enum(["web", "terminal"]);
const chat = { channel: pullChannel.default("web"), chat: chatName.default("main") };
const id = z.int().min(1);
const limit = z.int().min(1).max(1_000).default(100);

export function pullRoute(channel: "web" | "terminal", name: string): Route {
  return { channel, account: "default", chat: name, thread: undefined };
}

const iso = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString());
/** Enough to recognise a message by, in a list. */
const PREVIEW_CHARS = 80;
const MAX_WAIT_MS = 60_000;

const VERBS: Readonly<Record<string, Verb>> = {
  send: verb(z.strictObject({ ...chat, text: z.string(), key: z.string().min(1).max(200) }), send, 202),
  wait: verb(z.strictObject({ command: id, timeoutMs: z.int().min(0).max(MAX_WAIT_MS).default(30_000) }), wait),
  history: verb(
    z.strictObject({
      ...chat,
      before: id.default(Number.MAX_SAFE_INTEGER),
      limit: z.int().min(1).max(200).default(50),
    }),
    (input, { store }) => history(store.read, pullRoute(input.channel, input.chat), input.before, input.limit),
  ),
  ack: verb(z.strictObject({ ...chat, seq: z.int().min(0) }), acknowledge),
  commands: verb(z.strictObject({}), () => ({ commands: chatCommandList() })),
  status: verb(z.strictObject({}), (_, deps) => deps.status()),
  lanes: verb(z.strictObject({}), (_, { queue }) => ({ lanes: queue.lanes() })),
  "queue.list": verb(
    z.strictObject({ lane: z.string().optional(), all: z.boolean().default(false), limit }),
    listCommands,
  ),
  "queue.show": verb(z.strictObject({ id }), showCommand),
  "queue.cancel": verb(z.strictObject({ id }), cancelCommand),
  "queue.retry": verb(z.strictObject({ id }), retryCommand),
  "outbox.list": verb(z.strictObject({ all: z.boolean().default(false), limit }), (input, { store }) => ({
    parts: (input.all ? store.read.outbox.recent(input.limit) : store.read.outbox.live(input.limit)).map(partRow),
  })),
  "outbox.resend": verb(z.strictObject({ id }), (input, deps) => changePart(input.id, "resend", deps)),
  "outbox.drop": verb(z.strictObject({ id }), (input, deps) => changePart(input.id, "drop", deps)),
  "pairing.list": verb(z.strictObject({ limit }), (input, { store }) => ({
    peers: store.read.peers.list(input.limit).map(peerRow),
  })),
  "pairing.approve": verb(z.strictObject({ code: z.string().min(1).max(100) }), async (input, deps) =>
    peerRow(await approve(input.code.trim(), deps)),
  ),
  "pairing.deny": verb(z.strictObject({ peer: z.string().min(1).max(200) }), async (input, deps) =>
    peerRow(await deny(input.peer.trim(), deps)),
  ),
  "sessions.list": verb(z.strictObject({ limit }), (input, { store }) => ({
    sessions: store.read.sessions.list(input.limit).map(({ lastAt, createdAt, startsAfter: _, ...rest }) => ({
      ...rest,
      createdAt: iso(createdAt),
      lastAt: iso(lastAt),
    })),
  })),
  "sessions.show": verb(z.strictObject({ key: z.string(), limit }), showSession),
  link: verb(z.strictObject({}), (_, deps) => ({ url: deps.link() })),
  doctor: verb(z.strictObject({}), async (_, deps) => ({ checks: await deps.doctor() })),
};

/** Rejects with NotFound for no such verb, InvalidInput for input that does not fit, or what the verb throws. */
export async function runVerb(name: string, raw: unknown, deps: VerbDeps, signal: AbortSignal): Promise<VerbResult> {
  const entry = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined;
  if (entry === undefined) throw new NotFound(`there is no verb ${JSON.stringify(name)}`);
  return { status: entry.status, body: await entry.run(name, raw, deps, signal) };
}

async function send(input: { channel: "web" | "terminal"; chat: string; text: string; key: string }, deps: VerbDeps) {
  const route = pullRoute(input.channel, input.chat);
  const accepted = await deps.accept({
    event: { channel: input.channel, account: "default", key: input.key },
    rawHash: hashOf(input.text),
    ...{ route, agent: "main", sender: OWNER, actor: OWNER, role: "owner", source: "chat", kind: "message" },
    text: input.text,
  });
  return { ...accepted, seq: accepted.command };
}

async function wait(input: { command: number; timeoutMs: number }, deps: VerbDeps, signal: AbortSignal) {
  const limit = new AbortController();
  const stopLimit = deps.clock.after(input.timeoutMs, () => limit.abort("timeout"));
  const either = AbortSignal.any([signal, limit.signal]);
  const command = await whenFinal(input.command as CommandId, deps, either).finally(stopLimit);
  // What was taken into another turn is answered by that one.
  const parts = deps.store.read.outbox.ofCommand(command.absorbedBy ?? command.id);
  return {
    command: command.id,
    state: command.state,
    final: isFinal(command.state),
    outcome: outcomeOf(command),
    parts: parts.map((part) => ({ seq: part.id, class: part.class, text: part.text })),
  };
}

function acknowledge(input: { channel: "web" | "terminal"; chat: string; seq: number }, { store, clock }: VerbDeps) {
  const key = chatKey(pullRoute(input.channel, input.chat));
  return store.write("ack", (tx) => ({ acknowledged: tx.outbox.acknowledge(key, input.seq, clock.now()) }));
}

function outcomeOf(command: Command): unknown {
  return command.outcome === undefined ? undefined : JSON.parse(command.outcome);
}

function commandRow(command: Command, { queue, clock }: VerbDeps) {
  const { acceptedAt, startedAt, finishedAt, text } = command;
  const waited = (startedAt ?? finishedAt ?? clock.now()) - acceptedAt;
  return {
    ...{
      id: command.id,
      state: command.state,
      lane: command.lane,
      priority: command.priority,
      session: command.session,
    },
    ...{ source: command.source, strikes: command.strikes, position: queue.position(command.id) },
    acceptedAt: iso(acceptedAt),
    startedAt: iso(startedAt),
    finishedAt: iso(finishedAt),
    waitedMs: Math.max(0, waited),
    preview: text.slice(0, PREVIEW_CHARS),
  };
}

function listCommands(input: { lane?: string | undefined; all: boolean; limit: number }, deps: VerbDeps) {
  if (input.lane !== undefined) checkLane(input.lane);
  const { commands } = deps.store.read;
  const found = input.all
    ? commands.recent(Number.MAX_SAFE_INTEGER, input.limit).reverse()
    : commands.live(input.limit);
  const inLane = found.filter((command) => input.lane === undefined || command.lane === input.lane);
  return { commands: inLane.map((command) => commandRow(command, deps)) };
}

function known(wanted: number, { store }: VerbDeps): Command {
  const command = store.read.commands.get(wanted as CommandId);
  if (command === undefined)
    throw new NotFound(`there is no command ${wanted}`, { hint: "`laneway queue list --all` shows them." });
  return command;
}

function showCommand(input: { id: number }, deps: VerbDeps) {
  const command = known(input.id, deps);
  const { claim, generation } = command;
  const steps = deps.store.read.steps.ofCommand(command.id);
  return {
    command: { ...commandRow(command, deps), claim, generation, outcome: outcomeOf(command) },
    steps: steps.map(({ n, kind, name, state, startedAt, endedAt }) => {
      return { n, kind, name, state, startedAt: iso(startedAt), endedAt: iso(endedAt) };
    }),
    parts: deps.store.read.outbox
      .ofCommand(command.id)
      .map((part) => ({ id: part.id, state: part.state, class: part.class })),
  };
}

async function cancelCommand(input: { id: number }, deps: VerbDeps) {
  const { id: wanted, state } = known(input.id, deps);
  await audit("queue.cancel", String(wanted), { from: state }, deps);
  return { id: wanted, state: await deps.queue.cancel(wanted, { reason: "stopped" }) };
}

/** The same message as a new command at the end of its line; the old row stays as it ended. */
async function retryCommand(input: { id: number }, deps: VerbDeps) {
  const old = known(input.id, deps);
  if (!isFinal(old.state) || old.kind !== "message") {
    throw new InvalidInput(`command ${old.id} is ${old.state}; only a message that has ended can be retried`);
  }
  const { route, sender, actor, role, source, text, extra, claim } = old;
  await audit("queue.retry", String(old.id), { from: old.state }, deps);
  const key = `retry:${old.id}:${claim}:${deps.clock.now()}`;
  const accepted = await deps.accept({
    event: { channel: route.channel, account: route.account, key },
    rawHash: hashOf(text),
    ...{ route, agent: agentOf(old.session), sender, actor, role, source, kind: "message", text, extra },
  });
  return { id: accepted.command, of: old.id };
}

/** Committed before the action (G26). */
function audit(
  action: string,
  target: string,
  detail: Record<string, unknown>,
  { store, clock }: VerbDeps,
): Promise<void> {
  return store.write("audit", (tx) => tx.audit.add({ actor: OWNER, action, target, detail }, clock.now()));
}

/** Without the code: it is the sender who must tell it (ID-R2). */
function peerRow(peer: Peer) {
  const { name, state, expiresAt } = peer;
  return { id: targetOf(peer), name: visible(name), state, ...(state === "pending" && { expiresAt: iso(expiresAt) }) };
}

function partRow(part: Part) {
  const { id: partId, chatKey: to, command, state, attempts, createdAt, sentAt, text, reason } = part;
  const about = { id: partId, chat: to, command, class: part.class, state, attempts, reason };
  return { ...about, createdAt: iso(createdAt), sentAt: iso(sentAt), preview: text.slice(0, PREVIEW_CHARS) };
}

async function changePart(wanted: number, change: "resend" | "drop", { store, clock, delivery }: VerbDeps) {
  const partId = wanted as PartId;
  const part = store.read.outbox.get(partId);
  if (part === undefined)
    throw new NotFound(`there is no part ${wanted}`, { hint: "`laneway outbox list --all` shows them." });
  const changed = await store.write(`outbox-${change}`, (tx) => {
    tx.audit.add(
      { actor: OWNER, action: `outbox.${change}`, target: String(partId), detail: { from: part.state } },
      clock.now(),
    );
    return tx.outbox[change](partId, clock.now());
  });
  if (!changed)
    throw new InvalidInput(`part ${wanted} is ${part.state}; it cannot be ${change === "drop" ? "dropped" : "resent"}`);
  if (change === "resend") delivery.send({ chatKey: part.chatKey, parts: [partId] });
  return { id: partId, state: store.read.outbox.get(partId)?.state };
}

function showSession(input: { key: string; limit: number }, { store }: VerbDeps) {
  const session = store.read.sessions.get(input.key as SessionKey);
  if (session === undefined) {
    const hint = "Expected a whole key as `laneway sessions list` shows it.";
    throw new NotFound(`there is no session ${JSON.stringify(input.key)}`, { hint });
  }
  const rows = store.read.messages.newest(session.key, 0, Number.MAX_SAFE_INTEGER).slice(-input.limit);
  const messages = rows.map((row) => {
    return { id: row.id, command: row.command, role: row.role, at: iso(row.createdAt), text: messageOfRow(row).text };
  });
  return { session: { key: session.key, agent: session.agent, createdAt: iso(session.createdAt) }, messages };
}
