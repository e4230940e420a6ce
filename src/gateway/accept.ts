// Owns: accepting an event: one transaction with inbox row, access decision, command and, for a chat command, its effect and
// reply. Only after it has committed is the sender told. A redelivery finds the earlier command (G2).
import { createHash } from "node:crypto";
import { sessionKey } from "../agents/session.ts";
import type { Clock } from "../kernel/clock.ts";
import { InvalidInput } from "../kernel/errors.ts";
import type { Events } from "../kernel/events.ts";
import type { CommandId, SessionKey } from "../kernel/ids.ts";
import type { Queue } from "../queue/queue.ts";
import { chatKey, type NewCommand, type QueuedCommand, type Role, type Route } from "../store/commands.ts";
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
}

/** A person's priority is foreground: it goes before recovered and background work within the ageing bound. */
const FOREGROUND = 1;
const MAX_TEXT_CHARS = 100_000;

export function makeAccept(deps: AcceptDeps): Accept {
  const { store, queue } = deps;
  return async (inbound) => {
    const earlier = earlierOf(store.read, inbound);
    if (earlier !== undefined) return earlier;
    checkText(inbound);
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
      const { made, ...accepted } = await store.write("accept", (tx) =>
        insert(tx, inbound, session, inbound.kind, deps),
      );
      if (made !== undefined) queue.offer(made);
      return accepted;
    } finally {
      release();
    }
  };
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
}

/** Inside a write: inbox row and command, once for each event. */
export function insert(
  tx: Tx,
  inbound: Inbound,
  session: SessionKey,
  kind: NewCommand["kind"],
  { queue, clock }: Pick<AcceptDeps, "queue" | "clock">,
): Inserted {
  const earlier = earlierOf(tx, inbound);
  if (earlier !== undefined) return earlier;
  const now = clock.now();
  if (kind !== "completion") tx.sessions.ensure(session, inbound.agent, inbound.route, now);
  const { route, sender, actor, role, source, text, extra, notBefore = 0 } = inbound;
  const made = queue.insert(tx, {
    lane: "main",
    priority: source === "chat" ? FOREGROUND : 0,
    ...{ session, route, sender, actor, role, source, kind, text, extra, notBefore },
    acceptedAt: now,
  });
  tx.inbox.insert(inbound.event, inbound.rawHash, made.id, now);
  return { command: made.id, duplicate: false, made };
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
  const { made, ...accepted } = insert(tx, inbound, session, "control", deps);
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
