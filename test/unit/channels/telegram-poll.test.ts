import { expect, onTestFinished, test } from "vitest";
import { fakeClock } from "../../support/clock.ts";
import { broken } from "../../support/telegram/raw.ts";
import type { FakeTelegram } from "../../support/telegram/telegram.ts";
import { rigAt, rigWith, STALL_MS, scriptedServer } from "./telegram-rig.ts";

const offsets = (telegram: FakeTelegram) => telegram.callsOf("getUpdates").map(({ params }) => params["offset"]);

async function withPerson() {
  const rig = await rigWith();
  const ada = rig.telegram.user({ id: 101, name: "Ada" });
  const chat = rig.telegram.privateChat(ada);
  return { ...rig, ada, chat };
}

test("an update is confirmed to Telegram only after the host has kept it (G1)", async () => {
  const { telegram, host, start, until, ada, chat } = await withPerson();
  const gate = Promise.withResolvers<void>();
  let asked = false;
  host.gate = () => {
    asked = true;
    return gate.promise;
  };
  start();
  telegram.says(chat, ada, "hello");
  await until(() => asked);
  expect(telegram.pending).toHaveLength(1);
  const [update] = telegram.pending;
  expect(offsets(telegram)).not.toContain((update?.update_id ?? 0) + 1);

  gate.resolve();
  await until(() => telegram.pending.length === 0);
  expect(host.events().map(({ text }) => text)).toEqual(["hello"]);
  expect(host.positions.get(String(telegram.bot.id))).toBe(String((update?.update_id ?? 0) + 1));
  expect(broken(telegram)).toEqual([]);
});

test("when the host cannot keep a batch, the same updates are asked for again, after a pause (G1)", async () => {
  const { telegram, host, clock, start, until, channel, ada, chat } = await withPerson();
  let refusals = 0;
  const failedAt: number[] = [];
  host.gate = async () => {
    failedAt.push(clock.mono());
    if (++refusals <= 2) throw new Error("disk full");
  };
  start();
  telegram.says(chat, ada, "one");
  telegram.says(chat, ada, "two");
  await until(() => refusals === 1);
  await until(() => channel.state().state === "retrying");
  expect(channel.state()).toMatchObject({ reason: "the updates were not kept: disk full" });
  await until(() => host.events().length === 2);
  expect(host.events().map(({ text }) => text)).toEqual(["one", "two"]);
  expect(failedAt[1]! - failedAt[0]!).toBeGreaterThanOrEqual(1_000);
  expect(failedAt[2]! - failedAt[1]!).toBeGreaterThanOrEqual(2_000);
  await until(() => telegram.pending.length === 0 && channel.state().state === "up");
  expect(broken(telegram)).toEqual([]);
});

test("receiving goes on from the position that was kept for this very bot (G3)", async () => {
  const { telegram, host, start, until, ada, chat } = await withPerson();
  telegram.says(chat, ada, "seen before");
  telegram.says(chat, ada, "new");
  host.positions.set(String(telegram.bot.id), String(telegram.pending[1]?.update_id));
  host.positions.set("999", "5");
  start();
  await until(() => host.events().length > 0);
  expect(host.events().map(({ text }) => text)).toEqual(["new"]);
});

test("updates whose ids begin anew at a lower number are taken (G2)", async () => {
  const { telegram, host, start, until, ada, chat } = await withPerson();
  start();
  telegram.says(chat, ada, "before the quiet week");
  await until(() => telegram.pending.length === 0 && host.events().length === 1);
  telegram.nextUpdateId(1_000);
  telegram.says(chat, ada, "after it");
  await until(() => host.events().length === 2 && telegram.pending.length === 0);
  expect(host.positions.get(String(telegram.bot.id))).toBe("1001");
  expect(broken(telegram)).toEqual([]);
});

test("next to another poller it waits longer than a poll, says so once, and is back within a minute (Q10.2)", async () => {
  const { telegram, host, clock, start, until, channel } = await withPerson();
  start();
  await until(() => telegram.openPolls === 1);
  const conflict = { status: 409, description: "Conflict: terminated by other getUpdates request" };
  telegram.failNext("getUpdates", conflict, 4);
  await until(() => telegram.callsOf("getUpdates").filter(({ outcome }) => outcome?.kind === "refused").length === 4);
  expect(channel.state()).toMatchObject({ state: "retrying", reason: expect.stringContaining("another program") });
  const goneAt = clock.mono();
  await until(() => channel.state().state === "up");
  expect(clock.mono() - goneAt).toBeLessThanOrEqual(60_000);
  expect(host.states.map(({ state }) => state)).toEqual(["up", "retrying", "up"]);
  const refusedAt = telegram
    .callsOf("getUpdates")
    .filter(({ outcome }) => outcome?.kind === "refused")
    .map(({ at }) => at);
  for (const [index, at] of refusedAt.slice(1).entries()) expect(at - refusedAt[index]!).toBeGreaterThan(25_000);
});

