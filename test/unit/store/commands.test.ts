import type { Database } from "better-sqlite3";
import { describe, expect, test } from "vitest";
import type { CommandState } from "../../../src/kernel/events.ts";
import type { ClaimNumber, CommandId, Generation, SessionKey } from "../../../src/kernel/ids.ts";
import { chatKey, type NewCommand } from "../../../src/store/commands.ts";
import type { Tx } from "../../../src/store/store.ts";
import { openTestStore } from "../../support/store.ts";

const STATES: readonly CommandState[] = [
  "queued",
  "running",
  "waiting",
  "absorbed",
  "done",
  "failed",
  "dead",
  "cancelled",
];

function sample(over: Partial<NewCommand> = {}): NewCommand {
  return {
    lane: "main",
    priority: 1,
    orderKey: 5,
    session: "agent:main:web:1:a" as SessionKey,
    route: { channel: "web", account: "1", chat: "a", thread: undefined },
    sender: "web:1:7",
    actor: "owner",
    role: "owner",
    source: "chat",
    kind: "message",
    text: "hello",
    extra: undefined,
    acceptedAt: 1_000,
    ...over,
  };
}

function insert(tx: Tx, over: Partial<NewCommand> = {}): CommandId {
  const id = tx.nextSeq() as CommandId;
  tx.commands.insert(id, sample(over), "queued");
  return id;
}

/** Puts the row into a state without asking any verb. */
function force(db: Database, id: CommandId, state: CommandState, claim = 3, generation = 1): void {
  db.prepare("update commands set state = ?, claim = ?, generation = ? where id = ?").run(state, claim, generation, id);
}

const fence = (id: CommandId, claim = 3, generation = 1) => ({
  id,
  claim: claim as ClaimNumber,
  generation: generation as Generation,
});

/** Each verb with the states that it leaves and where it leads. What is not listed here must match no row. */
const VERBS: readonly {
  readonly verb: string;
  readonly from: readonly CommandState[];
  readonly to: CommandState | "same";
  readonly run: (tx: Tx, id: CommandId) => boolean;
}[] = [
  {
    verb: "claim",
    from: ["queued"],
    to: "running",
    run: (tx, id) => tx.commands.claim(id, tx.generation, 9) !== undefined,
  },
  { verb: "hold", from: ["running"], to: "same", run: (tx, id) => tx.commands.hold(fence(id)) },
  { verb: "finish", from: ["running"], to: "done", run: (tx, id) => tx.commands.finish(fence(id), "done", 9, "{}") },
  { verb: "fail", from: ["running"], to: "failed", run: (tx, id) => tx.commands.finish(fence(id), "failed", 9, "{}") },
  { verb: "handBack", from: ["running"], to: "queued", run: (tx, id) => tx.commands.handBack(fence(id)) },
  {
    verb: "cancel",
    from: ["queued", "running", "waiting", "absorbed"],
    to: "cancelled",
    run: (tx, id) => tx.commands.cancel(id, 9, "{}"),
  },
  {
    verb: "orphanToQueue",
    from: ["running"],
    to: "queued",
    run: (tx, id) => tx.commands.orphanToQueue(id, 1, "model", 4, 2 as Generation),
  },
  {
    verb: "giveUp",
    from: ["queued", "running"],
    to: "dead",
    run: (tx, id) => tx.commands.giveUp(id, 2 as Generation, 9, "{}"),
  },
];

test.each(VERBS)(
  "$verb moves what it may and is a normal false for every other state (design, Commands)",
  async (one) => {
    await using host = await openTestStore();
    const ids = await host.store.write("insert", (tx) =>
      STATES.map((state) => insert(tx, { session: state as never })),
    );
    ids.forEach((id, n) => {
      force(host.opened.db, id, STATES[n]!);
    });
    const moved = await host.store.write("verb", (tx) => ids.map((id) => one.run(tx, id)));
    expect(STATES.filter((_, n) => moved[n])).toEqual(one.from);
    const expected = STATES.map((state) => (one.from.includes(state) && one.to !== "same" ? one.to : state));
    expect(ids.map((id) => host.store.read.commands.get(id)?.state)).toEqual(expected);
  },
);

