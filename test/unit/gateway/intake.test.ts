import fc from "fast-check";
import { expect, test } from "vitest";
import { StoreUnavailable } from "../../../src/kernel/errors.ts";
import { BOT, type Event, from, type IntakeRig, makeIntakeRig, message, OWNER_ID } from "./intake-rig.ts";

// One transaction for position, access and rows; each event once; one that cannot be kept alone is kept raw.

const plant = (rig: IntakeRig, table: string, when: string) =>
  rig.rig.host.opened.db.exec(
    `create temp trigger planted before insert on ${table} when ${when} begin select raise(abort, 'planted'); end`,
  );

test("position, inbox row and command are committed together, and offered after that (G1)", async () => {
  await using host = await makeIntakeRig();
  await host.take([message("hello"), from(OWNER_ID, "more", { thread: "7" })], { position: "42" });
  expect(host.position()).toBe("42");
  const [first, second] = host.messages();
  expect(first).toMatchObject({ text: "hello", role: "owner", actor: "owner", sender: "owner", state: "running" });
  expect(second?.route).toEqual({ channel: "telegram", account: "default", chat: OWNER_ID, thread: "7" });
  expect(second?.session).toBe(`agent:main:telegram:default:${OWNER_ID}:7`);
});

test("a write that fails keeps neither row nor position and rejects; the same batch is taken later (G14, Q1.2)", async () => {
  await using host = await makeIntakeRig();
  const { db } = host.rig.host.opened;
  db.pragma(`max_page_count = ${Number(db.pragma("page_count", { simple: true }))}`);
  const batch = [message("x".repeat(50_000)), message("second")];
  await expect(host.take(batch, { position: "9" })).rejects.toThrow(StoreUnavailable);
  await expect(host.take(batch, { position: "9" })).rejects.toThrow(StoreUnavailable);
  expect([host.position(), host.messages()]).toEqual([undefined, []]);
  db.pragma("max_page_count = 1000000");
  await host.rig.pass(30_000);
  await host.take(batch, { position: "9" });
  expect([host.position(), host.messages().length]).toEqual(["9", 2]);
});

test("places that a failed write had taken are given up: a full disk leaves no queue that looks full (G15)", async () => {
  await using host = await makeIntakeRig({ settings: { cap: 2 } });
  plant(host, "positions", "1");
  for (const n of [1, 2, 3]) await expect(host.take([message(`try ${n}`)])).rejects.toThrow("planted");
  host.rig.host.opened.db.exec("drop trigger planted");
  await host.take([message("taken")]);
  expect(host.messages().map(({ text }) => text)).toEqual(["taken"]);
});

test("any part of what came, again, in any order and number, makes no second command (G2)", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(fc.nat(5), { maxLength: 8 }), { maxLength: 5 }), async (again) => {
      await using host = await makeIntakeRig();
      const events: readonly Event[] = [
        ...[message("a"), message("b"), from("5", "stranger"), message("/whoami"), message("c", { album: "x" })],
        { key: "bad:1", raw: "{}", problem: "unreadable." },
      ];
      const count = () => host.rig.host.opened.db.prepare("select count(*) from commands").pluck().get();
      await host.take(events);
      const before = [count(), host.parts(OWNER_ID).length, host.parts("5").length, host.rejected().length];
      for (const picks of again) await host.take(picks.flatMap((n) => events[n] ?? []));
      expect([count(), host.parts(OWNER_ID).length, host.parts("5").length, host.rejected().length]).toEqual(before);
    }),
    { numRuns: 15 },
  );
});

test("the same event of another bot is another event, and its position is its own (G3)", async () => {
  await using host = await makeIntakeRig();
  const one = message("hello");
  await host.take([one], { position: "500" });
  await host.take([one], { position: "3", identity: "901" });
  expect(host.messages()).toHaveLength(2);
  expect([host.position(BOT), host.position("901"), host.position("902")]).toEqual(["500", "3", undefined]);
});

test.each([
  { when: "its row cannot be written", table: "commands", text: "poison" },
  { when: "its chat command's reply cannot be written", table: "outbox", text: "/poison" },
])(
  "an event of which $when is kept raw, the owner is told, the others are taken, and the position passes",
  async ({ table, text }) => {
    await using host = await makeIntakeRig();
    plant(host, table, table === "commands" ? "new.text = 'poison'" : "new.text like '%/poison%'");
    const poison = message(text);
    await host.take([message("before"), poison, message("after")], { position: "7" });
    expect(host.messages().map((one) => one.text)).toEqual(["before", "after"]);
    expect(host.rejected()).toEqual([{ event_key: poison.key, raw: JSON.stringify(poison), problem: "planted" }]);
    expect(host.parts(OWNER_ID).filter((part) => part.text.includes("could not be taken"))).toHaveLength(1);
    expect(host.position()).toBe("7");
    await host.take([poison]);
    expect(host.rejected()).toHaveLength(1);
  },
);

