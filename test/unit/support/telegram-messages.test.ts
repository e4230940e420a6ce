// Proves that the fake of Telegram's Bot API shows what was sent as people see it, and refuses what the platform refuses.
import { Api, InputFile } from "grammy";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fakeClock } from "../../support/clock.ts";
import { broken, raw } from "../../support/telegram/raw.ts";
import { type FakeTelegram, startTelegram } from "../../support/telegram/telegram.ts";
import type { Room } from "../../support/telegram/world.ts";

let fake: FakeTelegram;
let api: Api;
let chat: Room;
let group: Room;
let ann: ReturnType<FakeTelegram["user"]>;
const clock = fakeClock();

beforeEach(async () => {
  fake = await startTelegram({ clock });
  api = new Api(fake.token, { apiRoot: fake.address });
  ann = fake.user({ id: 5_000_000_001, name: "Ann" });
  chat = fake.privateChat(ann);
  group = fake.group({ id: -1_001_234_567_890, title: "The forum", forum: true, members: [ann] });
});
afterEach(() => fake.stop());

const refusal = (description: string, error_code = 400) => ({
  ...{ error_code, description: expect.stringContaining(description) },
});

describe("messages", () => {
  test("a message is shown with its reply, buttons and preview options, and its ids ascend in each chat", async () => {
    const question = fake.says(chat, ann, "why?");
    const sent = await api.sendMessage(chat.id, " because\n", {
      reply_parameters: { message_id: question.message_id },
      link_preview_options: { is_disabled: true },
      reply_markup: { inline_keyboard: [[{ text: "More", callback_data: "more" }]] },
    });
    expect(sent).toMatchObject({ message_id: 2, chat: { id: chat.id, type: "private" }, text: "because" });
    expect(sent.date).toBe(Math.floor(clock.now() / 1000));
    expect(sent.reply_to_message).toMatchObject({ text: "why?" });
    const seen = { id: 2, byBot: true, text: "because", replyTo: 1, linkPreview: { is_disabled: true } };
    expect(fake.messages(chat)).toMatchObject([
      { id: 1, byBot: false },
      { ...seen, buttons: [{ text: "More" }] },
    ]);
    expect(await api.sendMessage(group.id, "hello")).toMatchObject({ message_id: 1, chat: { is_forum: true } });
  });

  test("a chat that does not exist, one that blocked the bot and a group that threw it out are refused", async () => {
    await expect(api.sendMessage(99, "hi")).rejects.toMatchObject(refusal("Bad Request: chat not found"));
    fake.blocks(chat);
    fake.blocks(group);
    const blocked = refusal("Forbidden: bot was blocked by the user", 403);
    await expect(api.sendMessage(chat.id, "hi")).rejects.toMatchObject(blocked);
    const kicked = refusal("Forbidden: bot was kicked from the supergroup chat", 403);
    await expect(api.sendMessage(group.id, "hi")).rejects.toMatchObject(kicked);
    expect(broken(fake)).toEqual([]);
    await expect(api.sendMessage(chat.id, "hi")).rejects.toMatchObject(blocked);
    expect(broken(fake)).toEqual(["wrote again although bot was blocked by the user"]);
    fake.unblocks(chat);
    await api.sendMessage(chat.id, "hi");
  });

  test("a group that became a supergroup tells its new id", async () => {
    const old = fake.group({ id: -77, title: "Small" });
    const { id } = fake.migrates(old, -1_009_999_999_999);
    const upgraded = refusal("group chat was upgraded to a supergroup chat");
    await expect(api.sendMessage(old.id, "hi")).rejects.toMatchObject({
      ...{ ...upgraded, parameters: { migrate_to_chat_id: id } },
    });
    expect(await api.sendMessage(id, "hi")).toMatchObject({ chat: { id, title: "Small" } });
  });

  test("an answer to a message that is gone is refused unless it may go without", async () => {
    const { message_id } = fake.says(chat, ann, "forget it");
    fake.deletes(chat, message_id);
    const gone = refusal("message to be replied not found");
    await expect(api.sendMessage(chat.id, "hi", { reply_parameters: { message_id } })).rejects.toMatchObject(gone);
    const reply_parameters = { message_id, allow_sending_without_reply: true };
    expect(await api.sendMessage(chat.id, "hi", { reply_parameters })).not.toHaveProperty("reply_to_message");
    const kept = fake.says(chat, ann, "keep it");
    const quoting = { message_id: kept.message_id, quote: "not there" };
    await expect(api.sendMessage(chat.id, "hi", { reply_parameters: quoting })).rejects.toMatchObject(refusal("QUOTE"));
  });

  test("only a topic of the forum is a thread", async () => {
    const thread = fake.topic(group, "Plans");
    const other = { message_thread_id: thread };
    expect(await api.sendMessage(group.id, "hi", other)).toMatchObject({ ...other, is_topic_message: true });
    await expect(api.sendMessage(group.id, "hi", { message_thread_id: 1_000 })).rejects.toMatchObject(
      refusal("message thread not found"),
    );
    await expect(api.sendMessage(chat.id, "hi", other)).rejects.toMatchObject(refusal("message thread not found"));
    await expect(api.sendChatAction(group.id, "typing", { message_thread_id: 1_000 })).rejects.toMatchObject(
      refusal("message thread not found"),
    );
  });

  test("callback data of more than 64 bytes is refused", async () => {
    const keyboard = (callback_data: string) => ({
      reply_markup: { inline_keyboard: [[{ text: "x", callback_data }]] },
    });
    await api.sendMessage(chat.id, "hi", keyboard("x".repeat(64)));
    const tooLong = refusal("BUTTON_DATA_INVALID");
    await expect(api.sendMessage(chat.id, "hi", keyboard("é".repeat(33)))).rejects.toMatchObject(tooLong);
    expect(broken(fake)).toHaveLength(1);
  });
});