describe("the fence (G6)", () => {
  test("another claim, another generation or another command changes nothing", async () => {
    await using host = await openTestStore();
    const id = await host.store.write("insert", (tx) => insert(tx));
    force(host.opened.db, id, "running");
    const before = host.store.read.commands.get(id);
    const stale = [fence(id, 2), fence(id, 4), fence(id, 3, 0), fence(id, 3, 2), fence((id + 1) as CommandId)];
    const changed = await host.store.write("stale", ({ commands }) =>
      stale.flatMap((one) => [commands.hold(one), commands.finish(one, "done", 9, "{}"), commands.handBack(one)]),
    );
    expect(changed).toEqual(Array.from({ length: 15 }, () => false));
    expect(host.store.read.commands.get(id)).toEqual(before);
  });

  test("a claim raises the claim number, so that an abandoned earlier turn can write nothing", async () => {
    await using host = await openTestStore();
    const result = await host.store.write("life", (tx) => {
      const id = insert(tx);
      const first = tx.commands.claim(id, tx.generation, 1)!;
      tx.commands.handBack(first);
      const second = tx.commands.claim(id, tx.generation, 2)!;
      return {
        claims: [first.claim, second.claim],
        late: tx.commands.finish(first, "done", 3, "{}"),
        live: tx.commands.finish(second, "done", 3, "{}"),
      };
    });
    expect(result).toEqual({ claims: [1, 2], late: false, live: true });
  });

  test("only a running command of an earlier generation is an orphan", async () => {
    await using host = await openTestStore();
    const moved = await host.store.write("own", (tx) => {
      const id = insert(tx);
      tx.commands.claim(id, tx.generation, 1);
      return [
        tx.commands.orphanToQueue(id, 1, "model", 0, tx.generation),
        tx.commands.giveUp(id, tx.generation, 9, "{}"),
      ];
    });
    expect(moved).toEqual([false, false]);
  });
});

describe("the session gate is in the database (design, Commands)", () => {
  const two = async (first: CommandState, open: 0 | 1) => {
    const host = await openTestStore();
    const ids = await host.store.write("two of one session", (tx) => [insert(tx), insert(tx)]);
    host.opened.db.prepare("update commands set state = ?, open = ? where id = ?").run(first, open, ids[0]);
    const claim = host.store.write("claim", (tx) => tx.commands.claim(ids[1]!, tx.generation, 9)?.state);
    return { claim, [Symbol.asyncDispose]: () => host[Symbol.asyncDispose]() };
  };

  test.each([
    { first: "running", open: 0 },
    { first: "waiting", open: 1 },
    { first: "queued", open: 1 },
  ] as const)("while one is $first (open $open) no other of the session can be claimed", async ({ first, open }) => {
    await using race = await two(first, open);
    await expect(race.claim).rejects.toMatchObject({ code: "SQLITE_CONSTRAINT_UNIQUE" });
  });

  test.each([
    { first: "queued", open: 0 },
    { first: "absorbed", open: 0 },
    { first: "done", open: 0 },
    { first: "failed", open: 0 },
  ] as const)("beside one that is $first (open $open) it can", async ({ first, open }) => {
    await using race = await two(first, open);
    expect(await race.claim).toBe("running");
  });
});

test("a command comes back as it was written, in every field", async () => {
  await using host = await openTestStore();
  const plain = sample();
  const full = sample({
    session: "agent:main:web:1:b:t" as SessionKey,
    route: { channel: "web", account: "1", chat: "b", thread: "t" },
    role: "guest",
    kind: "completion",
    text: "zero \u0000, quote ', emoji 👍 and a lone half \ud83d".toWellFormed(),
    extra: '{"a":1}',
    acceptedAt: 1_790_000_000_123,
    orderKey: 1_790_000_000_123 - 60_000,
  });
  const ids = await host.store.write("insert", (tx) => [plain, full].map((command) => insert(tx, command)));
  const read = ids.map((id) => host.store.read.commands.get(id));
  expect(read[0]).toMatchObject(plain);
  expect(read[1]).toMatchObject(full);
  expect(read.map((command) => chatKey(command!.route))).toEqual(["web:1:a", "web:1:b:t"]);
  expect([...host.store.read.commands.queued()].map((command) => command.id)).toEqual(ids);
});

test("the row sequence goes on above every row of the home, also in the next life", async () => {
  await using host = await openTestStore();
  const last = await host.store.write("rows", (tx) => {
    const id = insert(tx);
    const part = { chatKey: "web:1:a", command: id, part: 0, class: "answer", text: "hi" } as const;
    tx.outbox.insert(tx.nextSeq() as never, part, tx.generation, 1);
    return Number(tx.nextSeq()) - 1;
  });
  host.store.close();
  await using next = await openTestStore({ home: host.home });
  expect(await next.store.write("next", (tx) => tx.nextSeq())).toBe(last + 1);
});
