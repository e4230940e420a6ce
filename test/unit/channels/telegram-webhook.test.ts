import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { makeTelegram } from "../../../src/channels/telegram/telegram.ts";
import { makeBackground } from "../../../src/kernel/log.ts";
import { fakeClock } from "../../support/clock.ts";
import { broken } from "../../support/telegram/raw.ts";
import { startTelegram } from "../../support/telegram/telegram.ts";
import { recordingHost, recordingLog, STALL_MS, until } from "./telegram-rig.ts";

const SECRET = "a_secret-of_the_webhook";

/** A channel in webhook mode behind a real HTTP server, as the gateway puts it. */
async function hooked() {
  const clock = fakeClock();
  const telegram = await startTelegram({ clock, insecureWebhooks: true, webhookRetryMs: 1_000 });
  onTestFinished(() => telegram.stop());
  const host = recordingHost();
  const { log, lines } = recordingLog();
  const statuses: number[] = [];
  const server = createServer(async (request, response) => {
    const header = request.headers["x-telegram-bot-api-secret-token"];
    const { status } = await channel.webhook!(typeof header === "string" ? header : undefined, await buffer(request));
    statuses.push(status);
    response.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/channels/telegram/webhook`;
  const channel = makeTelegram({
    settings: {
      token: telegram.token,
      apiRoot: telegram.address,
      stallMs: STALL_MS,
      mode: "webhook",
      url,
      secret: SECRET,
    },
    account: "main",
    clock,
    ids: { random: () => "random", fraction: () => 0.5 },
    log,
    background: makeBackground(log),
  });
  const ada = telegram.user({ id: 101, name: "Ada" });
  const chat = telegram.privateChat(ada);
  const start = () => {
    const started = channel.start(host);
    onTestFinished(() => started.stop());
    return started;
  };
  const post = (secret: string | undefined, body: string | Uint8Array) =>
    channel.webhook!(secret, typeof body === "string" ? Buffer.from(body) : body);
  return {
    telegram,
    channel,
    host,
    lines,
    statuses,
    ada,
    chat,
    start,
    post,
    until: (c: () => unknown) => until(clock, c),
  };
}

test("an update by webhook is confirmed only after the host has kept it, and repeated until then (G1)", async () => {
  const { telegram, host, channel, statuses, start, until, ada, chat } = await hooked();
  let refusals = 0;
  host.gate = async () => {
    if (++refusals === 1) throw new Error("disk full");
  };
  start();
  await until(() => channel.state().state === "up");
  telegram.says(chat, ada, "one");
  telegram.says(chat, ada, "two");
  await until(() => telegram.pending.length === 0);
  expect(statuses).toEqual([503, 200, 200]);
  expect(host.events().map(({ text }) => text)).toEqual(["one", "two"]);
  expect(Number(host.positions.get(String(telegram.bot.id)))).toBeGreaterThan(1);
  expect(telegram.callsOf("getUpdates")).toEqual([]);
  expect(broken(telegram)).toEqual([]);
});

test("a post without the secret, or with another, is refused and nothing is kept", async () => {
  const { host, channel, start, post, until } = await hooked();
  start();
  await until(() => channel.state().state === "up");
  const body = JSON.stringify({
    update_id: 1,
    message: { message_id: 1, date: 1, chat: { id: 1, type: "private" }, text: "x" },
  });
  for (const secret of [undefined, "", `${SECRET}x`, SECRET.slice(1), SECRET.toUpperCase()]) {
    expect(await post(secret, body)).toEqual({ status: 401 });
  }
  expect(host.batches).toEqual([]);
  expect(await post(SECRET, body)).toEqual({ status: 200 });
});

test("bodies that are too large or no JSON are refused; a known kind in a wrong form is kept raw", async () => {
  const { host, channel, start, post, until } = await hooked();
  start();
  await until(() => channel.state().state === "up");
  expect(await post(SECRET, new Uint8Array(1_048_577))).toEqual({ status: 413 });
  expect(await post(SECRET, '{"update_id": 1, "mess')).toEqual({ status: 400 });
  expect(await post(SECRET, '{"update_id": 7, "message": 5}')).toEqual({ status: 200 });
  expect(host.batches).toMatchObject([{ events: [{ raw: expect.stringContaining('"message":5') }], position: "8" }]);
});

test("a repeated update has the same key, so that the host can tell it (G2)", async () => {
  const { host, channel, start, post, until } = await hooked();
  start();
  await until(() => channel.state().state === "up");
  const body = JSON.stringify({
    update_id: 1,
    message: { message_id: 1, date: 1, chat: { id: 1, type: "private" }, text: "x" },
  });
  await Promise.all([post(SECRET, body), post(SECRET, body)]);
  const [first, second] = host.events();
  expect([second?.key, second?.rawHash]).toEqual([first?.key, first?.rawHash]);
});

test("while the channel does not receive, Telegram is told to come again", async () => {
  const { telegram, post, channel, start, until } = await hooked();
  expect(await post(SECRET, '{"update_id":1}')).toEqual({ status: 503 });
  const { stop } = start();
  await until(() => channel.state().state === "up");
  await stop();
  expect(await post(SECRET, '{"update_id":1}')).toEqual({ status: 503 });
  expect(telegram.callsOf("deleteWebhook")).toEqual([]);
});