describe("edits and deletions", () => {
  test("an edit changes what people see; the same text again is refused", async () => {
    const { message_id } = await api.sendMessage(chat.id, "one");
    expect(await api.editMessageText(chat.id, message_id, "two")).toMatchObject({
      text: "two",
      edit_date: expect.any(Number),
    });
    const same = refusal(
      "message is not modified: specified new message content and reply markup are exactly the same",
    );
    await expect(api.editMessageText(chat.id, message_id, " two ")).rejects.toMatchObject(same);
    const reply_markup = { inline_keyboard: [[{ text: "More", callback_data: "more" }]] };
    await api.editMessageText(chat.id, message_id, "two", { reply_markup });
    await api.editMessageText(chat.id, message_id, "two");
    expect(fake.messages(chat)).toMatchObject([{ text: "two", edits: 3, buttons: [] }]);
  });

  test("what is gone or not the bot's own cannot be edited", async () => {
    const { message_id } = fake.says(chat, ann, "mine");
    await expect(api.editMessageText(chat.id, 99, "x")).rejects.toMatchObject(refusal("message to edit not found"));
    await expect(api.editMessageText(chat.id, message_id, "x")).rejects.toMatchObject(
      refusal("message can't be edited"),
    );
    const sent = await api.sendDocument(chat.id, new InputFile(Buffer.from("a"), "a.txt"));
    const noText = refusal("there is no text in the message to edit");
    await expect(api.editMessageText(chat.id, sent.message_id, "x")).rejects.toMatchObject(noText);
  });

  test("a deleted message is not seen; the second deletion, another's in a group and an old one are refused", async () => {
    const { message_id } = await api.sendMessage(chat.id, "one");
    await api.deleteMessage(chat.id, message_id);
    expect(fake.messages(chat)).toEqual([]);
    await expect(api.deleteMessage(chat.id, message_id)).rejects.toMatchObject(refusal("message to delete not found"));
    const hers = fake.says(group, ann, "hers");
    await expect(api.deleteMessage(group.id, hers.message_id)).rejects.toMatchObject(refusal("can't be deleted"));
    const old = await api.sendMessage(chat.id, "old");
    await clock.advance(48 * 3600_000 + 1000);
    await expect(api.deleteMessage(chat.id, old.message_id)).rejects.toMatchObject(refusal("can't be deleted"));
  });
});

