import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Room } from "../support/telegram/world.ts";
import {
  botMessages,
  botTexts,
  expectNoSecret,
  startStage,
  type Talker,
  type TelegramStage,
  written,
} from "./telegram-stage.ts";
import type { Json } from "./world.ts";

// Groups: where the bot answers whom. One host.

const OPEN = -1_001_000_000_001;
const LISTED = -1_001_000_000_003;
const BASIC = -4_005;
/** Groups where every message is taken, one for each test. */
const QUIET = [-1_001_000_000_010, -1_001_000_000_011, -1_001_000_000_012, -1_001_000_000_013] as const;
const FORUMS = [-1_001_000_000_020, -1_001_000_000_021] as const;
const MEMBER = 7_200_000_001;

const EVERY = [...QUIET, ...FORUMS].map((id) => `"${id}": { mention: false }`).join(", ");
const GROUPS = `groups: {
  "${OPEN}": { mention: true }, "${BASIC}": { mention: true }, ${EVERY},
  "${LISTED}": { mention: false, allow: [ "${MEMBER}" ] } }`;

let stage: TelegramStage;
let member: Talker;
let other: Talker;

beforeAll(async () => {
  stage = await startStage({ telegram: GROUPS });
  member = { user: stage.telegram.user({ id: MEMBER, name: "Mem" }), chat: undefined as never };
  other = stage.stranger("Otto");
});
afterAll(async () => {
  if (stage === undefined) return;
  await expectNoSecret(stage);
  expect(stage.telegram.violations).toEqual([]);
  await stage[Symbol.asyncDispose]();
});

function groupOf(id: number): Room {
  return stage.telegram.group({ id, title: `Group ${-id}`, members: [member.user, other.user] });
}

/** The first topic of a forum is the general one; it is made with the forum. */
function forumOf(id: number): Room {
  const forum = stage.telegram.group({ id, title: "Forum", forum: true, members: [member.user, other.user] });
  stage.telegram.topic(forum, "General");
  return forum;
}

/** Waits until everything that was said has been taken in: what was to be ignored was ignored by then. */
async function allTaken(): Promise<void> {
  await stage.telegram.until(() => stage.telegram.pending.length === 0);
}

async function commandsOf(chat: Room): Promise<Json[]> {
  const { body } = await stage.world.host().api("queue.list", { all: true, limit: 200 });
  return body.commands.filter((command: Json) => JSON.stringify(command).includes(String(chat.id)));
}

describe("a group that the settings do not name", () => {
  test("gets no word, no typing and no model call, even for the owner (G22, Q14.2)", async () => {
    const { telegram, model, owner } = stage;
    const group = groupOf(-1_001_000_000_099);
    const before = telegram.callsOf("sendChatAction").length;
    telegram.says(group, owner.user, "@laneway_test_bot who are you?");
    telegram.says(group, other.user, "/help");
    await allTaken();
    expect(botTexts(telegram, group)).toEqual([]);
    expect(telegram.callsOf("sendChatAction")).toHaveLength(before);
    expect(model.asked).toEqual([]);
    expect(await commandsOf(group)).toEqual([]);
  });
});

describe("mentions (Q11.3)", () => {
  test("where they are wanted, only a mention, a reply to the bot or a command is taken, without the words that say so", async () => {
    const { telegram, model } = stage;
    const group = groupOf(OPEN);
    telegram.says(group, member.user, "nothing for the bot");
    telegram.says(group, member.user, "/help@some_other_bot");
    const asked = telegram.says(group, member.user, "@laneway_test_bot, how late is it?");
    const [answer] = await written(telegram, group, 1);
    expect(answer).toMatchObject({ text: "echo: [Mem] how late is it?", replyTo: asked.message_id });
    telegram.says(group, member.user, "and tomorrow?", { replyTo: answer?.id ?? 0 });
    const [, second] = await written(telegram, group, 2);
    expect(second?.text).toContain("[Mem] and tomorrow?");
    telegram.says(group, member.user, "/whoami@laneway_test_bot");
    const [, , third] = await written(telegram, group, 3);
    expect(third?.text).toContain("as guest");
    expect(model.asked.join("\n")).not.toContain("nothing for the bot");
  });

  test("where they are not wanted, every message is taken; a basic group is a group like others", async () => {
    const { telegram } = stage;
    const group = groupOf(QUIET[0]);
    telegram.says(group, member.user, "just so");
    expect((await written(telegram, group, 1))[0]?.text).toBe("echo: [Mem] just so");
    const basic = groupOf(BASIC);
    telegram.says(basic, member.user, "not this");
    telegram.says(basic, member.user, "this @laneway_test_bot please");
    expect((await written(telegram, basic, 1))[0]?.text).toBe("echo: [Mem] this please");
  });

  test("a group gets no draft: it sees the whole answer once", async () => {
    const { telegram } = stage;
    expect(telegram.callsOf("sendMessageDraft").filter(({ params }) => Number(params["chat_id"]) < 0)).toEqual([]);
  });
});

