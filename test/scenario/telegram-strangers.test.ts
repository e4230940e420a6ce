import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cli } from "../support/host.ts";
import { type FakeTelegram, startTelegram } from "../support/telegram/telegram.ts";
import {
  account,
  botMessages,
  botTexts,
  expectNoSecret,
  startStage,
  type Talker,
  type TelegramStage,
  talk,
  talker,
  written,
} from "./telegram-stage.ts";
import { eventually, type Json } from "./world.ts";

// People whom the settings do not name, with four bots on one host: pairing is the default one's, the others take only those on
// a list, everybody, or nobody.

const LISTED = 7_400_000_001;
const ALSO_LISTED = 7_400_000_002;

let stage: TelegramStage;
let bots: Record<"listing" | "open" | "off", FakeTelegram>;

beforeAll(async () => {
  const start = (botId: number) => startTelegram({ botId, botUsername: `bot_${botId}_bot` });
  bots = { listing: await start(7_042_000_001), open: await start(7_042_000_002), off: await start(7_042_000_003) };
  const accounts = [
    `listing: ${account(bots.listing, `dm: allowlist, allow: [ "${LISTED}", "${ALSO_LISTED}" ]`)}`,
    `open: ${account(bots.open, "dm: open")}`,
    `off: ${account(bots.off, `dm: off, allow: [ "${LISTED}" ]`)}`,
  ];
  stage = await startStage({ telegram: `accounts: { ${accounts.join(", ")} }` });
});
afterAll(async () => {
  if (stage === undefined) return;
  for (const telegram of [stage.telegram, ...Object.values(bots)]) {
    await expectNoSecret({ telegram, world: stage.world });
    expect(telegram.violations).toEqual([]);
  }
  await stage[Symbol.asyncDispose]();
  await Promise.all(Object.values(bots).map((bot) => bot.stop()));
});

async function laneway(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  return cli(stage.world.home, args);
}

/** Writes to the bot, and waits until the host has taken it in. */
async function says({ user, chat }: Talker, text: string, telegram = stage.telegram): Promise<void> {
  telegram.says(chat, user, text);
  await telegram.until(() => telegram.pending.length === 0);
}

async function codeFor(person: Talker): Promise<string> {
  const [line] = await written(stage.telegram, person.chat, 1);
  return /^([A-Za-z0-9_-]{6,})$/m.exec(line?.text ?? "")?.[1] ?? "";
}

async function commandCount(): Promise<number> {
  const { body } = await stage.world.host().api("queue.list", { all: true, limit: 1_000 });
  return body.commands.length;
}

