// Owns: the one table of chat commands, the same on every channel. A command runs in the transaction that accepts it; what
// memory must do follows after the commit.
import type { Clock } from "../kernel/clock.ts";
import type { CommandId, PartId, SessionKey } from "../kernel/ids.ts";
import { OWNER } from "../queue/lane.ts";
import type { LaneStatus, Queue } from "../queue/queue.ts";
import { nearest } from "../settings/known-keys.ts";
import { type Command, chatKey, type Role, type Route } from "../store/commands.ts";
import type { Tx } from "../store/store.ts";

export interface ChatCommandDeps {
  readonly queue: Queue;
  readonly clock: Clock;
  /** Lines about the host for /status. */
  readonly describe: () => { version: string; upMs: number; backends: readonly string[] };
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
  tx.outbox.insert(
    tx.nextSeq() as PartId,
    { chatKey: chatKey(call.route), command: call.command, part: 0, class: "notice", text: effect.reply },
    tx.generation,
    deps.clock.now(),
  );
  return effect.after ?? (() => {});
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

function cancelAll(tx: Tx, which: (command: Command) => boolean, { queue }: ChatCommandDeps): Command[] {
  const live = tx.commands.live(Number.MAX_SAFE_INTEGER).filter(which);
  return live.filter((command) => queue.cancelIn(tx, command, { reason: "stopped" }));
}

function settle(stopped: readonly Command[], { queue }: ChatCommandDeps): void {
  for (const command of stopped) queue.cancelled(command);
}

function stoppedText(stopped: readonly Command[]): string {
  const running = stopped.filter((command) => command.state !== "queued").length;
  const waiting = stopped.length - running;
  const parts = [running > 0 ? `${running} running` : "", waiting > 0 ? `${waiting} waiting` : ""].filter(
    (part) => part !== "",
  );
  return `Stopped: ${parts.join(", ")}.`;
}