test("an event at which the delivery throws is kept raw too, also when the owner cannot be told of it", async () => {
  const broken = () => {
    throw new Error("the delivery is broken");
  };
  await using host = await makeIntakeRig({ delivery: () => ({ notice: broken, tellOwner: broken }) });
  await host.take([from("5", "hello"), message("after")], { position: "7" });
  expect(host.rejected()).toMatchObject([{ problem: "the delivery is broken" }]);
  expect([host.messages().length, host.position()]).toEqual([1, "7"]);
});

test("what goes wrong in memory after the commit is no reason to ask for the same events again", async () => {
  await using host = await makeIntakeRig({
    delivery: () => ({
      send: () => {
        throw new Error("broken");
      },
    }),
  });
  await host.take([from("5", "hello"), message("after")]);
  expect(host.messages().map(({ state }) => state)).toEqual(["running"]);
  expect(host.logged.map(({ event }) => event)).toContain("channel.effect-failed");
});

test("an event that cannot be read is kept as it came, and the owner is told of it once", async () => {
  await using host = await makeIntakeRig();
  await host.take([{ key: "bad:1", raw: '{"update_id":1}', problem: "no known form." }]);
  expect(host.rejected()).toEqual([{ event_key: "bad:1", raw: '{"update_id":1}', problem: "no known form." }]);
  expect(host.parts(OWNER_ID).map(({ text }) => text)).toEqual([expect.stringContaining("no known form.")]);
  expect(host.sent).toHaveLength(1);
});

test("at the cap a message is refused visibly and makes no command; a repeat of it says nothing more (G15, Q1.4)", async () => {
  await using host = await makeIntakeRig({ settings: { cap: 2 } });
  const events = ["1", "2", "3", "4", "5"].map((text) => message(text));
  await host.take(events);
  await host.take(events);
  const refusals = host.parts(OWNER_ID).map(({ text }) => text);
  expect(host.messages().map(({ text }) => text)).toEqual(["1", "2"]);
  expect(refusals).toEqual([1, 2, 3].map(() => expect.stringContaining("Not taken: 2 messages")));
});

test("what makes no command takes no place: a busy group's talk does not use its queue up (G15)", async () => {
  const rules = { groups: { "-7": { mention: true, allow: undefined } } };
  await using host = await makeIntakeRig({ rules, settings: { cap: 2 } });
  const group = { chat: "-7", chatKind: "group" } as const;
  const talk = Array.from({ length: 50 }, (_, n) => from("5", `talk ${n}`, group));
  await host.take([...talk, from("5", "for the bot", { ...group, addressed: "mention" })]);
  expect(host.messages().map(({ text }) => text)).toEqual(["for the bot"]);
  expect(host.parts("-7")).toEqual([]);
});

test("a chat command takes effect with its acceptance and is answered as a reply to it (G18)", async () => {
  await using host = await makeIntakeRig();
  await host.take([message("work")]);
  const stop = message("/stop");
  await host.take([stop]);
  expect(host.messages()[0]?.state).toBe("cancelled");
  expect(host.parts(OWNER_ID)).toMatchObject([{ text: "Stopped: 1 running.", replyTo: stop.ref }]);
});

test("the platform's own stop button is /stop, also where only mentions are taken (ID-3)", async () => {
  const rules = { groups: { "-7": { mention: true, allow: undefined } } };
  await using host = await makeIntakeRig({ rules });
  const group = { chat: "-7", chatKind: "group", addressed: "mention" } as const;
  await host.take([from("5", "work", group), from("6", "mine", group)]);
  await host.take([from("5", "", { ...group, addressed: "none", kind: "stop" })]);
  expect(host.messages().map(({ text, state }) => [text, state])).toEqual([
    ["work", "cancelled"],
    ["mine", "running"],
  ]);
});

test("a message without words or files is none, unless it points at somebody's words", async () => {
  const rules = { groups: { "-7": { mention: true, allow: undefined } } };
  await using host = await makeIntakeRig({ rules });
  const group = { chat: "-7", chatKind: "group", addressed: "mention" } as const;
  await host.take([
    message(" "),
    from("5", "", group),
    from("5", "", { ...group, quoted: { author: "Bob", text: "look" } }),
  ]);
  expect(host.messages().map((one) => host.extraOf(one).quoted?.text)).toEqual(["look"]);
});
