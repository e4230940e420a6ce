// Owns: what a push channel shows of a turn before its answer is sent: that it works, and the text as it grows. Decoration: the
// answer itself comes from the outbox, once. Of a message that shows it the row of the command keeps the platform's id, so that a
// turn that goes on after a crash goes on in it, and the answer takes it over. Should the host die after the platform has
// confirmed it and before that id is written, an unfinished message stays behind that nothing knows of.
import { messageExtraOf } from "../agents/message.ts";
import type { Preview } from "../channels/port.ts";
import type { Stop } from "../kernel/clock.ts";
import type { Events, HostEvent } from "../kernel/events.ts";
import type { CommandId } from "../kernel/ids.ts";
import { type Background, errorFields, type Log } from "../kernel/log.ts";
import { type Command, chatKey } from "../store/commands.ts";
import type { Part } from "../store/outbox.ts";
import type { Store } from "../store/store.ts";
import { type ChannelEntry, type Channels, entryOf } from "./channels.ts";

export interface Showing {
  /** Ends what is shown of the command of this part; resolves when nothing that was shown is in flight to its chat. */
  quiet(part: Pick<Part, "chatKey" | "command">): Promise<void>;
  /** Nothing more is shown; resolves when nothing is in flight. */
  stop(): Promise<void>;
}

interface Shown {
  readonly chat: string;
  readonly stopTyping: Stop;
  readonly preview: Preview | undefined;
  text: string;
}

interface ShowingDeps {
  readonly channels: Channels;
  readonly events: Events;
  readonly store: Store;
  readonly log: Log;
  readonly background: Background;
}

export function showTurns(deps: ShowingDeps): Showing {
  const { channels, events, store } = deps;
  const shown = new Map<CommandId, Shown>();
  const ending = makeEnding(deps);

  const end = (id: CommandId) => {
    const one = shown.get(id);
    if (one === undefined) return;
    shown.delete(id);
    one.stopTyping();
    if (one.preview !== undefined) ending.add(one.chat, endPreview(id, one.preview, store));
  };
  const begin = (id: CommandId) => {
    // Begun again without having ended: what was shown of it then is over.
    end(id);
    const command = store.read.commands.get(id);
    const entry = command === undefined ? undefined : entryOf(channels, command.route);
    if (command === undefined || entry === undefined) return;
    const { chat, thread } = command.route;
    const stopTyping = entry.channel.typing(chat, thread);
    shown.set(id, { chat: chatKey(command.route), stopTyping, preview: openPreview(command, entry, deps), text: "" });
  };
  /** Stopped while it waited to go on: what an earlier life of it has shown is still there. */
  const dropLeft = (id: CommandId) => {
    const command = store.read.commands.get(id);
    const entry = command?.preview === undefined ? undefined : entryOf(channels, command.route);
    if (command === undefined || entry === undefined) return;
    const preview = openPreview(command, entry, deps);
    if (preview !== undefined) ending.add(chatKey(command.route), endPreview(id, preview, store));
  };
  const grow = (one: Shown | undefined, text: string) => {
    if (one === undefined) return;
    one.text = text;
    if (text.trim() !== "") one.preview?.show(text);
  };
  const changed = ({ id, state }: Extract<HostEvent, { type: "command" }>) => {
    if (state === "running") begin(id);
    else if (shown.has(id)) end(id);
    else if (state === "cancelled") dropLeft(id);
  };
  const listen = (event: HostEvent) => {
    if (event.type === "command") changed(event);
    if (event.type === "stream.start") grow(shown.get(event.id), "");
    if (event.type === "stream.text") {
      const one = shown.get(event.id);
      grow(one, (one?.text ?? "") + event.delta);
    }
  };
  const stopListening = channels.size === 0 ? () => {} : events.on(listen);
  return {
    async quiet({ chatKey: chat, command }) {
      if (command !== undefined) end(command);
      await ending.of(chat);
    },
    async stop() {
      stopListening();
      for (const id of [...shown.keys()]) end(id);
      await ending.all();
    },
  };
}

/** In a group, and everywhere under `edit`, as a message. */
function openPreview(command: Command, entry: ChannelEntry, { store, log }: ShowingDeps): Preview | undefined {
  const { chat, thread } = command.route;
  const place = {
    ...{ chat, thread, ref: command.preview, replyTo: messageExtraOf(command)?.refs[0] },
    chatKind: chat.startsWith("-") ? ("group" as const) : ("private" as const),
    asMessage: entry.settings.ambiguous === "edit",
  };
  return entry.channel.preview(place, async (ref) => {
    try {
      // The turn may have ended meanwhile: then its answer, which waits for this, takes the message over.
      return await store.write(
        "preview",
        (tx) => tx.commands.preview(command, ref) || tx.outbox.takeOver(command.id, ref),
      );
    } catch (thrown) {
      log.warn("channel.preview-unkept", { commandId: command.id, ...errorFields(thrown) });
      return false;
    }
  });
}

/** A message that no answer takes over and in which no turn goes on is taken away. */
async function endPreview(id: CommandId, preview: Preview, store: Store): Promise<void> {
  const ref = await preview.end();
  if (ref !== undefined && !isOfUse(id, ref, store)) await preview.discard();
}

function isOfUse(id: CommandId, ref: string, { read }: Store): boolean {
  const command = read.commands.get(id);
  if (command?.state === "running" || command?.state === "queued") return command.preview === ref;
  return read.outbox.ofCommand(id).some((part) => part.editRef === ref);
}

/** What is ending, by chat. It is decoration: that something could not be ended well holds back nothing. */
function makeEnding({ log, background }: Pick<ShowingDeps, "log" | "background">) {
  const chats = new Map<string, Set<Promise<void>>>();
  return {
    add(chat: string, work: Promise<void>): void {
      const broken = (thrown: unknown) => log.warn("channel.preview-broken", { chat, ...errorFields(thrown) });
      const ended = work.catch(broken).finally(() => {
        const left = chats.get(chat);
        left?.delete(ended);
        if (left?.size === 0) chats.delete(chat);
      });
      chats.set(chat, (chats.get(chat) ?? new Set()).add(ended));
      background("channel.preview", ended);
    },
    async of(chat: string): Promise<void> {
      await Promise.all(chats.get(chat) ?? []);
    },
    async all(): Promise<void> {
      await Promise.all([...chats.values()].flatMap((works) => [...works]));
    },
  };
}
