// Proves that what people do in the fake of Telegram's Bot API reaches the bot in the form of the platform.
import { Api } from "grammy";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type FakeTelegram, startTelegram } from "../../support/telegram/telegram.ts";
import type { Room } from "../../support/telegram/world.ts";

let fake: FakeTelegram;
let api: Api;
let ann: ReturnType<FakeTelegram["user"]>;
let bob: ReturnType<FakeTelegram["user"]>;
let chat: Room;
let group: Room;

beforeEach(async () => {
  fake = await startTelegram();
  api = new Api(fake.token, { apiRoot: fake.address });
  ann = fake.user({ id: 5_000_000_001, name: "Ann", username: "ann_the_first" });
  bob = fake.user({ id: 12, name: "Bob" });
  chat = fake.privateChat(ann);
  group = fake.group({ id: -1_001_234_567_890, title: "Friends", members: [ann, bob] });
});
afterEach(() => fake.stop());

/** The newest update. */
async function last() {
  const [update] = await api.getUpdates({ offset: -1 });
  return update!;
}

describe("messages", () => {
  test("a message says who wrote it where and when, in seconds", async () => {
    const { date } = fake.says(chat, ann, "hi");
    expect((await last()).message).toEqual({
      message_id: 1,
      from: { id: ann.id, is_bot: false, first_name: "Ann", username: "ann_the_first" },
      chat: { id: ann.id, type: "private", first_name: "Ann", username: "ann_the_first" },
      date,
      text: "hi",
    });
    expect(Math.abs(date - Date.now() / 1000)).toBeLessThan(60);
    fake.says(group, bob, "hi");
    expect((await last()).message).toMatchObject({
      message_id: 1,
      chat: { id: group.id, type: "supergroup", title: "Friends" },
    });
    const small = fake.group({ id: -5, title: "Small" });
    fake.says(small, bob, "hi");
    expect((await last()).message).toMatchObject({ chat: { type: "group" } });
    expect(() => fake.group({ id: -6, title: "Small", forum: true })).toThrow("no such group");
  });

  test("commands and mentions are found as the platform finds them", async () => {
    const marked = async (text: string) => {
      fake.says(group, ann, text);
      const { message } = await last();
      return (message?.entities ?? []).map(({ type, offset, length }) => [
        type,
        message?.text?.slice(offset, offset + length),
      ]);
    };
    expect(await marked("/stop now")).toEqual([["bot_command", "/stop"]]);
    expect(await marked("/stop@laneway_test_bot now")).toEqual([["bot_command", "/stop@laneway_test_bot"]]);
    expect(await marked("😀 hey @laneway_test_bot, /go")).toEqual([
      ["mention", "@laneway_test_bot"],
      ["bot_command", "/go"],
    ]);
    expect(await marked("mail a@laneway_test_bot.example, look in /usr/bin")).toEqual([]);
    const entities = [{ type: "text_mention", offset: 0, length: 3, user: bob } as const];
    fake.says(group, ann, "Bob?", { entities });
    expect((await last()).message?.entities).toEqual(entities);
  });

  test("an answer carries the whole message that it answers, but not what that one answered", async () => {
    const sent = await api.sendMessage(group.id, "anything else?");
    const first = fake.says(group, ann, "yes", { replyTo: sent.message_id });
    expect((await last()).message).toMatchObject({
      reply_to_message: {
        message_id: sent.message_id,
        from: { id: fake.bot.id, is_bot: true },
        text: "anything else?",
      },
      // A reply thread of a supergroup is no topic.
      message_thread_id: sent.message_id,
    });
    fake.says(group, bob, "what?", { replyTo: first.message_id });
    const { message } = await last();
    expect(message).not.toHaveProperty("is_topic_message");
    expect(message?.reply_to_message).not.toHaveProperty("reply_to_message");
    expect(message?.message_thread_id).toBe(sent.message_id);
  });

  test("in a topic every message belongs to the thread and, answering none, to the message that made it", async () => {
    const forum = fake.group({ id: -1_007_777_777_777, title: "Forum", forum: true });
    const thread = fake.topic(forum, "Plans");
    expect((await last()).message).toMatchObject({ forum_topic_created: { name: "Plans" }, message_thread_id: thread });
    fake.says(forum, ann, "in it", { thread });
    const place = { message_thread_id: thread, is_topic_message: true };
    expect((await last()).message).toMatchObject({
      ...place,
      reply_to_message: { forum_topic_created: { name: "Plans" } },
    });
    fake.says(forum, ann, "outside");
    expect((await last()).message).not.toHaveProperty("message_thread_id");
    expect(() => fake.says(forum, ann, "nowhere", { thread: 99 })).toThrow("no topic 99");
    expect(() => fake.topic(group, "x")).toThrow("has no topics");
  });

  test("a bot with topics in private chats gets them there", async () => {
    const room = fake.privateChat(bob, { topics: true });
    const thread = fake.topic(room, "Plans");
    fake.says(room, bob, "hi", { thread });
    expect((await last()).message).toMatchObject({
      chat: { type: "private" },
      message_thread_id: thread,
      is_topic_message: true,
    });
  });

  test("a person cannot write more than fits into one message", () => {
    expect(() => fake.says(chat, ann, "x".repeat(4097))).toThrow("say it in parts");
    fake.says(chat, ann, "x".repeat(4096));
  });

  test("an edit brings the new text under the old id", async () => {
    const { message_id } = fake.says(chat, ann, "helo");
    fake.says(chat, ann, "hello", { edit: message_id });
    expect(await last()).toMatchObject({
      edited_message: { message_id, text: "hello", edit_date: expect.any(Number) },
    });
    expect(fake.messages(chat)).toMatchObject([{ text: "hello", edits: 1 }]);
  });

  test("forwards and messages in the name of a chat say so", async () => {
    fake.says(chat, ann, "look", { forward: bob });
    expect((await last()).message).toMatchObject({ from: ann, forward_origin: { type: "user", sender_user: bob } });
    fake.says(chat, ann, "look", { forward: "Carl" });
    expect((await last()).message?.forward_origin).toMatchObject({ type: "hidden_user", sender_user_name: "Carl" });
    fake.says(group, ann, "hear", { senderChat: group });
    expect((await last()).message).toMatchObject({
      from: { username: "GroupAnonymousBot" },
      sender_chat: { id: group.id },
    });
    fake.says(group, ann, "hear", { senderChat: { id: -1_002_222_222_222, title: "News" } });
    expect((await last()).message).toMatchObject({
      from: { id: 136817688 },
      sender_chat: { type: "channel", title: "News" },
    });
  });
});

