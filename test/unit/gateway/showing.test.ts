import { expect, test } from "vitest";
import type { Channel, Preview } from "../../../src/channels/port.ts";
import type { Channels } from "../../../src/gateway/channels.ts";
import { showTurns } from "../../../src/gateway/showing.ts";
import type { CommandState } from "../../../src/kernel/events.ts";
import type { CommandId } from "../../../src/kernel/ids.ts";
import { makeRig, message, type Rig } from "../queue/rig.ts";

// What people see of a turn before its answer: decoration that never gets in the answer's way (Q7.3).

interface Stage {
  readonly rig: Rig;
  readonly showing: ReturnType<typeof showTurns>;
  readonly seen: string[];
  readonly ending: PromiseWithResolvers<void>[];
  accept(chat: string): Promise<CommandId>;
  emit(id: CommandId, state: CommandState): void;
}

async function stage(preview?: Partial<Preview>): Promise<Stage> {
  const rig = await makeRig();
  const seen: string[] = [];
  const ending: PromiseWithResolvers<void>[] = [];
  const channel: Partial<Channel> = {
    name: "telegram",
    account: "default",
    typing: (chat) => {
      seen.push(`typing in ${chat}`);
      return () => seen.push(`no typing in ${chat}`);
    },
    preview: (chat, kind) => ({
      show: (text) => seen.push(`${kind} ${chat}: ${text}`),
      end: () => {
        const end = Promise.withResolvers<void>();
        ending.push(end);
        return end.promise;
      },
      ...preview,
    }),
  };
  const channels = new Map([
    ["telegram:default", { channel, settings: {}, webhook: undefined }],
  ]) as unknown as Channels;
  const { host, store } = rig;
  const log = { info() {}, warn() {}, error() {}, debug() {} };
  const showing = showTurns({ channels, store, log, events: host.events });
  const chatKeyOf = (id: CommandId) => `telegram:default:${rig.row(id).route.chat}`;
  return {
    ...{ rig, showing, seen, ending },
    async accept(chat) {
      const route = { channel: chat === "page" ? "web" : "telegram", account: "default", chat, thread: undefined };
      const made = await store.write("accept", (tx) =>
        rig.queue.insert(tx, message(rig.clock.now(), { route, sender: chat })),
      );
      return made.id;
    },
    emit: (id, state) =>
      host.events.emit({ type: "command", id, session: rig.row(id).session, chatKey: chatKeyOf(id), state }),
  };
}

const started = ({ rig }: Stage, id: CommandId) =>
  rig.host.events.emit({ type: "stream.start", id, chatKey: "", again: false });
const streamed = ({ rig }: Stage, id: CommandId, delta: string) =>
  rig.host.events.emit({ type: "stream.text", id, chatKey: "", delta });
const isQuiet = async ({ showing, rig }: Stage, chat: string) => {
  let quiet = false;
  void showing.quiet(`telegram:default:${chat}`).then(() => {
    quiet = true;
  });
  await rig.quiet();
  return quiet;
};

test("a turn shows that it works, and its text as it grows; a further model call begins anew", async () => {
  const on = await stage();
  await using _ = on.rig;
  const id = await on.accept("5");
  on.emit(id, "running");
  started(on, id);
  streamed(on, id, "Hel");
  streamed(on, id, "lo");
  started(on, id);
  streamed(on, id, "Bye");
  on.emit(id, "done");
  expect(on.seen).toEqual(["typing in 5", "private 5: Hel", "private 5: Hello", "private 5: Bye", "no typing in 5"]);
});

test("groups are told from private chats", async () => {
  const on = await stage();
  await using _ = on.rig;
  const id = await on.accept("-7");
  on.emit(id, "running");
  streamed(on, id, "x");
  expect(on.seen).toContain("group -7: x");
});

test("the answer waits until nothing of its preview is in flight, and other chats do not", async () => {
  const on = await stage();
  await using _ = on.rig;
  const id = await on.accept("5");
  on.emit(id, "running");
  on.emit(id, "done");
  expect([await isQuiet(on, "5"), await isQuiet(on, "6")]).toEqual([false, true]);
  on.ending[0]?.resolve();
  expect(await isQuiet(on, "5")).toBe(true);
});

test("a preview that ends badly holds nothing back", async () => {
  const on = await stage({ end: () => Promise.reject(new Error("broken")) });
  await using _ = on.rig;
  const id = await on.accept("5");
  on.emit(id, "running");
  on.emit(id, "failed");
  expect(await isQuiet(on, "5")).toBe(true);
});

test("a turn that begins again without having ended leaves no typing behind", async () => {
  const on = await stage();
  await using _ = on.rig;
  const id = await on.accept("5");
  on.emit(id, "running");
  on.emit(id, "running");
  on.emit(id, "cancelled");
  const started = on.seen.filter((line) => line === "typing in 5");
  expect(on.seen.filter((line) => line === "no typing in 5")).toHaveLength(started.length);
});

test("pull doors show nothing here, and a stop ends all typing and all listening", async () => {
  const on = await stage();
  await using _ = on.rig;
  const page = await on.accept("page");
  on.emit(page, "running");
  expect(on.seen).toEqual([]);
  const id = await on.accept("5");
  on.emit(id, "running");
  on.showing.stop();
  expect(on.seen).toEqual(["typing in 5", "no typing in 5"]);
  streamed(on, id, "late");
  expect(on.seen).toHaveLength(2);
});