describe("who may", () => {
  test("a list of a group admits only those on it, and the owner; being let in elsewhere says nothing (ID-R3)", async () => {
    const { telegram, model, owner } = stage;
    const group = groupOf(LISTED);
    telegram.says(group, other.user, "let me in");
    telegram.says(group, other.user, "/status");
    telegram.says(group, member.user, "I am on the list");
    expect((await written(telegram, group, 1))[0]?.text).toBe("echo: [Mem] I am on the list");
    telegram.says(group, owner.user, "/whoami");
    expect((await written(telegram, group, 2))[1]?.text).toContain("as owner");
    expect(model.asked.join("\n")).not.toContain("let me in");
    expect(await commandsOf(group)).toHaveLength(2);
  });

  test("the settings' list of a group does not let its people write privately (ID-R3)", async () => {
    const { telegram, model } = stage;
    const chat = telegram.privateChat(member.user);
    telegram.says(chat, member.user, "and privately?");
    const [line] = await written(telegram, chat, 1);
    expect(line?.text).toContain("laneway pairing approve");
    expect(model.asked.join("\n")).not.toContain("and privately?");
  });

  test("anonymous administrators, channels and other bots are nobody, even where all may write (ID-3, ID-R6)", async () => {
    const { telegram, model, owner } = stage;
    const group = groupOf(QUIET[1]);
    telegram.says(group, owner.user, "as the group itself", { senderChat: group });
    telegram.says(group, owner.user, "as my channel", { senderChat: { id: -1_001_999, title: "News" } });
    const bot = telegram.user({ id: 7_300_000_001, name: "Robo", username: "robo_bot", bot: true });
    telegram.says(group, bot, "as a bot");
    telegram.says(group, other.user, "as a person");
    expect((await written(telegram, group, 1))[0]?.text).toBe("echo: [Otto] as a person");
    expect(model.asked.filter((words) => /as (the group|my channel|a bot)/.test(words))).toEqual([]);
  });

  test("an edit counts as its editor's: one by an anonymous administrator changes nothing (ID-3)", async () => {
    const { telegram } = stage;
    const group = groupOf(QUIET[2]);
    const said = telegram.says(group, other.user, "as the group", { senderChat: group });
    telegram.says(group, other.user, "as the group, edited", { edit: said.message_id });
    await allTaken();
    expect(botTexts(telegram, group)).toEqual([]);
  });

  test("a guest may not choose the model, stop others' work or everything; the owner may (Q14.2, ID-R5)", async () => {
    const { telegram, model, owner } = stage;
    const group = groupOf(QUIET[3]);
    const slow = model.slow("[Ann] the owner's own work");
    telegram.says(group, owner.user, "the owner's own work");
    await slow.asked;
    telegram.says(group, other.user, "/model model");
    expect((await written(telegram, group, 1))[0]?.text).toBe("Guests cannot choose the model.");
    telegram.says(group, other.user, "/stop");
    expect((await written(telegram, group, 2))[1]?.text).toBe("Nothing runs here.");
    telegram.says(group, other.user, "/stop all");
    expect((await written(telegram, group, 3))[2]?.text).toContain("as the owner");
    telegram.says(group, owner.user, "/stop");
    expect((await written(telegram, group, 4))[3]?.text).toBe("Stopped: 1 running.");
    await slow.gone;
  });
});

describe("topics of a forum", () => {
  test("are conversations of their own, at work side by side, each answered in its place (Q11.1)", async () => {
    const { telegram, model, owner } = stage;
    const forum = forumOf(FORUMS[0]);
    const [fish, birds] = [telegram.topic(forum, "Fish"), telegram.topic(forum, "Birds")];
    const slow = model.slow("[Ann] about fish");
    telegram.says(forum, owner.user, "about fish", { thread: fish });
    await slow.asked;
    telegram.says(forum, owner.user, "about birds", { thread: birds });
    telegram.says(forum, owner.user, "about all");
    await written(telegram, forum, 2);
    await slow.says("fish swim");
    await slow.ends();
    await written(telegram, forum, 3);
    const places = Object.fromEntries(botMessages(telegram, forum).map(({ text, thread }) => [text, thread]));
    expect(places).toEqual({ "echo: [Ann] about birds": birds, "echo: [Ann] about all": undefined, "fish swim": fish });
    telegram.says(forum, owner.user, "what did I say?", { thread: birds });
    await written(telegram, forum, 4);
    const heard = model.heard.find((messages) => messages.at(-1)?.words === "[Ann] what did I say?");
    expect(heard?.map(({ words }) => words).slice(1)).toEqual([
      "[Ann] about birds",
      "echo: [Ann] about birds",
      "[Ann] what did I say?",
    ]);
  });

  test("/new in one of them leaves the others as they are", async () => {
    const { telegram, model, owner } = stage;
    const forum = forumOf(FORUMS[1]);
    const [one, two] = [telegram.topic(forum, "One"), telegram.topic(forum, "Two")];
    telegram.says(forum, owner.user, "first here", { thread: one });
    telegram.says(forum, owner.user, "second here", { thread: two });
    await written(telegram, forum, 2);
    telegram.says(forum, owner.user, "/new", { thread: one });
    await written(telegram, forum, 3);
    telegram.says(forum, owner.user, "again in one", { thread: one });
    telegram.says(forum, owner.user, "again in two", { thread: two });
    await written(telegram, forum, 5);
    const heardBy = (words: string) =>
      JSON.stringify(model.heard.find((all) => all.at(-1)?.words === `[Ann] ${words}`));
    expect(heardBy("again in one")).not.toContain("first here");
    expect(heardBy("again in two")).toContain("second here");
  });
});
