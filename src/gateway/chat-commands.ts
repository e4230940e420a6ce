// Owns: the one table of chat commands, the same on every channel. A command runs in the transaction that accepts it; what
// memory must do follows after the commit.

import type { Delivery } from "../agents/delivery.ts";
import { messageExtraOf } from "../agents/message.ts";
import type { Clock } from "../kernel/clock.ts";
import type { CommandId, PartId, SessionKey } from "../kernel/ids.ts";
import type { Cancelled } from "../queue/cancel.ts";
import { OWNER } from "../queue/lane.ts";
import type { LaneStatus, Queue } from "../queue/queue.ts";
import { nearest } from "../settings/known-keys.ts";
import { type BusyMode, type Command, chatKey, type Role, type Route } from "../store/commands.ts";
import type { Tx } from "../store/store.ts";

export interface ChatCommandDeps {
  readonly queue: Queue;
  readonly clock: Clock;
  /** Lines about the host for /status. */
  readonly describe: () => { version: string; upMs: number; backends: readonly string[] };
  readonly delivery: Delivery;
  /** The backends that /model may choose, by name. */
  readonly backends: readonly { readonly name: string; readonly model: string }[];
}

export interface ChatCommand {
  readonly name: string;
  readonly argument: string;
}

interface Call {
  readonly command: CommandId;
  readonly session: SessionKey;
  readonly route: Route;
  readonly role: Role;
  readonly actor: string;
  readonly sender: string;
}

interface Effect {
  readonly reply: string;
  /** What memory does after the commit. */
  readonly after?: () => void;
}

interface Entry {
  readonly usage: string;
  readonly about: string;
  readonly ownerOnly: boolean;
  readonly run: (tx: Tx, argument: string, call: Call, deps: ChatCommandDeps) => Effect;
}

const TABLE: Readonly<Record<string, Entry>> = {
  help: { usage: "/help", about: "show the commands", ownerOnly: false, run: () => ({ reply: helpText() }) },
  status: { usage: "/status", about: "what runs, what waits, who answers", ownerOnly: false, run: status },
  new: { usage: "/new", about: "begin a new conversation; the old one is kept", ownerOnly: false, run: startAnew },
  queue: {
    usage: "/queue [mode]",
    about:
      "what waits here; with steer, followup, collect, interrupt or default: what messages to a busy conversation do",
    ownerOnly: false,
    run: (tx, argument, call, deps) => (argument === "" ? queueHere(tx, call, deps) : chooseMode(tx, argument, call)),
  },
  steer: {
    usage: "/steer TEXT",
    about: "a message that joins the running turn, whatever the mode",
    ownerOnly: false,
    // With a text it is taken as a message before it comes here.
    run: () => ({ reply: "Use `/steer TEXT`: the text joins the running turn at its next step." }),
  },
  model: {
    usage: "/model [name]",
    about: "see or choose who answers in this conversation",
    ownerOnly: false,
    run: model,
  },
  whoami: { usage: "/whoami", about: "who you are to this host", ownerOnly: false, run: whoAmI },
  resend: {
    usage: "/resend N",
    about: "send a message again that may not have arrived",
    ownerOnly: false,
    run: resend,
  },
  stop: { usage: "/stop [all]", about: "stop what runs and waits here, or everywhere", ownerOnly: false, run: stop },
};

export function chatCommandList(): { name: string; usage: string; about: string }[] {
  return Object.entries(TABLE).map(([name, { usage, about }]) => ({ name, usage, about }));
}

/** `/word` alone or followed by text; a path such as /etc/hosts is an ordinary message. */
export function parseChatCommand(text: string): ChatCommand | undefined {
  const match = /^\/([a-z][a-z_]*)(?:\s+([\s\S]*))?$/i.exec(text.trim());
  const name = match?.[1]?.toLowerCase();
  return name === undefined ? undefined : { name, argument: match?.[2]?.trim() ?? "" };
}

/** Runs it and writes its reply; answers what memory must do after the commit. */
export function runChatCommand(tx: Tx, { name, argument }: ChatCommand, call: Call, deps: ChatCommandDeps): () => void {
  const effect = effectOf(tx, name, argument, call, deps);
  const command = tx.commands.get(call.command);
  const replyTo = command === undefined ? undefined : messageExtraOf(command)?.refs[0];
  const about = { id: call.command, route: call.route };
  const placed = deps.delivery.answer(tx, about, { class: "notice", text: effect.reply, replyTo });
  return () => {
    effect.after?.();
    deps.delivery.send(placed);
  };
}