describe("media", () => {
  test("photos come in several sizes, the largest last and downloadable; an album shares one id", async () => {
    const photo = Buffer.alloc(5000, 7);
    fake.says(chat, ann, "two pictures", { photo, album: "a" });
    fake.says(chat, ann, "", { photo, album: "a" });
    const [one, two] = await api.getUpdates({ offset: -2 });
    expect(one?.message).toMatchObject({
      caption: "two pictures",
      photo: [{ width: 90 }, { width: 320 }, { width: 1280 }],
    });
    expect(two?.message).not.toHaveProperty("caption");
    expect(one?.message?.media_group_id).toBe(two?.message?.media_group_id);
    const { file_path } = await api.getFile(one!.message!.photo!.at(-1)!.file_id);
    const bytes = await (await fetch(`${fake.address}/file/bot${fake.token}/${file_path}`)).arrayBuffer();
    expect(Buffer.from(bytes).equals(photo)).toBe(true);
  });

  test("documents and voice notes tell their name, type and size; a caption is found by its entities too", async () => {
    const bytes = Buffer.from("x");
    fake.says(group, ann, "@laneway_test_bot read", {
      document: { bytes, name: "a.txt", type: "text/plain", size: 99 },
    });
    expect((await last()).message).toMatchObject({
      document: { file_name: "a.txt", mime_type: "text/plain", file_size: 99 },
      caption_entities: [{ type: "mention", offset: 0 }],
    });
    fake.says(chat, ann, "", { voice: { bytes, seconds: 4 } });
    expect((await last()).message?.voice).toMatchObject({ duration: 4, mime_type: "audio/ogg", file_size: 1 });
  });
});

describe("other deeds", () => {
  test("the stop button of a draft brings its number and thread; without a button there is nothing to press", async () => {
    await api.sendMessageDraft(chat.id, 7, "one");
    expect(() => fake.stopsDraft(chat, 7)).toThrow("no draft 7 with a stop button");
    await api.sendMessageDraft(chat.id, 8, "one", { can_stop: true });
    fake.stopsDraft(chat, 8);
    expect((await last()).stopped_message_generation).toEqual({
      chat: (await api.getMe()) && expect.objectContaining({ id: chat.id }),
      draft_id: 8,
    });
  });

  test("a button that is not there cannot be pressed", async () => {
    await api.sendMessage(chat.id, "hi");
    expect(() => fake.presses(ann, chat, fake.messages(chat)[0]!, "Yes")).toThrow("no button Yes");
  });

  test("blocking and throwing out the bot is told to it", async () => {
    fake.blocks(chat);
    const change = {
      old_chat_member: { status: "member" },
      new_chat_member: { status: "kicked", user: { id: fake.bot.id } },
    };
    expect((await last()).my_chat_member).toMatchObject({ chat: { id: chat.id }, from: ann, ...change });
    fake.unblocks(chat);
    expect((await last()).my_chat_member).toMatchObject({ new_chat_member: { status: "member" } });
  });
});
