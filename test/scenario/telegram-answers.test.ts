import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  botMessages,
  botTexts,
  expectNoSecret,
  FRIENDS,
  startStage,
  type TelegramStage,
  talk,
  written,
} from "./telegram-stage.ts";

// Private chats: what people get to see. One host; each test has a person of its own.

let stage: TelegramStage;

beforeAll(async () => {
  stage = await startStage({ telegram: FRIENDS });
});
afterAll(async () => {
  if (stage === undefined) return;
  await expectNoSecret(stage);
  expect(stage.telegram.violations).toEqual([]);
  await stage[Symbol.asyncDispose]();
});

describe.concurrent("an answer", () => {
  test("that is too long for one message comes in parts, in order, only the first in reply, with nothing lost (Q7.1, G5)", async () => {
    const { telegram, model } = stage;
    const { user, chat } = stage.friend();
    const paragraphs = Array.from({ length: 120 }, (_, index) => `Paragraph ${index}. ${"word ".repeat(15).trim()}.`);
    model.answers("tell me all", paragraphs.join("\n\n"));
    const asked = telegram.says(chat, user, "tell me all");
    await telegram.until(() => botTexts(telegram, chat).join("").includes("Paragraph 119."));
    const parts = botMessages(telegram, chat);
    expect(parts.length).toBeGreaterThan(2);
    for (const { text, linkPreview } of parts) {
      expect(text.length).toBeLessThanOrEqual(4_096);
      expect(linkPreview).toEqual({ is_disabled: true });
    }
    expect(parts.map(({ replyTo }) => replyTo)).toEqual([asked.message_id, ...parts.slice(1).map(() => undefined)]);
    expect(parts.flatMap(({ text }) => text.match(/Paragraph \d+/g) ?? [])).toEqual(
      paragraphs.map((_, index) => `Paragraph ${index}`),
    );
  });

  test("with long code brings it as a file, in its place", async () => {
    const { telegram, model } = stage;
    const { user, chat } = stage.friend();
    const code = Array.from({ length: 400 }, (_, index) => `print("line ${index}")`).join("\n");
    model.answers("write code", `Here it is:\n\n\`\`\`python\n${code}\n\`\`\`\n\nThat is all.`);
    telegram.says(chat, user, "write code");
    const [before, file, after] = await written(telegram, chat, 3);
    expect([before?.text, after?.text]).toEqual(["Here it is:", "That is all."]);
    expect(file?.document?.name).toMatch(/\.py$/);
    expect(
      Buffer.from(file?.document?.content ?? [])
        .toString()
        .trimEnd(),
    ).toBe(code);
  });

  test("whose message was taken back comes without a reply to it", async () => {
    const { telegram, model } = stage;
    const { user, chat } = stage.friend();
    const slow = model.slow("I take it back");
    const asked = telegram.says(chat, user, "I take it back");
    await slow.asked;
    telegram.deletes(chat, asked.message_id);
    await slow.says("too late");
    await slow.ends();
    expect((await written(telegram, chat, 1))[0]).toMatchObject({ text: "too late", replyTo: undefined });
  });

  test("without anything that can be seen is told as such", async () => {
    const { telegram, model } = stage;
    const { user, chat } = stage.friend();
    model.answers("say nothing", " \n\u200b ");
    expect((await talk(telegram, { user, chat }, "say nothing")).text).toMatch(/empty/);
  });
});