function effectOf(tx: Tx, name: string, argument: string, call: Call, deps: ChatCommandDeps): Effect {
  const entry = Object.hasOwn(TABLE, name) ? TABLE[name] : undefined;
  if (entry === undefined) return { reply: unknown(name) };
  if (entry.ownerOnly && call.role !== "owner") return refuse(tx, name, call, deps);
  return entry.run(tx, argument, call, deps);
}

function refuse(tx: Tx, name: string, call: Call, deps: ChatCommandDeps): Effect {
  const entry = { actor: call.actor, action: "chat-command.refused", target: name, detail: { role: call.role } };
  tx.audit.add(entry, deps.clock.now());
  return { reply: `/${name} is for the owner of this host.` };
}

function unknown(name: string): string {
  const near = nearest(name, Object.keys(TABLE));
  const guess = near === undefined ? "" : ` Did you mean /${near}?`;
  return `There is no command /${name}.${guess} /help lists them all.`;
}

function helpText(): string {
  const lines = chatCommandList().map(({ usage, about }) => `- \`${usage}\`: ${about}`);
  return ["Write as you would to a person. Commands:", "", ...lines].join("\n");
}

function status(_tx: Tx, _argument: string, call: Call, { queue, describe }: ChatCommandDeps): Effect {
  const { version, upMs, backends } = describe();
  const here = [...queue.running()].filter((one) => chatKey(one.command.route) === chatKey(call.route));
  const busy = queue.lanes().filter((lane) => lane.running + lane.queued > 0);
  const lines = [
    `Laneway ${version}, up ${spanText(upMs)}.`,
    `Answers come from ${backends.join(", then ")}.`,
    here.length === 0 ? "Nothing runs in this chat." : `${here.length} running in this chat.`,
    ...busy.map(laneLine),
  ];
  return { reply: lines.join("\n") };
}

function laneLine({ lane, running, size, queued, oldestWaitMs }: LaneStatus): string {
  const waiting = queued === 0 ? "none waiting" : `${queued} waiting, the oldest for ${spanText(oldestWaitMs ?? 0)}`;
  return `Lane ${lane}: ${running} of ${size} running, ${waiting}.`;
}

/** A length of time for people, as in `3 min`. */
function spanText(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`;
}

const MODES: readonly BusyMode[] = ["steer", "followup", "collect", "interrupt"];

function chooseMode(tx: Tx, argument: string, { session, role }: Call): Effect {
  if (role === "guest") return { reply: "Guests cannot choose the mode." };
  const mode = MODES.find((one) => one === argument);
  if (mode === undefined && argument !== "default") {
    return { reply: `Use \`/queue\` with ${MODES.join(", ")} or default.` };
  }
  tx.sessions.setMode(session, mode);
  return { reply: mode === undefined ? "This conversation uses the usual mode again." : `Messages here: ${mode}.` };
}

function queueHere(tx: Tx, call: Call, { queue, clock }: ChatCommandDeps): Effect {
  const here = tx.commands
    .live(Number.MAX_SAFE_INTEGER)
    .filter((command) => chatKey(command.route) === chatKey(call.route) && command.id !== call.command);
  if (here.length === 0) return { reply: "Nothing runs or waits in this chat." };
  const lines = here.map((command) => {
    const waited = spanText(Math.max(0, clock.now() - command.acceptedAt));
    if (command.state !== "queued") return `- ${command.id}: ${command.state}, since ${waited}`;
    const ahead = queue.position(command.id) ?? 0;
    return `- ${command.id}: waits for ${waited}, ${ahead === 0 ? "next in" : `${ahead} before it in`} lane ${command.lane}`;
  });
  return { reply: lines.join("\n") };
}

