// Owns: accepting an event: one transaction with inbox row, access decision, command and, for a chat command, its effect and
// reply. Only after it has committed is the sender told. A redelivery finds the earlier command (G2).
import { createHash } from "node:crypto";
import { sessionKey } from "../agents/session.ts";
import type { Clock } from "../kernel/clock.ts";
import { InvalidInput } from "../kernel/errors.ts";
import type { Events } from "../kernel/events.ts";
import type { CommandId, SessionKey } from "../kernel/ids.ts";
import type { Cancelled } from "../queue/cancel.ts";
import type { Queue } from "../queue/queue.ts";
import {
  type BusyMode,
  chatKey,
  type NewCommand,
  type QueuedCommand,
  type Role,
  type Route,
} from "../store/commands.ts";
import type { EventKey } from "../store/inbox.ts";
import type { Reads, Store, Tx } from "../store/store.ts";
import { type ChatCommand, type ChatCommandDeps, parseChatCommand, runChatCommand } from "./chat-commands.ts";

/** An event of a channel whose sender is known. */
export interface Inbound {
  readonly event: EventKey;
  /** Hash of the raw body, to recognise a client's own retry. */
  readonly rawHash: string;
  readonly route: Route;
  readonly agent: string;
  readonly sender: string;
  readonly actor: string;
  readonly role: Role;
  readonly source: string;
  readonly kind: "message" | "completion";
  readonly text: string;
  readonly extra?: string | undefined;
  /** A stateless request brings a session of its own; otherwise the route decides. */
  readonly session?: SessionKey | undefined;
  readonly notBefore?: number | undefined;
  /** What it does while its session is busy; absent: what conversation, channel and settings say. */
  readonly mode?: BusyMode | undefined;
}

export interface Accepted {
  readonly command: CommandId;
  /** The event had been accepted before; nothing new was made. */
  readonly duplicate: boolean;
}

/** Rejects with QueueFull at a cap, InvalidInput for an unusable text or a key that had another body, StoreUnavailable while the disk is full. */
export type Accept = (inbound: Inbound) => Promise<Accepted>;

export interface AcceptDeps {
  readonly store: Store;
  readonly queue: Queue;
  readonly clock: Clock;
  readonly events: Events;
  readonly chatCommands: ChatCommandDeps;
  readonly busy: () => BusySettings;
}

/** `settings.queue`, as far as busy conversations go. */
export interface BusySettings {
  readonly mode: BusyMode;
  readonly debounceMs: number;
  readonly perChannel: Readonly<Partial<Record<string, { readonly mode: BusyMode }>>>;
}

/** A person's priority is foreground: it goes before recovered and background work within the ageing bound. */
const FOREGROUND = 1;
const MAX_TEXT_CHARS = 100_000;

export function makeAccept(deps: AcceptDeps): Accept {
  const { store, queue } = deps;
  const accept: Accept = async (inbound) => {
    const earlier = earlierOf(store.read, inbound);
    if (earlier !== undefined) return earlier;
    checkText(inbound);
    const steered = steeredText(inbound);
    if (steered !== undefined) return accept({ ...inbound, text: steered, mode: "steer" });
    const chatCommand = inbound.kind === "message" ? parseChatCommand(inbound.text) : undefined;
    if (chatCommand !== undefined) {
      const { accepted, after } = await store.write("accept-control", (tx) =>
        insertChatCommand(tx, inbound, chatCommand, deps),
      );
      after();
      return accepted;
    }
    const session = inbound.session ?? sessionKey(inbound.agent, inbound.route);
    const release = queue.reserve(session);
    try {
      const inserted = await store.write("accept", (tx) => insert(tx, inbound, session, inbound.kind, deps));
      offer(inserted, queue);
      return { command: inserted.command, duplicate: inserted.duplicate };
    } finally {
      release();
    }
  };
  return accept;
}

/** `/steer TEXT` is an ordinary message that joins the running turn, whatever the mode; idle, it begins one (Q9.4). */
export function steeredText({ kind, text }: Pick<Inbound, "kind" | "text">): string | undefined {
  const command = kind === "message" ? parseChatCommand(text) : undefined;
  return command?.name === "steer" && command.argument !== "" ? command.argument : undefined;
}

export function hashOf(raw: string): string {
  return createHash("sha256").update(raw).digest("base64url");
}

function checkText({ text, extra }: Inbound): void {
  if (text.trim() === "" && extra === undefined) throw new InvalidInput("the message is empty");
  if (text.length > MAX_TEXT_CHARS) {
    throw new InvalidInput(`the message has ${text.length} characters, at most ${MAX_TEXT_CHARS} are taken`, {
      hint: "Put it into a file in the workspace and ask about the file.",
    });
  }
}