describe("drafts, actions, reactions", () => {
  test("a draft is seen for 30 seconds or until the message comes", async () => {
    await api.sendMessageDraft(chat.id, 7, "", { can_stop: true });
    await api.sendMessageDraft(chat.id, 7, "one", { can_stop: true });
    expect(fake.draft(chat)).toMatchObject({ draftId: 7, text: "one", canStop: true });
    await clock.advance(30_000);
    expect(fake.draft(chat)).toBeUndefined();
    await api.sendMessageDraft(chat.id, 7, "one two");
    await api.sendMessage(chat.id, "one two three");
    expect(fake.draft(chat)).toBeUndefined();
    expect(fake.drafts(chat).map(({ text }) => text)).toEqual(["", "one", "one two"]);
    expect(fake.messages(chat)).toHaveLength(1);
  });

  test("a draft outside a private chat, with the number 0 or too long is refused", async () => {
    await expect(api.sendMessageDraft(group.id, 7, "x")).rejects.toMatchObject(refusal("only to private chats"));
    await expect(api.sendMessageDraft(chat.id, 0, "x")).rejects.toMatchObject(refusal("must be non-zero"));
    await expect(api.sendMessageDraft(chat.id, 7, "x".repeat(4097))).rejects.toMatchObject(
      refusal("message is too long"),
    );
    expect(broken(fake)).toHaveLength(3);
  });

  test("an unknown action and an unknown reaction are refused", async () => {
    const { message_id } = fake.says(chat, ann, "hi");
    expect(await api.sendChatAction(chat.id, "typing")).toBe(true);
    expect(await raw(fake, "sendChatAction", { chat_id: chat.id, action: "thinking" })).toMatchObject({ status: 400 });
    await api.setMessageReaction(chat.id, message_id, [{ type: "emoji", emoji: "👀" }]);
    expect(fake.messages(chat)).toMatchObject([{ reactions: ["👀"] }]);
    const wrong = { chat_id: chat.id, message_id, reaction: [{ type: "emoji", emoji: "🧦" }] };
    expect(await raw(fake, "setMessageReaction", wrong)).toMatchObject({
      description: "Bad Request: REACTION_INVALID",
    });
    const eyes = { type: "emoji", emoji: "👀" } as const;
    await expect(api.setMessageReaction(chat.id, message_id, [eyes, eyes])).rejects.toMatchObject(refusal("TOO_MANY"));
    await expect(api.setMessageReaction(chat.id, 99, [eyes])).rejects.toMatchObject(
      refusal("message to react not found"),
    );
  });
});

