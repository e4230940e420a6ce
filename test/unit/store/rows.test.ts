import { expect, test } from "vitest";
import type { CommandId, PartId, RowSeq, SessionKey } from "../../../src/kernel/ids.ts";
import type { NewCommand, Route } from "../../../src/store/commands.ts";
import type { PartState } from "../../../src/store/outbox.ts";
import type { Tx } from "../../../src/store/store.ts";
import { openTestStore } from "../../support/store.ts";

// The tables other than commands: what each verb promises.

const SESSION = "agent:main:web:1:a" as SessionKey;
const ROUTE: Route = { channel: "web", account: "1", chat: "a", thread: undefined };
const CHAT = "web:1:a";

function insertCommand(tx: Tx): CommandId {
  const command: NewCommand = {
    lane: "main",
    priority: 1,
    orderKey: 1,
    session: SESSION,
    route: ROUTE,
    sender: "s",
    actor: "owner",
    role: "owner",
    source: "chat",
    kind: "message",
    text: "hello",
    extra: undefined,
    acceptedAt: 1,
  };
  const id = tx.nextSeq() as CommandId;
  tx.commands.insert(id, command, "queued");
  return id;
}

function insertPart(tx: Tx, command: CommandId | undefined, part: number, chatKey = CHAT): PartId {
  const id = tx.nextSeq() as PartId;
  tx.outbox.insert(id, { chatKey, command, part, class: "answer", text: `part ${part}` }, tx.generation, 1);
  return id;
}

const PART_STATES: readonly PartState[] = ["ready", "sending", "sent", "unknown", "failed", "held"];

test.each([
  {
    verb: "acknowledge",
    from: ["ready"],
    to: "sent",
    run: (tx: Tx, id: PartId) => tx.outbox.acknowledge(`chat ${id}`, id, 9) === 1,
  },
  {
    verb: "drop",
    from: ["ready", "unknown", "failed", "held"],
    to: "failed",
    run: (tx: Tx, id: PartId) => tx.outbox.drop(id),
  },
  {
    verb: "resend",
    from: ["unknown", "failed", "held"],
    to: "ready",
    run: (tx: Tx, id: PartId) => tx.outbox.resend(id, 9),
  },
] as const)(
  "outbox: $verb moves what it may and is a normal false for every other state",
  async ({ from, to, run }) => {
    await using host = await openTestStore();
    const ids = await host.store.write("parts", (tx) =>
      PART_STATES.map((_, n) => {
        const id = tx.nextSeq() as PartId;
        const part = { chatKey: `chat ${id}`, command: undefined, part: n, class: "notice", text: "" } as const;
        tx.outbox.insert(id, part, tx.generation, 1);
        return id;
      }),
    );
    const force = host.opened.db.prepare("update outbox set state = ? where id = ?");
    ids.forEach((id, n) => {
      force.run(PART_STATES[n], id);
    });
    const moved = await host.store.write("verb", (tx) => ids.map((id) => run(tx, id)));
    const allowed: readonly PartState[] = from;
    expect(PART_STATES.filter((_, n) => moved[n])).toEqual(PART_STATES.filter((state) => allowed.includes(state)));
    const expected = PART_STATES.map((state) => (allowed.includes(state) ? to : state));
    expect(ids.map((id) => host.store.read.outbox.get(id)?.state)).toEqual(expected);
  },
);

test("outbox: an acknowledgement covers the parts of its chat up to a number, and no other", async () => {
  await using host = await openTestStore();
  const { first, second, third, other } = await host.store.write("parts", (tx) => {
    const command = insertCommand(tx);
    return {
      first: insertPart(tx, command, 0),
      other: insertPart(tx, undefined, 0, "web:1:b"),
      second: insertPart(tx, command, 1),
      third: insertPart(tx, command, 2),
    };
  });
  expect(await host.store.write("ack", (tx) => tx.outbox.acknowledge(CHAT, second, 9))).toBe(2);
  const states = [first, second, third, other].map((id) => host.store.read.outbox.get(id)?.state);
  expect(states).toEqual(["sent", "sent", "ready", "ready"]);
  expect(host.store.read.outbox.counts()).toEqual({ ready: 2 });
  expect(host.store.read.outbox.live(9).map((part) => part.id)).toEqual([other, third].sort((a, b) => a - b));
});

test("outbox: the same part of the same command exists once, whoever writes it again", async () => {
  await using host = await openTestStore();
  const command = await host.store.write("first", (tx) => {
    const id = insertCommand(tx);
    insertPart(tx, id, 0);
    return id;
  });
  const again = host.store.write("again", (tx) => insertPart(tx, command, 0));
  await expect(again).rejects.toMatchObject({ code: "SQLITE_CONSTRAINT_UNIQUE" });
  expect(host.store.read.outbox.ofCommand(command)).toHaveLength(1);
});

test("inbox: one event of one account is accepted once, whatever comes between; another account's is another event (G2, G3)", async () => {
  await using host = await openTestStore();
  const event = { channel: "telegram", account: "42", key: "100" };
  await host.store.write("first", (tx) => tx.inbox.insert(event, "hash", 1 as CommandId, 1_000));
  const again = host.store.write("again", (tx) => tx.inbox.insert(event, "hash", 2 as CommandId, 2_000));
  await expect(again).rejects.toMatchObject({ code: "SQLITE_CONSTRAINT_PRIMARYKEY" });
  await host.store.write("other", (tx) => tx.inbox.insert({ ...event, account: "43" }, "hash", 3 as CommandId, 3_000));
  const { inbox } = host.store.read;
  expect([inbox.find(event), inbox.find({ ...event, account: "43" }), inbox.find({ ...event, key: "99" })]).toEqual([
    1,
    3,
    undefined,
  ]);
  expect(inbox.findByHash("hash", 0)).toBeUndefined();
  const request = { channel: "api", account: "main", key: "once:1" };
  await host.store.write("api", (tx) => tx.inbox.insert(request, "hash", 4 as CommandId, 3_000));
  expect([inbox.findByHash("hash", 0), inbox.findByHash("hash", 3_001)]).toEqual([4, undefined]);
  expect(await host.store.write("old", (tx) => tx.inbox.forgetBefore(3_000))).toBe(1);
  expect([inbox.find(event), inbox.find({ ...event, account: "43" })]).toEqual([undefined, 3]);
});

