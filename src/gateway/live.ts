// Owns: what a watcher of a chat is sent: rows by their sequence, resumable, and the passing stream of a running answer.
// Losing a watcher loses nothing: rows are read again from the last sequence that it had.
import type { Stop } from "../kernel/clock.ts";
import type { Events, HostEvent } from "../kernel/events.ts";
import type { CommandId, RowSeq } from "../kernel/ids.ts";
import { isFinal } from "../queue/command.ts";
import type { Queue } from "../queue/queue.ts";
import { chatKey, type Route } from "../store/commands.ts";
import type { Store } from "../store/store.ts";
import { history, itemOf, seqsAfter } from "./timeline.ts";

export interface LiveMessage {
  readonly event: "item" | "state" | "stream" | "delta" | "note" | "host";
  readonly data: unknown;
  /** The row sequence, for messages that a client may resume after. */
  readonly id?: number;
}

/** Where a watcher's messages go. Nothing here throws. */
export interface Reader {
  send(message: LiveMessage): void;
  /** False while there is much unread: rows then wait, since they can be read again. */
  hasRoom(): boolean;
  onRoom(fill: () => void): void;
}

export interface Live {
  /** Sends everything after `after`, as fast as it is read, then what comes. */
  watch(route: Route, after: number, reader: Reader): Stop;
  stop: Stop;
}

interface LiveDeps {
  readonly store: Store;
  readonly events: Events;
  readonly queue: Queue;
  readonly hello: () => Record<string, unknown>;
}

/** Newest rows among which a new watcher is told the commands' states. */
const STATES = 100;

export function makeLive({ store, events, queue, hello }: LiveDeps): Live {
  const watchers = new Map<string, Set<(event: HostEvent) => void>>();
  /** The text so far of each running answer: for those who join while it runs. */
  const texts = new Map<CommandId, { chat: string; text: string }>();

  const keepText = (event: HostEvent) => {
    if (event.type === "stream.start") texts.set(event.id, { chat: event.chatKey, text: "" });
    if (event.type === "command" && event.state !== "running") texts.delete(event.id);
    const soFar = event.type === "stream.text" ? texts.get(event.id) : undefined;
    if (event.type === "stream.text" && soFar !== undefined) soFar.text += event.delta;
  };
  const listen = (event: HostEvent) => {
    if (!("chatKey" in event)) return;
    keepText(event);
    for (const tell of watchers.get(event.chatKey) ?? []) tell(event);
  };
  const stop = events.on(listen);

  return {
    watch(route, after, reader) {
      const { send } = reader;
      const chat = chatKey(route);
      const catchUp = followRows(store, route, after, reader);
      const tell = (event: HostEvent) => {
        if (event.type === "command" && (event.state === "queued" || isFinal(event.state))) catchUp();
        const message = passing(event, queue);
        if (message !== undefined) send(message);
      };
      send({ event: "host", data: hello() });
      catchUp();
      // States change without a new row: whoever was away hears them anew.
      for (const item of history(store.read, route, Number.MAX_SAFE_INTEGER, STATES).items.reverse()) {
        if (item.kind === "person") send({ event: "state", data: { command: item.command, state: item.state } });
      }
      for (const [id, { chat: of, text }] of texts) {
        if (of === chat) send({ event: "stream", data: { command: id, text } });
      }
      const set = watchers.get(chat) ?? new Set();
      watchers.set(chat, set.add(tell));
      return () => {
        set.delete(tell);
        if (set.size === 0 && watchers.get(chat) === set) watchers.delete(chat);
      };
    },
    stop,
  };
}

/**
 * Sends the rows after `after`, now and at each later call, and goes on by itself when the reader has room again. Who was away
 * for long has many to come: their numbers are read once, each row when there is room for it.
 */
function followRows({ read }: Store, route: Route, after: number, reader: Reader): () => void {
  let cursor = after;
  let unread: RowSeq[] = [];
  const catchUp = () => {
    while (reader.hasRoom()) {
      const seq = unread.pop();
      if (seq === undefined) {
        unread = seqsAfter(read, route, cursor);
        if (unread.length === 0) return;
        continue;
      }
      const item = itemOf(read, seq);
      if (item !== undefined) reader.send({ event: "item", id: seq, data: item });
      cursor = seq;
    }
  };
  reader.onRoom(catchUp);
  return catchUp;
}

/** What has no row: a state, a piece of text, a note. */
function passing(event: HostEvent, queue: Queue): LiveMessage | undefined {
  switch (event.type) {
    case "command": {
      const position = event.state === "queued" ? queue.position(event.id) : undefined;
      const place = position === undefined ? {} : { position };
      return { event: "state", data: { command: event.id, state: event.state, ...place } };
    }
    case "stream.start":
      return { event: "stream", data: { command: event.id, text: "" } };
    case "stream.text":
      return { event: "delta", data: { command: event.id, text: event.delta } };
    case "stream.note":
      return { event: "note", data: { command: event.id, note: event.note } };
    case "attempt":
    case "store.paused":
    case "store.resumed":
      return undefined;
  }
}
