// Owns: what a push channel shows of a turn before its answer is sent: that it works, and the text as it grows. Decoration: the
// answer itself comes from the outbox, once.
import type { Preview } from "../channels/port.ts";
import type { Stop } from "../kernel/clock.ts";
import type { Events, HostEvent } from "../kernel/events.ts";
import type { CommandId } from "../kernel/ids.ts";
import { errorFields, type Log } from "../kernel/log.ts";
import { chatKey } from "../store/commands.ts";
import type { Store } from "../store/store.ts";
import { type Channels, entryOf } from "./channels.ts";

export interface Showing {
  /** Resolves when nothing of it is in flight to the chat. */
  quiet(chatKey: string): Promise<void>;
  stop: Stop;
}

interface Shown {
  readonly stopTyping: Stop;
  readonly preview: Preview | undefined;
  text: string;
}

interface ShowingDeps {
  readonly channels: Channels;
  readonly events: Events;
  readonly store: Store;
  readonly log: Log;
}

export function showTurns({ channels, events, store, log }: ShowingDeps): Showing {
  const shown = new Map<CommandId, Shown>();
  const ending = new Map<string, Set<Promise<void>>>();

  const end = (id: CommandId, chat: string) => {
    const one = shown.get(id);
    if (one === undefined) return;
    shown.delete(id);
    one.stopTyping();
    if (one.preview === undefined) return;
    // It is decoration: that it could not be ended well holds back nothing.
    const broken = (thrown: unknown) => log.warn("channel.preview-broken", { chat, ...errorFields(thrown) });
    const ended = one.preview
      .end()
      .catch(broken)
      .finally(() => {
        const left = ending.get(chat);
        left?.delete(ended);
        if (left?.size === 0) ending.delete(chat);
      });
    ending.set(chat, (ending.get(chat) ?? new Set()).add(ended));
  };
  const begin = (id: CommandId) => {
    const command = store.read.commands.get(id);
    const entry = command === undefined ? undefined : entryOf(channels, command.route);
    if (command === undefined || entry === undefined) return;
    const { chat, thread } = command.route;
    const kind = chat.startsWith("-") ? "group" : "private";
    const { channel } = entry;
    // Begun again without having ended: what was shown of it then is over.
    end(id, chatKey(command.route));
    shown.set(id, { stopTyping: channel.typing(chat, thread), preview: channel.preview(chat, kind, thread), text: "" });
  };
  const grow = (one: Shown | undefined, text: string) => {
    if (one === undefined) return;
    one.text = text;
    if (text.trim() !== "") one.preview?.show(text);
  };
  const listen = (event: HostEvent) => {
    if (event.type === "command" && event.state === "running") begin(event.id);
    if (event.type === "command" && event.state !== "running") end(event.id, event.chatKey);
    if (event.type === "stream.start") grow(shown.get(event.id), "");
    if (event.type === "stream.text") {
      const one = shown.get(event.id);
      grow(one, (one?.text ?? "") + event.delta);
    }
  };
  const stopListening = channels.size === 0 ? () => {} : events.on(listen);
  return {
    async quiet(chat) {
      await Promise.all(ending.get(chat) ?? []);
    },
    stop() {
      stopListening();
      for (const one of shown.values()) one.stopTyping();
    },
  };
}
