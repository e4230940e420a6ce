// Proves what the fake of Telegram's Bot API makes go wrong when a test asks for it, and its flood control.
import { Api, GrammyError, HttpError } from "grammy";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type FakeClock, fakeClock } from "../../support/clock.ts";
import { broken } from "../../support/telegram/raw.ts";
import { type FakeTelegram, startTelegram } from "../../support/telegram/telegram.ts";
import type { Room } from "../../support/telegram/world.ts";

let clock: FakeClock;
let fake: FakeTelegram;
let api: Api;
let chat: Room;

beforeEach(async () => {
  clock = fakeClock();
  await begin(false);
});
afterEach(() => fake.stop());

async function begin(limits: boolean) {
  await fake?.stop();
  fake = await startTelegram({ clock, limits });
  api = new Api(fake.token, { apiRoot: fake.address });
  chat = fake.privateChat(fake.user({ id: 1, name: "Ann" }));
}

const texts = () => fake.messages(chat).map(({ text }) => text);
const failed = (call: Promise<unknown>) =>
  call.then(
    () => expect.unreachable(),
    (error: unknown) => error,
  );

describe("planned faults", () => {
  test("a planned failure is used up by one call of its method", async () => {
    fake.failNext("sendMessage", { status: 500, description: "Internal Server Error" });
    await api.getMe();
    const error = await failed(api.sendMessage(chat.id, "hi"));
    expect(error).toBeInstanceOf(GrammyError);
    expect(error).toMatchObject({ error_code: 500, description: "Internal Server Error" });
    await api.sendMessage(chat.id, "hi");
    expect(texts()).toEqual(["hi"]);
  });

  test("a drop after acceptance shows the message although the client got no answer; one before does not", async () => {
    fake.dropAfterAccept("sendMessage", 2);
    for (const text of ["one", "two"]) expect(await failed(api.sendMessage(chat.id, text))).toBeInstanceOf(HttpError);
    fake.dropBefore("*");
    expect(await failed(api.sendMessage(chat.id, "three"))).toBeInstanceOf(HttpError);
    await api.sendMessage(chat.id, "four");
    expect(texts()).toEqual(["one", "two", "four"]);
    expect(fake.calls.map(({ outcome }) => outcome)).toMatchObject([
      { kind: "dropped", accepted: true },
      { kind: "dropped", accepted: true },
      { kind: "dropped", accepted: false },
      { kind: "ok" },
    ]);
  });

  test("a hanging call gets no answer until the client gives up", async () => {
    for (const accepted of [true, false]) {
      fake.hang("sendMessage", { accepted });
      const giveUp = new AbortController();
      const call = failed(api.sendMessage(chat.id, `${accepted}`, {}, giveUp.signal as never));
      await fake.until(() => fake.calls.at(-1)?.outcome?.kind === "hung");
      giveUp.abort();
      expect(await call).toBeInstanceOf(Error);
    }
    expect(texts()).toEqual(["true"]);
  });

  test("a page from a proxy and broken JSON are no answers of the Bot API", async () => {
    fake.badGateway("sendMessage");
    fake.garbage("sendMessage", { accepted: true });
    for (const text of ["one", "two"]) expect(await failed(api.sendMessage(chat.id, text))).toBeInstanceOf(HttpError);
    fake.badGateway("getMe");
    const response = await fetch(`${fake.address}/bot${fake.token}/getMe`);
    expect([response.status, await response.text()]).toEqual([502, expect.stringContaining("<html>")]);
    expect(texts()).toEqual(["two"]);
  });

  test("latency holds the answer back, not the effect; healthy takes back what is left", async () => {
    fake.latencyMs(500);
    let answered = false;
    const call = api.sendMessage(chat.id, "hi").finally(() => {
      answered = true;
    });
    while (clock.waiting() === 0) await clock.advance(0);
    await clock.advance(499);
    expect([texts(), answered]).toEqual([["hi"], false]);
    await clock.advance(1);
    await call;
    fake.dropBefore("sendMessage");
    fake.healthy();
    await api.sendMessage(chat.id, "again");
  });

  test("what has arrived takes effect at its time, also when its client has gone", async () => {
    fake.latency((method) => ({ beforeMs: method === "sendMessage" ? 300 : 0, afterMs: 0 }));
    const gone = failed(api.sendMessage(chat.id, "on its way"));
    while (clock.waiting() === 0) await clock.advance(0);
    await fake.offline(true);
    await gone;
    expect(texts()).toEqual([]);
    await clock.advance(300);
    await fake.until(() => fake.callsOf("sendMessage")[0]?.outcome);
    expect(texts()).toEqual(["on its way"]);
    expect(fake.callsOf("sendMessage")[0]?.outcome).toEqual({ kind: "dropped", accepted: true });
  });

  test("offline refuses connections and breaks the poll; everything is there again afterwards on the same port", async () => {
    const poll = failed(api.getUpdates({ timeout: 30 }));
    await fake.until(() => fake.openPolls);
    await fake.offline(true);
    expect(await poll).toBeInstanceOf(HttpError);
    expect(await failed(api.sendMessage(chat.id, "lost"))).toBeInstanceOf(HttpError);
    fake.says(chat, fake.user({ id: 1, name: "Ann" }), "meanwhile");
    await fake.offline(false);
    expect(await api.getUpdates()).toMatchObject([{ message: { text: "meanwhile" } }]);
    await api.sendMessage(chat.id, "back");
    expect(texts()).toEqual(["meanwhile", "back"]);
    expect(broken(fake)).toEqual([]);
  });

  test("a condition that never comes true names the last calls", async () => {
    await api.sendMessage(chat.id, "hi");
    await expect(fake.until(() => fake.openPolls, 1)).rejects.toThrow(/never came true[\s\S]*#1 sendMessage/);
  });
});

describe("flood control", () => {
  const tooMany = (retry_after: number) => ({
    ...{ error_code: 429, description: `Too Many Requests: retry after ${retry_after}`, parameters: { retry_after } },
  });
  const tooManyNext = (seconds: number) =>
    fake.failNext("sendMessage", {
      status: 429,
      description: "Too Many Requests: retry after 5",
      parameters: { retry_after: seconds },
    });

  test("a call inside the window of a 429 is refused, written down, and makes the window begin again", async () => {
    tooManyNext(5);
    expect(await failed(api.sendMessage(chat.id, "hi"))).toMatchObject(tooMany(5));
    await clock.advance(4_000);
    expect(await failed(api.sendChatAction(chat.id, "typing"))).toMatchObject(tooMany(5));
    await clock.advance(4_999);
    expect(await failed(api.sendMessage(chat.id, "hi"))).toMatchObject(tooMany(5));
    await clock.advance(5_000);
    await api.sendMessage(chat.id, "hi");
    expect(broken(fake)).toEqual(Array(2).fill("called inside the window of a 429"));
  });

  test("a call that crossed the 429 on its way is refused but no offence; other chats and polls are free", async () => {
    const other = fake.privateChat(fake.user({ id: 2, name: "Bob" }));
    tooManyNext(5);
    await failed(api.sendMessage(chat.id, "hi"));
    expect(await failed(api.sendMessage(chat.id, "hi"))).toMatchObject(tooMany(5));
    await api.sendMessage(other.id, "hi");
    await api.getUpdates();
    await clock.advance(5_000);
    await api.sendMessage(chat.id, "hi");
    expect(broken(fake)).toEqual([]);
  });

  test("one chat takes a burst of three and then a message a second", async () => {
    await begin(true);
    for (const text of ["one", "two", "three"]) await api.sendMessage(chat.id, text);
    expect(await failed(api.sendMessage(chat.id, "four"))).toMatchObject(tooMany(1));
    await clock.advance(1_000);
    await api.sendMessage(chat.id, "four");
    for (let count = 0; count < 10; count++) {
      await clock.advance(1_000);
      await api.editMessageText(chat.id, 1, `${count}`);
    }
    expect(broken(fake)).toEqual([]);
  });

  test("a group takes 20 messages a minute", async () => {
    await begin(true);
    const group = fake.group({ id: -1_001_234_567_890, title: "Friends" });
    for (let count = 0; count < 20; count++) {
      await api.sendMessage(group.id, `${count}`);
      await clock.advance(1_500);
    }
    expect(await failed(api.sendMessage(group.id, "more"))).toMatchObject(tooMany(30));
    await clock.advance(30_000);
    await api.sendMessage(group.id, "more");
    expect(broken(fake)).toEqual([]);
  });

  test("all chats together take 30 messages a second", async () => {
    await begin(true);
    const chats = Array.from({ length: 31 }, (_, index) =>
      fake.privateChat(fake.user({ id: 100 + index, name: "Someone" })),
    );
    for (const { id } of chats.slice(1)) await api.sendMessage(id, "hi");
    expect(await failed(api.sendMessage(chats[0]!.id, "hi"))).toMatchObject(tooMany(1));
    await clock.advance(1_000);
    await api.sendMessage(chats[0]!.id, "hi");
  });
});