test("a poll that succeeds by luck next to another poller does not end the alarm (Q10.2)", async () => {
  const { telegram, host, start, until, channel, ada, chat } = await withPerson();
  start();
  await until(() => telegram.openPolls === 1);
  telegram.failNext("getUpdates", { status: 409, description: "Conflict: terminated by other getUpdates request" });
  await until(() => channel.state().state === "retrying");
  telegram.says(chat, ada, "in between");
  await until(() => host.events().length === 1);
  expect(channel.state().state).toBe("retrying");
  await until(() => channel.state().state === "up");
});

test("a refused token stops the channel for good and says what to do; the token is not in it (SEC-1)", async () => {
  const { telegram, host, lines, start, until, pass, channel } = await withPerson();
  start();
  await until(() => telegram.openPolls === 1);
  telegram.revokeToken();
  await until(() => channel.state().state === "stopped");
  const calls = telegram.calls.length;
  await pass(90_000);
  expect(telegram.calls.length).toBe(calls);
  expect(channel.state()).toMatchObject({ reason: expect.stringContaining("401") });
  expect(JSON.stringify([host.states, lines])).not.toContain(telegram.token.split(":")[1]);
});

test("after a 429 there is no poll before the stated wait ends", async () => {
  const { telegram, start, until, host, ada, chat } = await withPerson();
  start();
  await until(() => telegram.openPolls === 1);
  telegram.failNext("getUpdates", { status: 429, description: "Too Many Requests", parameters: { retry_after: 7 } });
  telegram.says(chat, ada, "wakes the poll");
  await until(() => telegram.callsOf("getUpdates").some(({ outcome }) => outcome?.kind === "refused"));
  const refused = telegram.callsOf("getUpdates").find(({ outcome }) => outcome?.kind === "refused")!;
  telegram.says(chat, ada, "hello");
  await until(() => host.events().length === 2);
  const next = telegram.callsOf("getUpdates").find(({ id }) => id > refused.id)!;
  expect(next.at - refused.at).toBeGreaterThanOrEqual(7_000);
  expect(broken(telegram)).toEqual([]);
});

test("a poll that hangs is given up within the threshold and what came meanwhile is not lost (Q10.1)", async () => {
  const { telegram, host, clock, start, until, channel, ada, chat } = await withPerson();
  telegram.hang("getUpdates");
  start();
  await until(() => telegram.callsOf("getUpdates").length === 1);
  const hungAt = clock.mono();
  telegram.says(chat, ada, "while deaf");
  // A person or a time server changes the clock: that is no time passing.
  clock.jump(3_600_000);
  clock.jump(-7_200_000);
  await until(() => host.events().length === 1);
  expect(clock.mono() - hungAt).toBeGreaterThanOrEqual(STALL_MS);
  expect(clock.mono() - hungAt).toBeLessThan(STALL_MS + 5_000);
  expect(host.states).toContainEqual(expect.objectContaining({ state: "retrying", reason: "no answer within 120 s" }));
  await until(() => channel.state().state === "up" && telegram.openPolls === 1);
});

test.each([
  ["a proxy's page", (telegram: FakeTelegram) => telegram.badGateway("getUpdates", { times: 3 })],
  ["JSON that breaks off", (telegram: FakeTelegram) => telegram.garbage("getUpdates", { times: 3 })],
  ["a reset connection", (telegram: FakeTelegram) => telegram.dropBefore("getUpdates", 3)],
  [
    "an error of the server",
    (telegram: FakeTelegram) =>
      telegram.failNext("getUpdates", { status: 500, description: "Internal Server Error" }, 3),
  ],
])("after %s the same offset is asked for again, later and later", async (_what, fail) => {
  const { telegram, host, start, until, channel, ada, chat } = await withPerson();
  start();
  telegram.says(chat, ada, "first");
  await until(() => telegram.pending.length === 0 && telegram.openPolls === 1);
  const before = telegram.callsOf("getUpdates").length;
  fail(telegram);
  telegram.says(chat, ada, "second");
  await until(() => host.events().length === 2);
  // The poll that was open brought the second; the next three failed.
  await until(() => telegram.callsOf("getUpdates").length >= before + 4 && channel.state().state === "up");
  const failed = telegram.callsOf("getUpdates").slice(before, before + 4);
  expect(new Set(failed.map(({ params }) => params["offset"])).size).toBe(1);
  expect(failed[2]!.at - failed[1]!.at).toBeGreaterThan(failed[1]!.at - failed[0]!.at);
  expect(broken(telegram)).toEqual([]);
});

