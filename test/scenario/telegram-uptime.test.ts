import { once } from "node:events";
import { createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { cli, writeSettings } from "../support/host.ts";
import type { CallRecord } from "../support/telegram/journal.ts";
import { raw } from "../support/telegram/raw.ts";
import { startTelegram } from "../support/telegram/telegram.ts";
import {
  account,
  allSettled,
  botTexts,
  channelBecomes,
  channelState,
  expectNoSecret,
  pageTexts,
  startStage,
  type TelegramStage,
  talk,
  talker,
  written,
} from "./telegram-stage.ts";
import { ask, eventually, type Json } from "./world.ts";

// Staying up: what the host does when Telegram or the network fails it, and across its own restarts.

async function readyz({ world }: TelegramStage): Promise<Json> {
  const response = await fetch(`${world.host().address}/readyz`);
  return { status: response.status, ...((await response.json()) as object) };
}

async function restart({ world }: TelegramStage): Promise<void> {
  await allSettled(world);
  await world.host().kill();
  await world.start();
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const found = probe.address();
  probe.close();
  await once(probe, "close");
  return typeof found === "object" && found !== null ? found.port : 0;
}

describe.concurrent("receiving", () => {
  test("another program that receives for the bot is named in status; once it is gone the host is back by itself, with nothing lost (Q10.2)", async () => {
    await using stage = await startStage();
    const { telegram, owner, world } = stage;
    await channelBecomes(world, "up");
    await telegram.until(() => telegram.openPolls === 1);
    await raw(telegram, "getUpdates", { timeout: 0, offset: 1 });
    const { reason } = await channelBecomes(world, "retrying");
    expect(reason).toMatch(/^another program receives for this bot .*409/);
    expect((await readyz(stage)).stalledChannels).toEqual(["telegram:default"]);
    const shown = await cli(world.home, ["status"]);
    expect(shown.stdout).toMatch(/telegram:default\s+retrying .*another program receives for this bot/);
    // The rest of the host does not notice.
    expect((await ask(world.host(), "hello")).text).toBe("echo: hello");
    telegram.says(owner.chat, owner.user, "written meanwhile");
    await telegram.until(() => botTexts(telegram, owner.chat)[0] === "echo: written meanwhile", 60_000);
    await channelBecomes(world, "up");
    expect((await readyz(stage)).stalledChannels).toEqual([]);
  });

  test("a refused token stops this channel alone; the owner reads it on the page, and a valid one brings it back with what waited (Q10.2)", async () => {
    await using stage = await startStage();
    const { telegram, owner, world, settings } = stage;
    await telegram.until(() => telegram.openPolls === 1);
    const old = telegram.token;
    telegram.revokeToken();
    const { reason } = await channelBecomes(world, "stopped");
    expect(reason).toContain("401");
    const said = await eventually("the page tells it", async () =>
      (await pageTexts(world)).find((text) => text?.includes("telegram:default has stopped")),
    );
    expect(said).toContain("Telegram refused the token");
    expect((await readyz(stage)).stalledChannels).toEqual(["telegram:default"]);
    expect((await ask(world.host(), "does the page live?")).text).toBe("echo: does the page live?");
    const calls = telegram.calls.length;
    telegram.says(owner.chat, owner.user, "anybody?");
    expect((await ask(world.host(), "still?")).text).toBe("echo: still?");
    expect(telegram.calls).toHaveLength(calls);
    await allSettled(world);
    await world.host().kill();
    await writeSettings(world.home, settings());
    await world.start();
    expect((await written(telegram, owner.chat, 1))[0]?.text).toBe("echo: anybody?");
    await expectNoSecret(stage);
    expect(world.host().stderr()).not.toContain(old.slice(old.indexOf(":") + 1));
  });

  test("a network that goes away during the long poll: status says so, and what was written meanwhile is answered (Q10.1)", async () => {
    await using stage = await startStage();
    const { telegram, owner, world } = stage;
    await talk(telegram, owner, "before");
    await telegram.until(() => telegram.openPolls === 1);
    await telegram.offline(true);
    expect((await channelBecomes(world, "retrying")).reason).toMatch(/could not connect|connection failed/);
    telegram.says(owner.chat, owner.user, "meanwhile");
    await telegram.offline(false);
    expect((await written(telegram, owner.chat, 2))[1]?.text).toBe("echo: meanwhile");
    await channelBecomes(world, "up");
    expect(stage.model.asked).toEqual(["before", "meanwhile"]);
    expect(world.host().stderr()).not.toMatch(/unhandled/i);
    expect(telegram.violations).toEqual([]);
  });

  test("a poll that hangs is given up after stallMs and receiving goes on, with nothing lost (Q10.1)", async () => {
    await using stage = await startStage({ telegram: "stallMs: 5000" });
    const { telegram, owner } = stage;
    await telegram.until(() => telegram.openPolls === 1);
    telegram.hang("getUpdates");
    telegram.says(owner.chat, owner.user, "wakes the open poll");
    await telegram.until(() => telegram.callsOf("getUpdates").at(-1)?.outcome?.kind === "hung");
    telegram.says(owner.chat, owner.user, "into the silence");
    await telegram.until(() => botTexts(telegram, owner.chat).length === 2);
    expect(botTexts(telegram, owner.chat)).toEqual(["echo: wakes the open poll", "echo: into the silence"]);
  });

  test("answers that are none of Telegram's do not stop it (Q10.1)", async () => {
    await using stage = await startStage();
    const { telegram, owner } = stage;
    telegram.badGateway("getUpdates");
    telegram.garbage("getUpdates");
    telegram.failNext("getUpdates", { status: 500, description: "Internal Server Error" });
    expect((await talk(telegram, owner, "hello")).text).toBe("echo: hello");
    expect((await talk(telegram, owner, "again")).text).toBe("echo: again");
    expect(telegram.violations).toEqual([]);
  });
});

describe.concurrent("across restarts", () => {
  test("polling goes on at the committed offset; what Telegram brings twice makes no second command (G2, Q6.1, Q1.2)", async () => {
    await using stage = await startStage();
    const { telegram, model, owner } = stage;
    // The batch is committed, its confirmation never comes through: Telegram brings it again.
    telegram.says(owner.chat, owner.user, "first");
    await written(telegram, owner.chat, 1);
    await telegram.until(() => telegram.openPolls === 1);
    telegram.hang("getUpdates");
    telegram.says(owner.chat, owner.user, "second");
    await written(telegram, owner.chat, 2);
    expect(telegram.pending.length).toBeGreaterThan(0);
    await restart(stage);
    telegram.says(owner.chat, owner.user, "third");
    await written(telegram, owner.chat, 3);
    const polls = telegram.callsOf("getUpdates").map(({ params }) => Number(params["offset"] ?? 0));
    expect(polls).toEqual([...polls].sort((a, b) => a - b));
    // Ids that begin anew are no reason to take an old message again, or to lose a new one.
    await telegram.until(() => telegram.pending.length === 0);
    telegram.nextUpdateId(5);
    telegram.says(owner.chat, owner.user, "after a quiet week");
    await written(telegram, owner.chat, 4);
    expect(model.asked).toEqual(["first", "second", "third", "after a quiet week"]);
    expect(telegram.violations).toEqual([]);
  });

  test("the token of another bot loses nothing: its updates have lower ids and are taken, and the old bot's are not repeated (G3)", async () => {
    await using stage = await startStage();
    const { telegram, model, owner, world } = stage;
    await talk(telegram, owner, "to the old bot");
    await telegram.until(() => telegram.pending.length === 0);
    await using next = await startTelegram({ botId: 7_099_999_999, botUsername: "next_laneway_bot" });
    next.nextUpdateId(17);
    const there = talker(next, owner.user.id, "Ann");
    next.says(there.chat, there.user, "waits for the new bot");
    await allSettled(world);
    await world.host().kill();
    telegram.says(owner.chat, owner.user, "waits for the old bot");
    await writeSettings(world.home, stage.settings().replace(account(telegram), account(next)));
    await world.start();
    expect((await written(next, there.chat, 1))[0]?.text).toBe("echo: waits for the new bot");
    await allSettled(world);
    await world.host().kill();
    await writeSettings(world.home, stage.settings());
    await world.start();
    expect((await written(telegram, owner.chat, 2))[1]?.text).toBe("echo: waits for the old bot");
    expect(model.asked).toEqual(["to the old bot", "waits for the new bot", "waits for the old bot"]);
    await expectNoSecret(stage);
    await expectNoSecret({ telegram: next, world });
  });
});

describe.concurrent("by webhook", () => {
  test("updates are taken with the secret only, and one that comes again makes nothing twice (NET-R5, G2)", async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/channels/telegram/webhook`;
    await using stage = await startStage({ port, telegram: `mode: webhook, webhookUrl: "${url}"` });
    const { telegram, model, owner, world } = stage;
    expect((await talk(telegram, owner, "by webhook")).text).toBe("echo: by webhook");
    expect(telegram.callsOf("getUpdates")).toEqual([]);
    const { params } = telegram.callsOf("setWebhook").at(-1) as CallRecord;
    const secret = String(params["secret_token"]);
    expect(secret).toMatch(/^[A-Za-z0-9_-]{32,256}$/);
    const message = { message_id: 900, date: 1, chat: { id: owner.chat.id, type: "private" }, from: owner.user };
    const update = { update_id: 999_000, message: { ...message, text: "by hand" } };
    const post = (headers: Record<string, string>, body: unknown = update) =>
      fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }).then(({ status }) => status);
    const right = { "x-telegram-bot-api-secret-token": secret };
    expect(await post({})).toBe(401);
    expect(await post({ "x-telegram-bot-api-secret-token": "wrong" })).toBe(401);
    expect(await post({ authorization: `Bearer ${secret}` })).toBe(401);
    expect(await post(right, "{")).toBe(400);
    expect(model.asked).toEqual(["by webhook"]);
    expect([await post(right), await post(right), await post(right)]).toEqual([200, 200, 200]);
    await written(telegram, owner.chat, 2);
    await restart(stage);
    await channelBecomes(world, "up");
    expect(await post(right)).toBe(200);
    expect((await talk(telegram, owner, "last")).text).toBe("echo: last");
    expect(model.asked).toEqual(["by webhook", "by hand", "last"]);
    expect(await channelState(world)).toMatchObject({ state: "up", lastEventAt: expect.any(String) });
    await expectNoSecret(stage);
  });

  test("what comes while the host is away is brought by Telegram later (G1)", async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/channels/telegram/webhook`;
    await using stage = await startStage({ port, telegram: `mode: webhook, webhookUrl: "${url}"` });
    const { telegram, owner, world } = stage;
    await talk(telegram, owner, "before");
    await allSettled(world);
    await world.host().kill();
    telegram.says(owner.chat, owner.user, "while away");
    await world.start();
    expect((await written(telegram, owner.chat, 2))[1]?.text).toBe("echo: while away");
  });
});
