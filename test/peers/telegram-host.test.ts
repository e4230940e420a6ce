// A whole host against the third-party stand-in for Telegram, which somebody else wrote after the platform's documentation. It
// confirms nothing and knows no drafts, so only what it can witness is asked of it.
import { expect, test } from "vitest";
import { startChatModel } from "../scenario/telegram-model.ts";
import { eventually, startWorld } from "../scenario/world.ts";
import { startTelegramTestApi } from "./telegram-test-api.ts";

const TOKEN = "7042424242:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0";
const OWNER_ID = 5_000_000_001;

test("a message goes in by polling and its answer comes out once; a chat command is answered, and a stranger told how to be let in", async () => {
  await using peer = await startTelegramTestApi();
  const model = await startChatModel();
  await using world = await startWorld(`gateway: { port: 0 }
backends: { model: { kind: openai, model: fake, baseUrl: "${model.baseUrl}" } }
owner: [ "telegram:${OWNER_ID}" ]
channels: { telegram: { token: "${TOKEN}", apiRoot: "${peer.address}" } }
`);
  const sent = (count: number) =>
    eventually(`${count} messages of the bot`, () => (peer.sent().length >= count ? [...peer.sent()] : undefined));
  try {
    await peer.says(TOKEN, OWNER_ID, "hello **there**");
    const [answer] = await sent(1);
    expect(answer).toMatchObject({ chat_id: String(OWNER_ID), text: "echo: hello there" });
    await peer.says(TOKEN, OWNER_ID, "/whoami");
    expect((await sent(2))[1]?.["text"]).toContain("as owner");
    await peer.says(TOKEN, 11, "who are you?");
    const [, , line] = await sent(3);
    expect(line).toMatchObject({ chat_id: "11", text: expect.stringContaining("laneway pairing approve") });
    expect(model.asked).toEqual(["hello **there**"]);
    const { body } = await world.host().api("status");
    expect(body.channels).toContainEqual(expect.objectContaining({ name: "telegram:default" }));
  } finally {
    await model.stop();
  }
});
