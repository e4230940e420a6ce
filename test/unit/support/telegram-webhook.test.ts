// Proves the webhook of the fake of Telegram's Bot API: what may be set, and how updates are delivered to it.
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { Api } from "grammy";
import type { Update } from "grammy/types";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type FakeClock, fakeClock } from "../../support/clock.ts";
import { broken } from "../../support/telegram/raw.ts";
import { type FakeTelegram, startTelegram } from "../../support/telegram/telegram.ts";
import type { Room } from "../../support/telegram/world.ts";

interface Delivery {
  readonly headers: IncomingHttpHeaders;
  readonly update: Update;
}

let clock: FakeClock;
let fake: FakeTelegram;
let api: Api;
let chat: Room;
let ann: ReturnType<FakeTelegram["user"]>;

beforeEach(async () => {
  clock = fakeClock();
  fake = await startTelegram({ clock, insecureWebhooks: true });
  api = new Api(fake.token, { apiRoot: fake.address });
  ann = fake.user({ id: 1, name: "Ann" });
  chat = fake.privateChat(ann);
});
afterEach(() => fake.stop());

/** An endpoint that answers with these statuses in turn, then with 200. */
async function startEndpoint(statuses: readonly number[] = []) {
  const deliveries: Delivery[] = [];
  const server = createServer(async (request, response) => {
    deliveries.push({ headers: request.headers, update: (await json(request)) as Update });
    response.writeHead(statuses[deliveries.length - 1] ?? 200).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = () => new Promise<void>((resolve) => void server.close(() => resolve()).closeAllConnections());
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    deliveries,
    texts: () => deliveries.map(({ update }) => update.message?.text),
    [Symbol.asyncDispose]: stop,
  };
}

test("updates are delivered one at a time in order with the secret, and forgotten when they were taken", async () => {
  await using endpoint = await startEndpoint();
  fake.says(chat, ann, "waiting");
  await api.setWebhook(endpoint.url, { secret_token: "A-secret_1" });
  fake.says(chat, ann, "new");
  await fake.until(() => fake.pending.length === 0);
  expect(endpoint.texts()).toEqual(["waiting", "new"]);
  expect(endpoint.deliveries[0]?.headers["x-telegram-bot-api-secret-token"]).toBe("A-secret_1");
  expect(await api.getWebhookInfo()).toMatchObject({ url: endpoint.url, pending_update_count: 0, max_connections: 40 });
});

test("an update that was not taken with 2xx is delivered again before the next one", async () => {
  await using endpoint = await startEndpoint([500, 302]);
  await api.setWebhook(endpoint.url);
  for (const text of ["one", "two"]) fake.says(chat, ann, text);
  while (fake.pending.length > 0) await clock.advance(1_000);
  expect(endpoint.texts()).toEqual(["one", "one", "one", "two"]);
  expect(await api.getWebhookInfo()).toMatchObject({ last_error_message: expect.stringContaining("302") });
  expect(endpoint.deliveries[0]?.headers).not.toHaveProperty("x-telegram-bot-api-secret-token");
});

test("with a webhook getUpdates is refused; setting one ends the poll that waits", async () => {
  await using endpoint = await startEndpoint();
  const poll = api.getUpdates({ timeout: 30 });
  await fake.until(() => fake.openPolls);
  await Promise.all([
    expect(poll).rejects.toMatchObject({
      error_code: 409,
      description: expect.stringContaining("terminated by setWebhook"),
    }),
    api.setWebhook(endpoint.url),
  ]);
  const active =
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
  await expect(api.getUpdates()).rejects.toMatchObject({ error_code: 409, description: active });
  expect(broken(fake)).toEqual([active]);
  await api.deleteWebhook();
  fake.says(chat, ann, "hi");
  expect(await api.getUpdates()).toHaveLength(1);
  expect(endpoint.deliveries).toEqual([]);
  await api.deleteWebhook({ drop_pending_updates: true });
  expect(await api.getUpdates()).toEqual([]);
});

test("plain http, other ports, wrong secrets and wrong numbers are refused", async () => {
  await using strict = await startTelegram();
  const strictApi = new Api(strict.token, { apiRoot: strict.address });
  for (const url of ["http://a.example/hook", "https://a.example:9443/hook", "nonsense"]) {
    await expect(strictApi.setWebhook(url)).rejects.toMatchObject({
      error_code: 400,
      description: expect.stringContaining("bad webhook"),
    });
  }
  const url = "https://a.example/hook";
  for (const secret_token of ["with space", "x".repeat(257), "ümlaut"]) {
    await expect(strictApi.setWebhook(url, { secret_token })).rejects.toMatchObject({ error_code: 400 });
  }
  await expect(strictApi.setWebhook(url, { max_connections: 101 })).rejects.toMatchObject({ error_code: 400 });
  expect(strict.violations).toHaveLength(7);
  expect(await strictApi.getWebhookInfo()).toMatchObject({ url: "" });
});