test("messages: the same place of the same command is written once; the newest rows that fit are read, oldest first", async () => {
  await using host = await openTestStore();
  await host.store.write("rows", (tx) => {
    tx.sessions.ensure(SESSION, "main", ROUTE, 1);
    const command = insertCommand(tx);
    for (const n of [0, 1, 2, 3]) {
      const row = { n, role: n === 0 ? "user" : "assistant", body: `row ${n}` } as const;
      expect(tx.messages.append(tx.nextSeq(), SESSION, command, row, 1)).toBe(true);
    }
    const double = { n: 3, role: "assistant", body: "another" } as const;
    expect(tx.messages.append(tx.nextSeq(), SESSION, command, double, 1)).toBe(false);
  });
  const { messages } = host.store.read;
  const bodies = (startsAfter: number, maxChars: number) =>
    messages.newest(SESSION, startsAfter, maxChars).map((row) => row.body);
  expect(bodies(0, 1_000)).toEqual(["row 0", "row 1", "row 2", "row 3"]);
  expect(bodies(0, 10)).toEqual(["row 2", "row 3"]);
  expect(bodies(0, 1)).toEqual(["row 3"]);
  const [first] = messages.newest(SESSION, 0, 1_000);
  expect(bodies(first!.id, 1_000)).toEqual(["row 1", "row 2", "row 3"]);
});

test("sessions: a restart hides the transcript from the model and deletes nothing; the list names count and last time", async () => {
  await using host = await openTestStore();
  await host.store.write("rows", (tx) => {
    tx.sessions.ensure(SESSION, "main", ROUTE, 5);
    tx.sessions.ensure(SESSION, "another", ROUTE, 6);
    const command = insertCommand(tx);
    tx.messages.append(7 as RowSeq, SESSION, command, { n: 0, role: "user", body: "one" }, 10);
    tx.messages.append(8 as RowSeq, SESSION, command, { n: 1, role: "assistant", body: "two" }, 20);
    tx.sessions.ensure("agent:main:web:1:b" as SessionKey, "main", { ...ROUTE, chat: "b" }, 15);
  });
  expect(await host.store.write("new", (tx) => tx.sessions.startAfter(SESSION, 8))).toBe(true);
  expect(host.store.read.sessions.get(SESSION)).toMatchObject({ agent: "main", startsAfter: 8, createdAt: 5 });
  expect(host.store.read.sessions.list(9)).toMatchObject([
    { key: SESSION, messages: 2, lastAt: 20 },
    { key: "agent:main:web:1:b", messages: 0, lastAt: undefined },
  ]);
  expect(host.store.read.messages.newest(SESSION, 8, 1_000)).toEqual([]);
});

test("steps: an intent ends once, as done or as unknown, and never turns back (G10)", async () => {
  await using host = await openTestStore();
  const command = await host.store.write("steps", (tx) => {
    const id = insertCommand(tx);
    tx.steps.intend(id, { n: 1, kind: "model", name: "first" }, 1);
    tx.steps.intend(id, { n: 2, kind: "tool", name: "exec", callId: "c", inputHash: "h" }, 2);
    expect(tx.steps.done(id, 1, "{}", 3, "second")).toBe(true);
    expect(tx.steps.done(id, 1, "{}", 4)).toBe(false);
    tx.steps.inFlightUnknown(id, 5);
    expect(tx.steps.done(id, 2, "{}", 6)).toBe(false);
    return id;
  });
  expect(host.store.read.steps.ofCommand(command)).toMatchObject([
    { n: 1, state: "done", name: "second", endedAt: 3 },
    { n: 2, state: "unknown", name: "exec", callId: "c", endedAt: 5 },
  ]);
  const twice = host.store.write("twice", (tx) => tx.steps.intend(command, { n: 2, kind: "tool", name: "exec" }, 7));
  await expect(twice).rejects.toMatchObject({ code: "SQLITE_CONSTRAINT_PRIMARYKEY" });
});

test("chats: commands and parts of a chat are one chain, newest first, and another chat's rows are not in it", async () => {
  await using host = await openTestStore();
  const { command, part, other, last } = await host.store.write("rows", (tx) => {
    const command = insertCommand(tx);
    const part = insertPart(tx, command, 0);
    const other = insertPart(tx, undefined, 0, "web:1:b");
    return { command, part, other, last: insertPart(tx, command, 1) };
  });
  const { chats } = host.store.read;
  expect([...chats.newestFirst(CHAT)]).toEqual([last, part, command]);
  expect([...chats.before(last)]).toEqual([part, command]);
  expect([...chats.newestFirst("web:1:b")]).toEqual([other]);
  expect([...chats.newestFirst("web:1:none")]).toEqual([]);
});

test("chats: what a rolled-back write added is not in the chain", async () => {
  await using host = await openTestStore();
  const command = await host.store.write("first", insertCommand);
  const broken = host.store.write("broken", (tx) => {
    insertPart(tx, command, 0);
    throw new Error("broken on purpose");
  });
  await expect(broken).rejects.toThrow("on purpose");
  expect([...host.store.read.chats.newestFirst(CHAT)]).toEqual([command]);
});
