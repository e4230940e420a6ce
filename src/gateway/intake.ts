// Owns: taking in what a channel brought: one transaction with access decisions, commands and the platform's new position, each
// event in a savepoint of its own. Only after it has committed is the platform told (G1, G2, G3).
import type { Delivery, Placed } from "../agents/delivery.ts";
import { type MessageExtra, messageExtraOf, storedExtra } from "../agents/message.ts";
import { sessionKey } from "../agents/session.ts";
import type { ChannelEvent, EventBatch } from "../channels/port.ts";
import type { Stop } from "../kernel/clock.ts";
import { messageOf, QueueFull } from "../kernel/errors.ts";
import type { Ids, SessionKey } from "../kernel/ids.ts";
import { errorFields, type Log } from "../kernel/log.ts";
import { visible } from "../kernel/visible.ts";
import { OWNER } from "../queue/lane.ts";
import { type Command, chatKey, type Route } from "../store/commands.ts";
import type { EventKey } from "../store/inbox.ts";
import type { Tx } from "../store/store.ts";
import { type AcceptDeps, type Inbound, insert, insertChatCommand, offer, steeredText } from "./accept.ts";
import { type AccessRules, type Admission, actorOf, admit } from "./admission.ts";
import { parseChatCommand } from "./chat-commands.ts";
import { invite } from "./pairing.ts";

export interface IntakeDeps extends AcceptDeps {
  readonly log: Log;
  readonly ids: Ids;
  readonly delivery: Delivery;
  readonly owners: readonly string[];
  readonly agent: string;
}

/** One account of a channel, as far as taking in goes. */
export interface IntakeDoor {
  readonly channel: string;
  readonly account: string;
  readonly rules: () => AccessRules;
}

/** Rejects when nothing was kept: the channel asks the platform again for the same events. */
export type Intake = (identity: string, batch: EventBatch) => Promise<void>;

/** What comes within it belongs to the message before: the pieces of an album, or of a text that the platform has split. */
const JOIN_MS = 1_500;
/** As much as a message from elsewhere may have; what follows is a message of its own. */
const MAX_JOINED_CHARS = 100_000;
/** How far back in a chat the message is looked for that an edit or a further piece belongs to. */
const LOOK_BACK = 50;

export function makeIntake(door: IntakeDoor, deps: IntakeDeps): Intake {
  const { store, log } = deps;
  return async (identity, batch) => {
    const places: Stop[] = [];
    const taking = { ...deps, door, places };
    try {
      const effects = await store.write("intake", (tx) => {
        const done = batch.events.flatMap((event) => takeOne(tx, event, identity, taking));
        tx.positions.put(door.channel, identity, batch.position);
        return done;
      });
      for (const effect of effects) runEffect(effect, log);
    } finally {
      for (const giveUp of places) giveUp();
    }
    if (batch.events.length > 0) log.debug("channel.taken", { channel: door.channel, events: batch.events.length });
  };
}

interface Taking extends IntakeDeps {
  readonly door: IntakeDoor;
  /** Places in the queue for the new messages of this batch: held until these are in its index, or the write has failed. */
  readonly places: Stop[];
}

type Effect = () => void;

/** The rows are kept, so whatever goes wrong in memory is no reason to ask for the same events again. */
function runEffect(effect: Effect, log: Log): void {
  try {
    effect();
  } catch (thrown) {
    log.error("channel.effect-failed", errorFields(thrown));
  }
}

/** Never fails alone: an event that cannot be kept is kept raw, and the owner is told. */
function takeOne(tx: Tx, event: EventBatch["events"][number], identity: string, deps: Taking): readonly Effect[] {
  const key: EventKey = { channel: deps.door.channel, account: identity, key: event.key };
  if (tx.inbox.find(key) !== undefined) return [];
  if ("problem" in event) return reject(tx, key, event.raw, event.problem, deps);
  const taken = tx.attempt(() => takeEvent(tx, event, key, deps));
  if (taken.ok) return taken.value;
  deps.log.error("channel.event-rejected", { channel: key.channel, key: event.key, ...errorFields(taken.error) });
  return reject(tx, key, JSON.stringify(event), messageOf(taken.error), deps);
}