/**
 * The command that this event has made already. Throws KeyReused when its client used the key for another body: to answer
 * with the earlier command would lose this message without a word (Q1.4).
 */
function earlierOf({ inbox }: Pick<Reads, "inbox">, { event, rawHash }: Inbound): Accepted | undefined {
  const command = inbox.find(event);
  // A message of page, terminal or API always makes a command.
  if (command === undefined || command === null) return undefined;
  if (!inbox.hasBody(event, rawHash)) {
    throw new KeyReused(`the key of this message was used for another one (command ${command})`, {
      hint: "Nothing was accepted. A new message needs a new key; a repeat must have the same body.",
    });
  }
  return { command, duplicate: true };
}

class KeyReused extends InvalidInput {
  override readonly code = "key_reused";
}

interface Inserted extends Accepted {
  /** Absent for a duplicate. */
  readonly made?: QueuedCommand;
  /** What gave way to it; memory follows by `offer`. */
  readonly interrupted?: readonly Cancelled[];
}

/** After the write has committed. */
export function offer({ made, interrupted }: Inserted, queue: Queue): void {
  for (const cancelled of interrupted ?? []) queue.cancelled(cancelled);
  if (made !== undefined) queue.offer(made);
}

/** Inside a write: inbox row and command, once for each event. */
export function insert(
  tx: Tx,
  inbound: Inbound,
  session: SessionKey,
  kind: NewCommand["kind"],
  { queue, clock, busy }: Pick<AcceptDeps, "queue" | "clock" | "busy">,
): Inserted {
  const earlier = earlierOf(tx, inbound);
  if (earlier !== undefined) return earlier;
  const now = clock.now();
  if (kind !== "completion") tx.sessions.ensure(session, inbound.agent, inbound.route, now);
  const { route, sender, actor, role, source, text, extra } = inbound;
  const mode = kind === "message" ? modeOf(tx, inbound, session, busy()) : "followup";
  const waits = mode === "collect" && tx.commands.runningIn(session) !== undefined ? now + busy().debounceMs : 0;
  const made = queue.insert(tx, {
    lane: "main",
    priority: source === "chat" ? FOREGROUND : 0,
    ...{ session, route, sender, actor, role, source, kind, text, extra, mode },
    notBefore: Math.max(waits, inbound.notBefore ?? 0),
    acceptedAt: now,
  });
  tx.inbox.insert(inbound.event, inbound.rawHash, made.id, now);
  const interrupted = mode === "interrupt" ? interrupt(tx, made, queue) : [];
  return { command: made.id, duplicate: false, made, interrupted };
}

/** Programs know nothing of a running turn: what they send is a turn of its own (contract, OpenAI door). */
function modeOf(tx: Tx, { mode, source, route }: Inbound, session: SessionKey, busy: BusySettings): BusyMode {
  if (source !== "chat") return "followup";
  return mode ?? tx.sessions.get(session)?.mode ?? busy.perChannel[route.channel]?.mode ?? busy.mode;
}

/** The turn of the same person in the same chat gives way to what he writes now. */
function interrupt(tx: Tx, made: QueuedCommand, queue: Queue): Cancelled[] {
  const running = tx.commands.runningIn(made.session);
  if (running === undefined || running.actor !== made.actor || chatKey(running.route) !== chatKey(made.route))
    return [];
  return [queue.cancelIn(tx, running.id, { reason: "stopped" })].filter((one) => one !== undefined);
}

/**
 * Inside a write: a chat command takes effect in its accept transaction, so that `/stop` waits for nothing (G18). `after` is
 * for memory, once it has committed.
 */
export function insertChatCommand(
  tx: Tx,
  inbound: Inbound,
  chatCommand: ChatCommand,
  deps: AcceptDeps,
): { accepted: Accepted; after: () => void } {
  const session = sessionKey(inbound.agent, inbound.route);
  const { made, command, duplicate } = insert(tx, inbound, session, "control", deps);
  const accepted = { command, duplicate };
  if (made === undefined) return { accepted, after: () => {} };
  const { role, actor, route, sender } = inbound;
  const call = { command: made.id, session, route, role, actor, sender };
  const effect = runChatCommand(tx, chatCommand, call, deps.chatCommands);
  return {
    accepted,
    after: () => {
      effect();
      deps.events.emit({ type: "command", id: made.id, session, chatKey: chatKey(route), state: "done" });
    },
  };
}
