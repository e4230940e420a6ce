// Proves the fake of Telegram's Bot API at its edge: the forms of a call, the token, and how updates are fetched.
import { Api } from "grammy";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fakeClock } from "../../support/clock.ts";
import { broken, raw } from "../../support/telegram/raw.ts";
import { type FakeTelegram, startTelegram } from "../../support/telegram/telegram.ts";

let fake: FakeTelegram;
let api: Api;
beforeEach(async () => {
  fake = await startTelegram();
  api = apiOf(fake);
});
afterEach(() => fake.stop());

const apiOf = ({ token, address }: FakeTelegram) => new Api(token, { apiRoot: address });

function annAndHerChat(on = fake) {
  const ann = on.user({ id: 5_000_000_001, name: "Ann", username: "ann_the_first" });
  return { ann, chat: on.privateChat(ann) };
}

describe("calls", () => {
  test("grammY learns who the bot is", async () => {
    expect(await api.getMe()).toMatchObject({ id: fake.bot.id, is_bot: true, username: "laneway_test_bot" });
  });

  test("parameters come as a query, urlencoded, as JSON or in a multipart form", async () => {
    const { chat } = annAndHerChat();
    const given = { chat_id: `${chat.id}`, text: "hi", link_preview_options: '{"is_disabled":true}' };
    const form = new FormData();
    for (const [name, value] of Object.entries(given)) form.set(name, value);
    await raw(fake, "sendMessage", new URLSearchParams(given));
    await raw(fake, "SENDmessage", form);
    await raw(fake, "sendMessage", { ...given, chat_id: chat.id, link_preview_options: { is_disabled: true } });
    await fetch(`${fake.address}/bot${fake.token}/sendMessage?${new URLSearchParams(given)}`);
    const seen = fake.messages(chat).map(({ text, linkPreview }) => [text, linkPreview]);
    expect(seen).toEqual(Array(4).fill(["hi", { is_disabled: true }]));
    expect(broken(fake)).toEqual([]);
  });

  test("a wrong token, an unknown method and an unreadable body are refused in the Bot API's form", async () => {
    expect((await raw(fake, "getMe", {}, "1:wrong")).body).toEqual({
      ...{ ok: false, error_code: 401, description: "Unauthorized" },
    });
    expect(await raw(fake, "sendTelepathy")).toMatchObject({ status: 404, description: "Not Found" });
    expect(await raw(fake, "constructor")).toMatchObject({ status: 404 });
    expect(await raw(fake, "getMe", "{")).toMatchObject({ status: 400 });
    expect(await raw(fake, "sendMessage", { chat_id: "x", text: "hi" })).toMatchObject({ status: 400 });
    expect((await fetch(`${fake.address}/nothing`)).status).toBe(404);
    expect(fake.violations.map(({ call }) => call.method)).toEqual([
      ...["sendTelepathy", "constructor", "getMe", "sendMessage"],
    ]);
  });

  test("a revoked token is refused, and ends the poll that waits", async () => {
    const old = fake.token;
    const poll = api.getUpdates({ timeout: 30 });
    await fake.until(() => fake.openPolls);
    const next = fake.revokeToken();
    await expect(poll).rejects.toMatchObject({ error_code: 401 });
    expect(await raw(fake, "getMe", {}, old)).toMatchObject({ status: 401, description: "Unauthorized" });
    expect(await raw(fake, "getMe", {}, next)).toMatchObject({ status: 200 });
  });
});