function reject(tx: Tx, key: EventKey, raw: string, problem: string, deps: Taking): readonly Effect[] {
  const { clock, delivery, log } = deps;
  const now = clock.now();
  tx.rejected.add(key, raw, problem, now);
  tx.inbox.insert(key, "", null, now);
  const text = `An event from ${key.channel} could not be taken: ${problem} It is kept as it came.`;
  const told = tx.attempt(() => delivery.tellOwner(tx, text));
  if (told.ok) return [send(delivery, told.value)];
  log.error("channel.owner-not-told", { channel: key.channel, key: key.key, ...errorFields(told.error) });
  return [];
}

function send(delivery: Delivery, placed: Placed): Effect {
  return () => delivery.send(placed);
}

function takeEvent(tx: Tx, event: ChannelEvent, key: EventKey, deps: Taking): readonly Effect[] {
  const { channel, account, rules } = deps.door;
  const admission = admit(event, { channel, account, rules: rules(), owners: deps.owners, read: tx });
  if (admission.kind === "ignored") return [];
  const route: Route = { channel, account, chat: event.chat, thread: event.thread };
  if (admission.kind === "ask-owner") return askOwner(tx, event, key, route, deps);
  const plain = inboundOf(event, key, admission, route, deps);
  if (event.kind === "edit") return takeEdit(tx, event, plain, deps);
  const steered = steeredText(plain);
  const inbound: Inbound = steered === undefined ? plain : { ...plain, text: steered, mode: "steer" };
  const command = parseChatCommand(inbound.text);
  if (command !== undefined) return [insertChatCommand(tx, inbound, command, deps).after];
  // To answer somebody with nothing but the bot's name is to point at what he wrote.
  const isEmpty = inbound.text.trim() === "" && event.attachments.length === 0 && event.quoted === undefined;
  if (isEmpty) return [];
  return join(tx, event, inbound, deps) ?? begin(tx, event, inbound, deps);
}

function askOwner(tx: Tx, event: ChannelEvent, key: EventKey, route: Route, deps: IntakeDeps): readonly Effect[] {
  const { sender } = event;
  // One line an hour is all that a stranger costs; only messages are answered.
  if (sender === undefined || event.kind !== "message") return [];
  const text = invite(
    tx,
    { channel: route.channel, account: route.account, sender: sender.id },
    visible(sender.name),
    deps,
  );
  if (text === undefined) return [];
  tx.inbox.insert(key, event.rawHash, null, deps.clock.now());
  return [send(deps.delivery, deps.delivery.notice(tx, route, text))];
}

type Admitted = Extract<Admission, { kind: "in" }>;

function inboundOf(
  event: ChannelEvent,
  key: EventKey,
  { role, actor }: Admitted,
  route: Route,
  { agent }: Taking,
): Inbound {
  const { channel, account } = route;
  return {
    ...{ event: key, rawHash: event.rawHash, route, agent, role, actor, source: "chat", kind: "message" },
    // All ids of the owner count as one sender.
    sender: role === "owner" ? OWNER : actorOf(channel, account, event.sender?.id ?? ""),
    // The native stop button is the chat command.
    text: event.kind === "stop" ? "/stop" : event.text,
    extra: storedExtra(extraOf(event)),
  };
}

function extraOf(event: ChannelEvent): MessageExtra {
  const { ref, quoted, album, full } = event;
  return {
    refs: [ref],
    ...(event.chatKind === "group" && event.sender !== undefined && { author: visible(event.sender.name) }),
    ...(quoted !== undefined && { quoted }),
    attachments: event.attachments.map(({ kind, ref: file, name, mediaType, bytes }) => ({
      ...{ kind, ref: file },
      ...{ name, mediaType, bytes },
    })),
    ...(album !== undefined && { album }),
    full,
  };
}

