// The third-party stand-in for Telegram: grammY gets an update from it and sends a message through it.
import { Api } from "grammy";
import { expect, test } from "vitest";
import { startTelegramTestApi } from "./telegram-test-api.ts";

test("grammY gets what a person wrote and its answer arrives", async () => {
  await using peer = await startTelegramTestApi();
  const token = "7042424242:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0";
  const api = new Api(token, { apiRoot: peer.address });
  await peer.says(token, 11, "/start now");
  const [update] = await api.getUpdates();
  expect(update?.message).toMatchObject({ text: "/start now", chat: { id: 11 }, entities: [{ type: "bot_command" }] });
  const arrived = peer.nextMessage();
  const sent = await api.sendMessage(11, "hello", { reply_parameters: { message_id: update!.message!.message_id } });
  await arrived;
  expect(sent.text).toBe("hello");
  expect(peer.sent()).toMatchObject([{ text: "hello" }]);
});
