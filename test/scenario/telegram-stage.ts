// Owns: a host that talks on the strict stand-in for Telegram, with a model that echoes, and the people who write to it.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { User } from "grammy/types";
import { expect } from "vitest";
import { type FakeTelegram, startTelegram } from "../support/telegram/telegram.ts";
import type { Room, SeenMessage } from "../support/telegram/world.ts";
import { type ChatModel, startChatModel } from "./telegram-model.ts";
import { eventually, type Json, startWorld, type World } from "./world.ts";

const OWNER_ID = 5_000_000_001;
/** Those who may write privately, when the settings of the stage say `FRIENDS`. */
const FRIEND_IDS = Array.from({ length: 40 }, (_, index) => 6_000_000_001 + index);
export const FRIENDS = `allow: ${JSON.stringify(FRIEND_IDS.map(String))}`;

export interface Talker {
  readonly user: User;
  readonly chat: Room;
}

export interface TelegramStage extends AsyncDisposable {
  readonly telegram: FakeTelegram;
  readonly model: ChatModel;
  readonly world: World;
  /** Known to Telegram, with a private chat. */
  readonly owner: Talker;
  /** The settings of the host, with the token that is right now. */
  settings(): string;
  /** The next one of those who may write. */
  friend(): Talker;
  /** Somebody new, with a private chat. */
  stranger(name?: string): Talker;
}

interface StageOptions {
  /** Keys of `channels.telegram` besides the token, as YAML flow entries. */
  readonly telegram?: string;
  /** Further settings, as YAML. */
  readonly more?: string;
  /** Keys of the backend besides address and model, as YAML flow entries. */
  readonly backend?: string;
  readonly port?: number;
  readonly webhookRetryMs?: number;
}

/** The owner is user 5000000001; nobody else is let in unless the settings say so. */
export async function startStage(options: StageOptions = {}): Promise<TelegramStage> {
  const { webhookRetryMs = 200 } = options;
  const telegram = await startTelegram({ limits: false, insecureWebhooks: true, webhookRetryMs });
  const model = await startChatModel();
  const owner = talker(telegram, OWNER_ID, "Ann");
  let friends = 0;
  let strangers = 0;
  const world = await startWorld(stageSettings(telegram, model, options));
  return {
    ...{ telegram, model, world, owner },
    settings: () => stageSettings(telegram, model, options),
    friend() {
      const id = FRIEND_IDS[friends];
      if (id === undefined) throw new Error("the stage has no more friends");
      friends += 1;
      return talker(telegram, id, `Friend ${friends}`);
    },
    stranger(name = "Eve") {
      strangers += 1;
      return talker(telegram, 7_100_000_000 + strangers, name);
    },
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
      await model.stop();
      await telegram.stop();
    },
  };
}

function stageSettings(telegram: FakeTelegram, model: ChatModel, options: StageOptions): string {
  const channel = account(telegram, options.telegram);
  const backend = `{ kind: openai, model: fake, baseUrl: "${model.baseUrl}"${options.backend === undefined ? "" : `, ${options.backend}`} }`;
  return `gateway: { port: ${options.port ?? 0} }
backends: { model: ${backend} }
owner: [ "telegram:${OWNER_ID}" ]
channels: { telegram: ${channel} }
${options.more ?? ""}
`;
}

/** The settings of one bot, as a YAML flow mapping. */
export function account(telegram: FakeTelegram, more?: string): string {
  return `{ token: "${telegram.token}", apiRoot: "${telegram.address}"${more === undefined ? "" : `, ${more}`} }`;
}

export function talker(telegram: FakeTelegram, id: number, name: string): Talker {
  const user = telegram.user({ id, name });
  return { user, chat: telegram.privateChat(user) };
}

/** What the bot has written in a chat, oldest first. */
export function botMessages(telegram: FakeTelegram, chat: Room): SeenMessage[] {
  return telegram.messages(chat).filter((message) => message.byBot);
}

/** The texts of it. */
export function botTexts(telegram: FakeTelegram, chat: Room): string[] {
  return botMessages(telegram, chat).map((message) => message.text);
}

/** Waits until the bot has written so many messages in a chat, and gives them. */
export async function written(telegram: FakeTelegram, chat: Room, count: number): Promise<SeenMessage[]> {
  await telegram.until(() => botMessages(telegram, chat).length >= count);
  const found = botMessages(telegram, chat);
  expect(found.map(({ text }) => text)).toHaveLength(count);
  return found;
}

/** Says it in a private chat and waits for the next message of the bot there. */
export async function talk(telegram: FakeTelegram, { chat, user }: Talker, text: string): Promise<SeenMessage> {
  const before = botMessages(telegram, chat).length;
  telegram.says(chat, user, text);
  const all = await written(telegram, chat, before + 1);
  return all[before] as SeenMessage;
}

/** The channel as the host's status tells it. */
export async function channelState(world: World, name = "telegram:default"): Promise<Json> {
  const { body } = await world.host().api("status");
  return body.channels.find((channel: Json) => channel.name === name);
}

export async function channelBecomes(world: World, state: string, name = "telegram:default"): Promise<Json> {
  return eventually(`${name} is ${state}`, async () => {
    const found = await channelState(world, name);
    return found?.state === state && found;
  });
}

export async function outbox(world: World, all = false): Promise<Json[]> {
  return (await world.host().api("outbox.list", { all })).body.parts;
}

/** Nothing for Telegram waits, is being sent or is in doubt, so that a kill now leaves nothing open. */
export async function allSettled(world: World): Promise<void> {
  await eventually("nothing for Telegram is open", async () =>
    (await outbox(world)).every(({ chat }: Json) => !String(chat).startsWith("telegram")),
  );
}

/** What the owner reads on the page. */
export async function pageTexts(world: World): Promise<string[]> {
  const { body } = await world.host().api("history", { chat: "main" });
  return body.items.map((item: Json) => item.text);
}

/** The token must be nowhere but in the settings and their copy: not in a file of the home, not in what the host printed, in no message (SEC-R1). */
export async function expectNoSecret({ telegram, world }: Pick<TelegramStage, "telegram" | "world">): Promise<void> {
  const secret = telegram.token.slice(telegram.token.indexOf(":") + 1);
  const holds = (bytes: Buffer | string) => bytes.includes(secret);
  expect(holds(world.host().stderr())).toBe(false);
  expect(telegram.calls.filter(({ params }) => holds(JSON.stringify(params)))).toEqual([]);
  const files = await filesOf(world.home);
  expect(files.some((file) => file.endsWith("laneway.db"))).toBe(true);
  for (const file of files.filter((name) => !name.endsWith(".yaml"))) {
    expect([file, holds(await readFile(file))]).toEqual([file, false]);
  }
}

async function filesOf(home: string): Promise<string[]> {
  const entries = await readdir(home, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}