describe("while the model writes", () => {
  test("a draft grows, typing is shown, and exactly one whole message remains (Q7.3)", async () => {
    const { telegram, model } = stage;
    const { user, chat } = stage.friend();
    const slow = model.slow("tell me slowly");
    const asked = telegram.says(chat, user, "tell me slowly");
    await slow.asked;
    await slow.says("Once upon ");
    await telegram.until(() => telegram.draft(chat)?.text === "Once upon");
    await slow.says("a time");
    await telegram.until(() => telegram.draft(chat)?.text === "Once upon a time");
    expect(telegram.draft(chat)?.canStop).toBe(true);
    expect(botMessages(telegram, chat)).toEqual([]);
    const typing = telegram.callsOf("sendChatAction").filter(({ params }) => Number(params["chat_id"]) === chat.id);
    expect(typing.length).toBeGreaterThan(0);
    await slow.says(", the end.");
    await slow.ends();
    const [answer] = await written(telegram, chat, 1);
    expect(answer).toMatchObject({ text: "Once upon a time, the end.", replyTo: asked.message_id, edits: 0 });
    expect(telegram.draft(chat)).toBeUndefined();
    const shown = telegram.drafts(chat);
    expect(new Set(shown.map(({ draftId }) => draftId)).size).toBe(1);
    for (const [index, draft] of shown.slice(1).entries()) {
      expect(draft.shownMs - (shown[index]?.shownMs ?? 0)).toBeGreaterThan(900);
    }
    // Nothing of the answer comes a second time when the person goes on.
    expect((await talk(telegram, { user, chat }, "thanks")).text).toBe("echo: thanks");
    expect(botTexts(telegram, chat)).toHaveLength(2);
  });

  test("the stop button of the draft ends the turn; its answer never comes (G18, Q9.3)", async () => {
    const { telegram, model } = stage;
    const { user, chat } = stage.friend();
    const slow = model.slow("talk on and on");
    telegram.says(chat, user, "talk on and on");
    await slow.asked;
    await slow.says("Well, ");
    const draft = await telegram.until(() => telegram.draft(chat));
    telegram.stopsDraft(chat, draft.draftId);
    await slow.gone;
    expect((await written(telegram, chat, 1))[0]?.text).toBe("Stopped: 1 running.");
    expect((await talk(telegram, { user, chat }, "hello again")).text).toBe("echo: hello again");
    expect(botTexts(telegram, chat).join("\n")).not.toContain("Well");
    const heard = model.heard.find((all) => all.at(-1)?.words === "hello again")?.map(({ words }) => words);
    expect(heard?.slice(1)).toEqual(["talk on and on", "[Stopped before the answer was complete]", "hello again"]);
  });

  test("an answer that breaks off is begun anew by the second try; the person sees one whole answer (Q5.2)", async () => {
    const { telegram, model } = stage;
    const { user, chat } = stage.friend();
    const slow = model.slow("break off");
    telegram.says(chat, user, "break off");
    await slow.asked;
    await slow.says("The beginning");
    await telegram.until(() => telegram.draft(chat)?.text === "The beginning");
    await slow.breaks();
    const [answer] = await written(telegram, chat, 1);
    expect(answer?.text).toBe("echo: break off");
  });
});

describe("what Telegram refuses", () => {
  test("markup that it cannot read: the same words go once more without it, once (Q7.2, Q1.5)", async () => {
    const { telegram, model } = stage;
    const { user, chat } = stage.friend();
    model.answers("be bold", "I am **bold** and <angry@example.org>");
    const description = "Bad Request: can't parse entities: unsupported something at byte offset 5";
    telegram.failNext("sendMessage", { status: 400, description });
    expect(await talk(telegram, { user, chat }, "be bold")).toMatchObject({
      text: "I am bold and angry@example.org",
      entities: [],
    });
    const sends = telegram.callsOf("sendMessage").filter(({ params }) => Number(params["chat_id"]) === chat.id);
    expect(sends.map(({ params }) => [params["text"], params["entities"] !== undefined])).toEqual([
      ["I am bold and angry@example.org", true],
      ["I am bold and angry@example.org", false],
    ]);
  });

  test("drafts that the server does not know: the answer comes all the same, and they are asked for no more", async () => {
    await using old = await startStage();
    const { telegram, owner, model } = old;
    telegram.failNext("sendMessageDraft", { status: 404, description: "Not Found" });
    const slow = model.slow("first");
    telegram.says(owner.chat, owner.user, "first");
    await slow.asked;
    await slow.says("one");
    await telegram.until(() => telegram.callsOf("sendMessageDraft")[0]?.outcome);
    await slow.ends();
    await written(telegram, owner.chat, 1);
    expect((await talk(telegram, owner, "second")).text).toBe("echo: second");
    expect(telegram.callsOf("sendMessageDraft")).toHaveLength(1);
  });
});