function model(tx: Tx, argument: string, call: Call, { backends }: ChatCommandDeps): Effect {
  const chosen = tx.sessions.get(call.session)?.backend;
  const list = backends
    .map(({ name, model: of }) => `- \`${name}\` (${of})${name === chosen ? ", chosen here" : ""}`)
    .join("\n");
  if (argument === "")
    return {
      reply: `Backends:\n${list}\n\n\`/model NAME\` chooses one for this conversation, \`/model default\` the usual order.`,
    };
  if (call.role === "guest") return { reply: "Guests cannot choose the model." };
  if (argument === "default") {
    tx.sessions.choose(call.session, undefined);
    return { reply: "This conversation uses the usual order of backends again." };
  }
  if (!backends.some(({ name }) => name === argument)) {
    const guess = nearest(
      argument,
      backends.map(({ name }) => name),
    );
    return {
      reply: `There is no backend ${argument}.${guess === undefined ? "" : ` Did you mean ${guess}?`}\n${list}`,
    };
  }
  tx.sessions.choose(call.session, argument);
  return {
    reply: `${argument} answers in this conversation from the next message on; when it fails, the others follow.`,
  };
}

function whoAmI(_tx: Tx, _argument: string, { role, sender, route, session }: Call): Effect {
  return {
    reply: [`You are ${sender}, as ${role}.`, `This chat is ${chatKey(route)}, session ${session}.`].join("\n"),
  };
}

/** The owner sends any part again, others what was meant for their own chat. */
function resend(tx: Tx, argument: string, call: Call, { delivery, clock }: ChatCommandDeps): Effect {
  const id = Number(argument);
  const part = Number.isSafeInteger(id) ? tx.outbox.get(id as PartId) : undefined;
  const isTheirs = part !== undefined && (call.role === "owner" || part.chatKey === chatKey(call.route));
  if (part === undefined || !isTheirs) return { reply: "Use `/resend N` with the number from the notice about it." };
  tx.audit.add(
    { actor: call.actor, action: "outbox.resend", target: argument, detail: { from: part.state } },
    clock.now(),
  );
  if (!tx.outbox.resend(part.id, clock.now()))
    return { reply: `Message ${part.id} is ${part.state}; there is nothing to send again.` };
  return {
    reply: `Message ${part.id} goes out again.`,
    after: () => delivery.send({ chatKey: part.chatKey, parts: [part.id] }),
  };
}

/** Stops this session's work first: its answer would belong to the conversation that was left. */
function startAnew(tx: Tx, _argument: string, call: Call, deps: ChatCommandDeps): Effect {
  const stopped = cancelAll(tx, (command) => command.session === call.session, deps);
  tx.sessions.startAfter(call.session, tx.nextSeq());
  const also = stopped.length === 0 ? "" : ` ${stoppedText(stopped)}`;
  return { reply: `A new conversation begins here.${also}`, after: () => settle(stopped, deps) };
}

function stop(tx: Tx, argument: string, call: Call, deps: ChatCommandDeps): Effect {
  const everywhere = argument === "all" && call.role === "owner";
  if (argument !== "" && !everywhere) return { reply: "Use `/stop` for this chat, or `/stop all` as the owner." };
  const mine = (command: Command) => chatKey(command.route) === chatKey(call.route) && mayStop(command, call);
  const stopped = cancelAll(tx, everywhere ? () => true : mine, deps);
  const reply = stopped.length === 0 ? `Nothing ${everywhere ? "runs" : "runs here"}.` : stoppedText(stopped);
  return { reply, after: () => settle(stopped, deps) };
}

/** In a shared chat people stop their own work; the owner stops everybody's. */
function mayStop(command: Command, call: Call): boolean {
  return call.actor === OWNER || command.actor === call.actor;
}

function cancelAll(tx: Tx, which: (command: Command) => boolean, { queue }: ChatCommandDeps): Cancelled[] {
  const live = tx.commands.live(Number.MAX_SAFE_INTEGER).filter(which);
  return live.flatMap(({ id }) => queue.cancelIn(tx, id, { reason: "stopped" }) ?? []);
}

function settle(stopped: readonly Cancelled[], { queue }: ChatCommandDeps): void {
  for (const one of stopped) queue.cancelled(one);
}

function stoppedText(stopped: readonly Cancelled[]): string {
  const running = stopped.filter(({ command }) => command.state === "running" || command.state === "waiting").length;
  const waiting = stopped.length - running;
  const parts = [running > 0 ? `${running} running` : "", waiting > 0 ? `${waiting} waiting` : ""].filter(
    (part) => part !== "",
  );
  return `Stopped: ${parts.join(", ")}.`;
}