/** A new command, or a visible refusal when there is no place for it (G15). */
function begin(tx: Tx, event: ChannelEvent, inbound: Inbound, deps: Taking): readonly Effect[] {
  const { clock, queue, delivery } = deps;
  const session = sessionKey(inbound.agent, inbound.route);
  const full = reserve(session, deps);
  if (full !== undefined) {
    tx.inbox.insert(inbound.event, inbound.rawHash, null, clock.now());
    return [
      send(delivery, delivery.notice(tx, inbound.route, `Not taken: ${full.message}. ${full.hint ?? ""}`.trim())),
    ];
  }
  const waits = event.album !== undefined || event.full;
  const inserted = insert(tx, { ...inbound, notBefore: waits ? clock.now() + JOIN_MS : 0 }, session, "message", deps);
  return [() => offer(inserted, queue)];
}

/**
 * Why there is no place. Taken inside the write, though it is memory: only here is it known which events make commands (most
 * of a busy group's do not), and it is given up whether the write is kept or not.
 */
function reserve(session: SessionKey, { queue, places }: Taking): QueueFull | undefined {
  try {
    places.push(queue.reserve(session));
    return undefined;
  } catch (thrown) {
    if (thrown instanceof QueueFull) return thrown;
    throw thrown;
  }
}

/** The event as a further piece of a message that nobody has begun; undefined when there is none. */
function join(tx: Tx, event: ChannelEvent, inbound: Inbound, deps: IntakeDeps): readonly Effect[] | undefined {
  const { clock, queue } = deps;
  const now = clock.now();
  const found = lookBack(tx, inbound.route, (command) => command.sender === inbound.sender);
  if (found === undefined || found.command.state !== "queued") return undefined;
  const { command, extra } = found;
  const isPiece = event.album === undefined ? extra.full && command.notBefore > now : extra.album === event.album;
  if (!isPiece) return undefined;
  const notBefore = event.album !== undefined || event.full ? now + JOIN_MS : command.notBefore;
  const text = [command.text, event.text].filter((piece) => piece !== "").join("\n");
  if (text.length > MAX_JOINED_CHARS) return undefined;
  const more: MessageExtra = {
    ...extra,
    refs: [...extra.refs, event.ref],
    attachments: [...extra.attachments, ...extraOf(event).attachments],
    full: event.full,
  };
  if (!tx.commands.rewrite(command.id, { text, extra: storedExtra(more), notBefore })) return undefined;
  tx.inbox.insert(inbound.event, inbound.rawHash, command.id, now);
  return [() => queue.postponed({ id: command.id, notBefore })];
}

/** What nobody has begun is changed; what was answered already is answered anew; an edit that changes no text is none. */
function takeEdit(tx: Tx, event: ChannelEvent, inbound: Inbound, deps: Taking): readonly Effect[] {
  // A command that is written into an old message is neither run nor shown to the model.
  if (event.text === "" || parseChatCommand(event.text) !== undefined) return [];
  const found = lookBack(
    tx,
    inbound.route,
    (command, extra) => command.sender === inbound.sender && extra.refs.includes(event.ref),
  );
  if (found === undefined) return [];
  const { command, extra } = found;
  const edited = `(Edited) ${event.text}`;
  const isWhole = extra.refs.length === 1 || extra.album !== undefined;
  // Telegram also calls it an edit when it has loaded the preview of a link.
  if (!isWhole || command.text === event.text || command.text === edited) return [];
  const to = { text: event.text, extra: storedExtra(extra), notBefore: command.notBefore };
  if (!tx.commands.rewrite(command.id, to)) return begin(tx, event, { ...inbound, text: edited }, deps);
  tx.inbox.insert(inbound.event, inbound.rawHash, command.id, deps.clock.now());
  return [];
}

function lookBack(
  tx: Tx,
  route: Route,
  fits: (command: Command, extra: MessageExtra) => boolean,
): { command: Command; extra: MessageExtra } | undefined {
  let left = LOOK_BACK;
  for (const id of tx.chats.newestFirst(chatKey(route))) {
    if (left-- === 0) return undefined;
    const command = tx.commands.get(id as Command["id"]);
    const extra = command?.kind === "message" ? messageExtraOf(command) : undefined;
    if (command !== undefined && extra !== undefined && fits(command, extra)) return { command, extra };
  }
  return undefined;
}
