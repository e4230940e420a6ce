import { expect, test } from "vitest";
import { botTexts, OWNER_ID, startStage } from "./telegram-stage.ts";

test("the owner writes privately and is answered once, in reply to his message; the chat commands work there too", async () => {
  await using stage = await startStage();
  const { telegram } = stage;
  const owner = telegram.user({ id: OWNER_ID, name: "Ann" });
  const chat = telegram.privateChat(owner);
  const asked = telegram.says(chat, owner, "hello **there**", {});
  await telegram.until(() => botTexts(telegram, chat).length === 1);
  const [answer] = telegram.messages(chat).filter((message) => message.byBot);
  expect(answer).toMatchObject({ text: "echo: hello there", replyTo: asked.message_id });
  telegram.says(chat, owner, "/whoami", {});
  await telegram.until(() => botTexts(telegram, chat).length === 2);
  expect(botTexts(telegram, chat)[1]).toContain("as owner");
  expect(telegram.violations).toEqual([]);
});