describe("pairing", () => {
  test("a stranger gets one line with a code an hour, whatever he sends, and costs no model call and no command (ID-1, ID-4, G22)", async () => {
    const { telegram, model } = stage;
    const eve = stage.stranger("Eve");
    const before = await commandCount();
    await says(eve, "run rm -rf / please");
    const [line] = await written(telegram, eve.chat, 1);
    expect(line?.text).toContain("laneway pairing approve");
    expect(await codeFor(eve)).not.toBe("");
    for (const text of ["/status", "/stop all", "/model model", "again", "let me in"]) await says(eve, text);
    telegram.says(eve.chat, eve.user, "", { voice: { bytes: new Uint8Array(10) } });
    telegram.says(eve.chat, eve.user, "edited", { edit: 1 });
    await telegram.until(() => telegram.pending.length === 0);
    expect(botMessages(telegram, eve.chat)).toHaveLength(1);
    expect(await commandCount()).toBe(before);
    expect(model.asked).toEqual([]);
    expect(telegram.callsOf("sendChatAction")).toEqual([]);
    expect(telegram.callsOf("getFile")).toEqual([]);
  });

  test("the owner lists who asked and lets him in by the code; from then on he is answered, as a user (ID-R2)", async () => {
    const { telegram } = stage;
    const bob = stage.stranger("Bob\u202e\u001b[31m");
    await says(bob, "hello?");
    const code = await codeFor(bob);
    const listed = await laneway("pairing", "list");
    expect(listed).toMatchObject({ code: 0, stderr: "" });
    expect(listed.stdout).toMatch(new RegExp(`telegram:default:${bob.user.id}\\s+pending\\s+Bob`));
    expect(listed.stdout).not.toContain(code);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a name must not bring them to the terminal
    expect(listed.stdout).not.toMatch(/[\u202e\u001b]/);
    const approved = await laneway("pairing", "approve", code);
    expect(approved).toMatchObject({ code: 0 });
    expect(approved.stdout).toContain("may write now");
    expect((await talk(telegram, bob, "hello!")).text).toBe("echo: hello!");
    expect((await talk(telegram, bob, "/whoami")).text).toContain("as user");
    // A code works once.
    expect((await laneway("pairing", "approve", code)).code).not.toBe(0);
  });

  test("a code that is none is refused and lets nobody in (ID-2)", async () => {
    const { telegram, model } = stage;
    const cara = stage.stranger("Cara");
    await says(cara, "hello?");
    const wrong = await laneway("pairing", "approve", "wrong-code");
    expect(wrong.code).not.toBe(0);
    expect(wrong.stderr).toContain("no request has this code");
    await says(cara, "still nothing?");
    expect(botMessages(telegram, cara.chat)).toHaveLength(1);
    expect(model.asked).not.toContain("still nothing?");
  });

  test("whoever is denied is shut out at once, also when he had been let in (ID-R4)", async () => {
    const { telegram, model } = stage;
    const dan = stage.stranger("Dan");
    await says(dan, "hello?");
    await laneway("pairing", "approve", await codeFor(dan));
    expect((await talk(telegram, dan, "I am in")).text).toBe("echo: I am in");
    const denied = await laneway("pairing", "deny", `telegram:default:${dan.user.id}`);
    expect(denied).toMatchObject({ code: 0 });
    await says(dan, "and now?");
    expect(botTexts(telegram, dan.chat)).toHaveLength(2);
    expect(model.asked).not.toContain("and now?");
  });

  test("a code is bound to its account: with another bot the one who was let in is a stranger still (ID-R3)", async () => {
    const fay = stage.stranger("Fay");
    await says(fay, "hello?");
    await laneway("pairing", "approve", await codeFor(fay));
    const there = talker(bots.listing, fay.user.id, "Fay");
    await says(there, "and here?", bots.listing);
    expect(botTexts(bots.listing, there.chat)).toEqual([]);
    expect(stage.model.asked).not.toContain("and here?");
  });

  test("what was decided outlives the host, and so does the hour of silence (ID-2, ID-4)", async () => {
    const { telegram, world } = stage;
    const [gus, hal] = [stage.stranger("Gus"), stage.stranger("Hal")];
    await says(gus, "hello?");
    await says(hal, "hello?");
    await laneway("pairing", "approve", await codeFor(gus));
    await world.host().kill();
    await world.start();
    expect((await talk(telegram, gus, "still in?")).text).toBe("echo: still in?");
    await says(hal, "hello??");
    expect(botMessages(telegram, hal.chat)).toHaveLength(1);
    expect(await laneway("pairing", "approve", await codeFor(hal))).toMatchObject({ code: 0 });
    expect((await talk(telegram, hal, "in by the old code")).text).toBe("echo: in by the old code");
  });
});

describe("several bots", () => {
  test("each answers its own chats, with its own rules: a list, everybody as a guest, nobody but the owner", async () => {
    const { listing, open, off } = bots;
    const listed = talker(listing, LISTED, "Lis");
    expect((await talk(listing, listed, "on the list")).text).toBe("echo: on the list");
    const unlisted = talker(listing, 7_400_000_008, "Not");
    await says(unlisted, "not on the list", listing);
    expect(botTexts(listing, unlisted.chat)).toEqual([]);

    const anyone = talker(open, 7_400_000_009, "Any");
    expect((await talk(open, anyone, "who am I?")).text).toBe("echo: who am I?");
    expect((await talk(open, anyone, "/whoami")).text).toContain("as guest");

    const same = talker(off, LISTED, "Lis");
    await says(same, "here too?", off);
    expect(botTexts(off, same.chat)).toEqual([]);
    const owner = talker(off, stage.owner.user.id, "Ann");
    expect((await talk(off, owner, "/whoami")).text).toContain("as owner");
    expect(stage.model.asked).not.toContain("here too?");
    expect(stage.model.asked).not.toContain("not on the list");
  });

  test("the same chat id with two bots is two conversations (Q11.1)", async () => {
    const { open, listing } = bots;
    const [here, there] = [talker(open, ALSO_LISTED, "Al"), talker(listing, ALSO_LISTED, "Al")];
    await talk(open, here, "my colour is red");
    await talk(listing, there, "which colour?");
    expect(JSON.stringify(stage.model.heard.at(-1))).not.toContain("red");
  });

  test("one with a refused token stops alone; the owner is told by another way, the others go on (Q10.2)", async () => {
    const { world, telegram, owner } = stage;
    bots.off.revokeToken();
    await eventually("the account is stopped", async () => {
      const { body } = await world.host().api("status");
      return body.channels.find(({ name }: Json) => name === "telegram:off")?.state === "stopped";
    });
    expect((await talk(telegram, owner, "still there?")).text).toBe("echo: still there?");
    const listed = talker(bots.open, 7_400_000_011, "Kit");
    expect((await talk(bots.open, listed, "you too?")).text).toBe("echo: you too?");
  });
});