test("no connection at the start or later is waited out (fault matrix: refused)", async () => {
  const { telegram, host, lines, start, until, pass, channel, ada, chat } = await withPerson();
  await telegram.offline(true);
  start();
  await until(() => channel.state().state === "retrying");
  expect(channel.state()).toMatchObject({ reason: "could not connect (ECONNREFUSED)" });
  await pass(10_000);
  await telegram.offline(false);
  await until(() => channel.state().state === "up");
  await telegram.offline(true);
  await until(() => channel.state().state === "retrying");
  await telegram.offline(false);
  telegram.says(chat, ada, "back");
  await until(() => host.events().length === 1);
  expect(JSON.stringify([host.states, lines])).not.toContain(telegram.token.split(":")[1]);
});

test("an update that cannot be read is kept raw, and the ones around it are taken", async () => {
  const person = { id: 5, is_bot: false, first_name: "Ada" };
  const say = (message_id: number, text: unknown) => ({
    ...{ message_id, date: 1, chat: { id: 5, type: "private", first_name: "Ada" }, from: person, text },
  });
  const updates = [
    { update_id: 10, message: say(1, "good") },
    { update_id: 11, message: say(2, { not: "a text" }) },
    { update_id: 12, message: "not even a message" },
    { update_id: 13, something_new: {} },
    { update_id: 14, message: say(3, "good too") },
  ];
  const asked: unknown[] = [];
  const root = await scriptedServer((method, { offset }) => {
    if (method === "getMe") return { id: 77, is_bot: true, first_name: "Bot", username: "a_bot" };
    if (method !== "getUpdates") return true;
    asked.push(offset);
    return offset === undefined ? updates : undefined;
  });
  const { host, start, until } = rigAt(root, "77:secret-of-the-bot", fakeClock());
  start();
  await until(() => asked.length === 2);
  expect(asked).toEqual([undefined, 15]);
  const kept = host.batches.flatMap(({ events }) =>
    events.map((event) => ("problem" in event ? event.raw : event.text)),
  );
  expect(kept).toHaveLength(4);
  expect([kept[0], kept[3]]).toEqual(["good", "good too"]);
  expect(kept[1]).toContain("not");
});

test.each([
  ["no list", { updates: "none" }],
  ["updates without ids", [{ message: {} }]],
  ["null", null],
])("an answer that is none (%s) is a failure with a pause, and the loop lives on", async (_what, result) => {
  let asked = 0;
  const root = await scriptedServer((method) => {
    if (method === "getMe") return { id: 77, is_bot: true, first_name: "Bot" };
    if (method !== "getUpdates") return true;
    asked += 1;
    return asked <= 2 ? result : [];
  });
  const { channel, host, start, until } = rigAt(root, "77:secret-of-the-bot", fakeClock());
  start();
  await until(() => channel.state().state === "retrying");
  await until(() => channel.state().state === "up" && asked > 2);
  expect(host.batches).toEqual([]);
});

test("a stop ends within 2 s, leaves nothing in flight, and the next start goes on (Q10.2)", async () => {
  const { telegram, host, clock, channel, until, ada, chat } = await withPerson();
  const { stop } = channel.start(host);
  await until(() => telegram.openPolls === 1);
  const stopping = performance.now();
  await stop();
  expect(performance.now() - stopping).toBeLessThan(2_000);
  await until(() => telegram.openPolls === 0);
  const calls = telegram.calls.length;
  telegram.says(chat, ada, "while stopped");
  await clock.advance(200_000);
  expect(telegram.calls.length).toBe(calls);

  const again = channel.start(host);
  onTestFinished(() => again.stop());
  await until(() => host.events().length === 1);
  expect(broken(telegram)).toEqual([]);
});

test("the press of a button is answered once the host has it, and a stop button is an event (ID-R6)", async () => {
  const { telegram, host, start, until, ada } = await withPerson();
  const eve = telegram.user({ id: 102, name: "Eve" });
  const group = telegram.group({ id: -100_777, title: "Team", members: [ada, eve] });
  start();
  await until(() => telegram.openPolls === 1);
  const keyboard = {
    inline_keyboard: [
      [
        { text: "Stop", callback_data: "stop:c7" },
        { text: "Other", callback_data: "x" },
      ],
    ],
  };
  const body = JSON.stringify({ chat_id: group.id, text: "working", reply_markup: keyboard });
  await fetch(`${telegram.address}/bot${telegram.token}/sendMessage`, {
    ...{ method: "POST", body, headers: { "content-type": "application/json" } },
  });
  const [message] = telegram.messages(group);
  telegram.presses(eve, group, message!, "Stop");
  telegram.presses(ada, group, message!, "Other");
  await until(
    () => telegram.callsOf("answerCallbackQuery").filter(({ outcome }) => outcome?.kind === "ok").length === 2,
  );
  expect(host.events()).toHaveLength(1);
  expect(host.events()[0]).toMatchObject({ kind: "stop", text: "c7", sender: { id: "102" }, chat: "-100777" });
});
