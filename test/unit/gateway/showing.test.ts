import { expect, test } from "vitest";
import type { Channel, Preview, PreviewPlace } from "../../../src/channels/port.ts";
import type { Channels } from "../../../src/gateway/channels.ts";
import { showTurns } from "../../../src/gateway/showing.ts";
import type { CommandState } from "../../../src/kernel/events.ts";
import type { CommandId, PartId } from "../../../src/kernel/ids.ts";
import { makeBackground } from "../../../src/kernel/log.ts";
import { type Command, chatKey } from "../../../src/store/commands.ts";
import { makeRig, message, type Rig } from "../queue/rig.ts";

// What people see of a turn before its answer: decoration that never gets in the answer's way (Q7.3).

interface Stage {
  readonly rig: Rig;
  readonly showing: ReturnType<typeof showTurns>;
  readonly seen: string[];
  /** The ends that were asked for, to be resolved with the message that shows it. */
  readonly ending: PromiseWithResolvers<string | undefined>[];
  readonly opened: { place: PreviewPlace; keep: (ref: string) => Promise<boolean> }[];
  accept(chat: string): Promise<CommandId>;
  emit(id: CommandId, state: CommandState): void;
}

async function stage(preview?: Partial<Preview>, ambiguous = "resend"): Promise<Stage> {
  const rig = await makeRig();
  const seen: string[] = [];
  const ending: Stage["ending"] = [];
  const opened: Stage["opened"] = [];
  const channel: Partial<Channel> = {
    name: "telegram",
    account: "default",
    typing: (chat) => {
      seen.push(`typing in ${chat}`);
      return () => seen.push(`no typing in ${chat}`);
    },
    preview: (place, keep) => {
      opened.push({ place, keep });
      return {
        show: (text) => seen.push(`${place.chatKind} ${place.chat}: ${text}`),
        end: () => {
          const end = Promise.withResolvers<string | undefined>();
          ending.push(end);
          return end.promise;
        },
        discard: async () => void seen.push(`discarded in ${place.chat}`),
        ...preview,
      };
    },
  };
  const channels = new Map([
    ["telegram:default", { channel, settings: { ambiguous }, webhook: undefined }],
  ]) as unknown as Channels;
  const { host, store } = rig;
  const log = { info() {}, warn() {}, error() {}, debug() {} };
  const showing = showTurns({ channels, store, log, background: makeBackground(log), events: host.events });
  const chatKeyOf = (id: CommandId) => `telegram:default:${rig.row(id).route.chat}`;
  return {
    ...{ rig, showing, seen, ending, opened },
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
  void showing.quiet({ chatKey: `telegram:default:${chat}`, command: undefined }).then(() => {
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
  on.ending[0]?.resolve(undefined);
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
  void on.showing.stop();
  expect(on.seen).toEqual(["typing in 5", "no typing in 5"]);
  streamed(on, id, "late");
  expect(on.seen).toHaveLength(2);
});

/** A turn that runs, whose preview has been kept as the message 77 unless told otherwise. */
async function running(on: Stage, ref: string | undefined = "77"): Promise<Command> {
  const id = await on.accept("-7");
  const command = await on.rig.store.write("claim", (tx) => tx.commands.claim(id, tx.generation, 1));
  on.emit(id, "running");
  if (ref !== undefined) expect(await on.opened.at(-1)?.keep(ref)).toBe(true);
  return command!;
}

const answerOf = (on: Stage, command: Command, editRef: string | undefined) =>
  on.rig.store.write("finish", (tx) => {
    tx.commands.finish(command, "done", 1, "{}");
    const part = { chatKey: chatKey(command.route), command: command.id, part: 0, class: "answer" as const, text: "x" };
    tx.outbox.insert(tx.nextSeq() as PartId, { ...part, editRef }, tx.generation, 1);
  });

/** What the preview that ends now shows is taken away. */
async function isDiscarded(on: Stage, id: CommandId, state: CommandState, ref = "77"): Promise<boolean> {
  on.emit(id, state);
  on.ending.at(-1)?.resolve(ref);
  await on.rig.quiet();
  return on.seen.includes("discarded in -7");
}

test("a message that the answer takes over stays, one that it does not is taken away", async () => {
  for (const editRef of ["77", undefined]) {
    const on = await stage();
    await using _ = on.rig;
    const command = await running(on);
    await answerOf(on, command, editRef);
    expect(await isDiscarded(on, command.id, "done")).toBe(editRef === undefined);
  }
});

test("a message whose id comes after the end of its turn goes to the answer that waits for it", async () => {
  const on = await stage();
  await using _ = on.rig;
  const command = await running(on, undefined);
  await answerOf(on, command, undefined);
  on.emit(command.id, "done");
  expect(await on.opened[0]?.keep("77")).toBe(true);
  on.ending[0]?.resolve("77");
  await on.rig.quiet();
  expect(on.seen).not.toContain("discarded in -7");
  expect(on.rig.store.read.outbox.ofCommand(command.id)[0]?.editRef).toBe("77");
});

test("a stopped turn's message is taken away, also when its id comes after the stop", async () => {
  for (const ref of ["77", undefined]) {
    const on = await stage();
    await using _ = on.rig;
    const { id } = await running(on, ref);
    await on.rig.store.write("cancel", (tx) => tx.commands.cancel(id, 1, "{}"));
    expect(await on.opened[0]?.keep("78")).toBe(false);
    expect(await isDiscarded(on, id, "cancelled")).toBe(true);
  }
});

test("a turn that is handed back keeps its message, and goes on in it; stopped before that, it is taken away", async () => {
  const on = await stage();
  await using _ = on.rig;
  const command = await running(on);
  await on.rig.store.write("hand-back", (tx) => tx.commands.handBack(command));
  expect(await isDiscarded(on, command.id, "queued")).toBe(false);
  await on.rig.store.write("claim", (tx) => tx.commands.claim(command.id, tx.generation, 1));
  on.emit(command.id, "running");
  expect(on.opened.map(({ place }) => place.ref)).toEqual([undefined, "77"]);
  await on.rig.store.write("hand-back", (tx) => tx.commands.handBack(on.rig.row(command.id)));
  expect(await isDiscarded(on, command.id, "queued")).toBe(false);
  await on.rig.store.write("cancel", (tx) => tx.commands.cancel(command.id, 1, "{}"));
  expect(await isDiscarded(on, command.id, "cancelled")).toBe(true);
});

test("the preview of an answer has ended before the answer goes, whatever was told of its end first", async () => {
  const on = await stage();
  await using _ = on.rig;
  const command = await running(on);
  void on.showing.quiet({ chatKey: chatKey(command.route), command: command.id });
  await on.rig.quiet();
  expect(on.ending).toHaveLength(1);
});

test("under edit, and only then, it is a message everywhere", async () => {
  for (const ambiguous of ["resend", "hold", "edit"]) {
    const on = await stage(undefined, ambiguous);
    await using _ = on.rig;
    on.emit(await on.accept("5"), "running");
    expect(on.opened[0]?.place).toMatchObject({ chatKind: "private", asMessage: ambiguous === "edit" });
  }
});