describe("getUpdates", () => {
  test("an update comes again until an offset above it is asked for", async () => {
    const { ann, chat } = annAndHerChat();
    fake.says(chat, ann, "one");
    fake.says(chat, ann, "two");
    const [first, second] = await api.getUpdates();
    expect(await api.getUpdates()).toEqual([first, second]);
    expect(await api.getUpdates({ offset: first!.update_id })).toEqual([first, second]);
    expect(await api.getUpdates({ offset: second!.update_id })).toEqual([second]);
    expect(await api.getUpdates()).toEqual([second]);
    expect(await api.getUpdates({ offset: second!.update_id + 1 })).toEqual([]);
    expect(fake.pending).toEqual([]);
    expect(first).toMatchObject({
      update_id: second!.update_id - 1,
      message: { text: "one", date: expect.any(Number) },
    });
    expect(broken(fake)).toEqual([]);
  });

  test("an offset that goes back is written down", async () => {
    const { ann, chat } = annAndHerChat();
    for (const text of ["one", "two"]) fake.says(chat, ann, text);
    const [first, second] = await api.getUpdates();
    await api.getUpdates({ offset: second!.update_id + 1 });
    await api.getUpdates({ offset: first!.update_id });
    expect(broken(fake)).toEqual([expect.stringContaining("the offset went back")]);
  });

  test("a negative offset keeps the newest updates and forgets the others", async () => {
    const { ann, chat } = annAndHerChat();
    for (const text of ["one", "two", "three"]) fake.says(chat, ann, text);
    const texts = (updates: readonly { message?: { text?: string } }[]) => updates.map(({ message }) => message?.text);
    expect(texts(await api.getUpdates({ offset: -2 }))).toEqual(["two", "three"]);
    expect(texts(await api.getUpdates())).toEqual(["two", "three"]);
  });

  test("a limit bounds the answer; one out of range is cut down and written down", async () => {
    const { ann, chat } = annAndHerChat();
    for (let count = 0; count < 120; count++) fake.says(chat, ann, `${count}`);
    expect(await api.getUpdates({ limit: 3 })).toHaveLength(3);
    expect(await api.getUpdates()).toHaveLength(100);
    expect(await api.getUpdates({ limit: 101 })).toHaveLength(100);
    expect(await api.getUpdates({ limit: 1, timeout: -1 })).toHaveLength(1);
    expect(broken(fake)).toEqual(["limit 101 is not within 1-100", "timeout -1 is not within 0-50"]);
  });

  test("a long poll waits for an update, and gets all that come at one time", async () => {
    const { ann, chat } = annAndHerChat();
    const poll = api.getUpdates({ timeout: 30 });
    await fake.until(() => fake.openPolls === 1);
    fake.says(chat, ann, "one");
    fake.says(chat, ann, "two");
    expect(await poll).toHaveLength(2);
    expect(fake.openPolls).toBe(0);
  });

  test("a long poll ends empty after its timeout and not earlier", async () => {
    const clock = fakeClock();
    await using timed = await startTelegram({ clock });
    let ended = false;
    const poll = apiOf(timed)
      .getUpdates({ timeout: 20 })
      .finally(() => {
        ended = true;
      });
    await timed.until(() => timed.openPolls);
    await clock.advance(19_999);
    expect([ended, timed.openPolls]).toEqual([false, 1]);
    await clock.advance(1);
    expect(await poll).toEqual([]);
  });

  test("a second poll ends the first with 409 and is written down; the second goes on", async () => {
    const { ann, chat } = annAndHerChat();
    const first = api.getUpdates({ timeout: 30 });
    await fake.until(() => fake.openPolls);
    const second = api.getUpdates({ timeout: 30 });
    await expect(first).rejects.toMatchObject({
      error_code: 409,
      description: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
    });
    await fake.until(() => fake.openPolls && fake.violations.length);
    fake.says(chat, ann, "hi");
    expect(await second).toHaveLength(1);
    expect(broken(fake)).toEqual(["two calls of getUpdates at once"]);
  });

  test("a client that goes away ends its poll and loses nothing", async () => {
    const { ann, chat } = annAndHerChat();
    const leave = new AbortController();
    const left = api.getUpdates({ timeout: 30 }, leave.signal as never).catch(() => "left");
    await fake.until(() => fake.openPolls);
    leave.abort();
    expect(await fake.until(() => fake.calls[0]?.outcome)).toEqual({ kind: "gone" });
    expect([await left, fake.openPolls]).toEqual(["left", 0]);
    fake.says(chat, ann, "hi");
    expect(await api.getUpdates()).toHaveLength(1);
  });

  test("a client that gives up its poll and polls again at once is no second client", async () => {
    const { ann, chat } = annAndHerChat();
    const leave = new AbortController();
    const left = api.getUpdates({ timeout: 30 }, leave.signal as never).catch(() => "left");
    await fake.until(() => fake.openPolls);
    leave.abort();
    const again = api.getUpdates({ timeout: 30 });
    await fake.until(() => fake.calls.length === 2 && fake.calls[0]?.outcome);
    expect(await left).toBe("left");
    fake.says(chat, ann, "hi");
    expect(await again).toHaveLength(1);
    expect(broken(fake)).toEqual([]);
  });

  test("only allowed kinds come, and the choice stays until another is made", async () => {
    const { ann, chat } = annAndHerChat();
    await api.getUpdates({ allowed_updates: ["edited_message"] });
    const { message_id } = fake.says(chat, ann, "one");
    fake.says(chat, ann, "two", { edit: message_id });
    const [update, ...more] = await api.getUpdates();
    expect([update, more]).toMatchObject([{ edited_message: { message_id, text: "two" } }, []]);
    await api.getUpdates({ allowed_updates: [] });
    fake.says(chat, ann, "three");
    expect(await api.getUpdates({ offset: -1 })).toMatchObject([{ message: { text: "three" } }]);
  });

  test("ids jump, also back after a quiet time; an offset from far ahead begins at the front again", async () => {
    const { ann, chat } = annAndHerChat();
    fake.nextUpdateId(900_000_000);
    fake.says(chat, ann, "one");
    expect(() => fake.nextUpdateId(5)).toThrow("no update waits");
    expect(await api.getUpdates()).toMatchObject([{ update_id: 900_000_000 }]);
    await api.getUpdates({ offset: 900_000_001 });
    fake.nextUpdateId(5);
    fake.says(chat, ann, "two");
    expect(await api.getUpdates({ offset: 900_000_001 })).toMatchObject([{ update_id: 5 }]);
    await api.getUpdates({ offset: 6 });
    expect([fake.pending, broken(fake)]).toEqual([[], []]);
  });
});