describe("files", () => {
  test("a document arrives with its name, content and caption, and can be sent again by its id", async () => {
    const file = new InputFile(Buffer.from("let x = 1;\n"), "code.ts");
    const sent = await api.sendDocument(chat.id, file, { caption: "<b>the</b> code", parse_mode: "HTML" });
    expect(sent).toMatchObject({ caption: "the code", caption_entities: [{ type: "bold" }] });
    const again = await api.sendDocument(chat.id, sent.document.file_id);
    expect(again.document).toEqual(sent.document);
    const seen = fake
      .messages(chat)
      .map(({ text, document }) => [text, document?.name, `${document?.content && Buffer.from(document.content)}`]);
    expect(seen).toEqual([
      ["the code", "code.ts", "let x = 1;\n"],
      ["", "code.ts", "let x = 1;\n"],
    ]);
  });

  test("an empty file, none, an unknown one and a long caption are refused", async () => {
    const send = (document: InputFile | string, caption = "") => api.sendDocument(chat.id, document, { caption });
    await expect(send(new InputFile(Buffer.from(""), "a.txt"))).rejects.toMatchObject(
      refusal("file must be non-empty"),
    );
    await expect(send("nothing")).rejects.toMatchObject(refusal("wrong file identifier"));
    const file = new InputFile(Buffer.from("a"), "a.txt");
    await expect(send(file, "x".repeat(1025))).rejects.toMatchObject(refusal("message caption is too long"));
    expect(await raw(fake, "sendDocument", { chat_id: chat.id })).toMatchObject({ status: 400 });
    await send(file, "x".repeat(1024));
    expect(broken(fake)).toHaveLength(4);
  });

  test("what people send can be downloaded up to 20 MB with the right token", async () => {
    const bytes = Buffer.from("%PDF");
    const { document } = fake.says(chat, ann, "read", { document: { bytes, name: "a.pdf", type: "application/pdf" } });
    const file = await api.getFile(document!.file_id);
    const download = (token: string, path = file.file_path) => fetch(`${fake.address}/file/bot${token}/${path}`);
    expect(await (await download(fake.token)).text()).toBe("%PDF");
    expect((await download("1:wrong")).status).toBe(401);
    expect((await download(fake.token, "documents/none")).status).toBe(404);
    await expect(api.getFile("nothing")).rejects.toMatchObject(refusal("wrong file_id"));
    const size = 20 * 1024 * 1024 + 1;
    const large = fake.says(chat, ann, "", { document: { bytes, name: "b.bin", size } });
    await expect(api.getFile(large.document!.file_id)).rejects.toMatchObject(refusal("file is too big"));
  });
});

describe("commands and chats", () => {
  test("commands are kept for each scope; a wrong name, description or number is refused", async () => {
    const stop = { command: "stop", description: "Stop the turn" };
    await api.setMyCommands([stop]);
    await api.setMyCommands([], { scope: { type: "all_group_chats" } });
    expect(await api.getMyCommands()).toEqual([stop]);
    expect(await api.getMyCommands({ scope: { type: "all_group_chats" } })).toEqual([]);
    const many = Array.from({ length: 101 }, (_, index) => ({ ...stop, command: `c${index}` }));
    for (const wrong of [
      ...[[{ ...stop, command: "Stop" }], [{ ...stop, command: "x".repeat(33) }], [{ ...stop, description: "" }]],
      ...[[{ ...stop, description: "x".repeat(257) }], many, [stop, stop]],
    ]) {
      await expect(api.setMyCommands(wrong)).rejects.toMatchObject(refusal("BOT_COMMAND"));
    }
    await expect(api.setMyCommands([stop], { scope: { type: "friends" } as never })).rejects.toMatchObject(
      refusal("scope"),
    );
    expect(broken(fake)).toHaveLength(7);
  });

  test("chats and members are told as far as they exist", async () => {
    expect(await api.getChat(group.id)).toMatchObject({ type: "supergroup", title: "The forum", is_forum: true });
    await expect(api.getChat(99)).rejects.toMatchObject(refusal("chat not found"));
    fake.user({ id: 6, name: "Bob" });
    expect(await api.getChatMember(group.id, ann.id)).toMatchObject({ status: "member", user: { id: ann.id } });
    expect(await api.getChatMember(group.id, 6)).toMatchObject({ status: "left" });
    await expect(api.getChatMember(group.id, 7)).rejects.toMatchObject(refusal("user not found"));
  });

  test("a pressed button is answered once", async () => {
    const reply_markup = { inline_keyboard: [[{ text: "Yes", callback_data: "yes" }]] };
    await api.sendMessage(chat.id, "sure?", { reply_markup });
    const id = fake.presses(ann, chat, fake.messages(chat)[0]!, "Yes");
    expect(await api.getUpdates()).toMatchObject([
      { callback_query: { id, data: "yes", from: ann, message: { text: "sure?" } } },
    ]);
    expect(await api.answerCallbackQuery(id, { text: "ok" })).toBe(true);
    const old = refusal("query is too old and response timeout expired or query ID is invalid");
    await expect(api.answerCallbackQuery(id)).rejects.toMatchObject(old);
    await expect(api.answerCallbackQuery("1", { text: "x".repeat(201) })).rejects.toMatchObject(
      refusal("MESSAGE_TOO_LONG"),
    );
  });
});
