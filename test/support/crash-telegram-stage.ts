// Owns: what a Telegram crash run plays on: a home with settings, the stand-in for Telegram with its chats and moods, the model,
// and people who go on writing whatever becomes of the host.

import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Sent } from "./crash-checks.ts";
import { type Client, webClient } from "./crash-clients.ts";
import { messageText, startTalkingModel, type TalkingModel } from "./crash-telegram-model.ts";
import { settingsFor, writeSettings } from "./host.ts";
import type { Seeded } from "./seeded.ts";
import type { CallRecord } from "./telegram/journal.ts";
import { type FakeTelegram, startTelegram } from "./telegram/telegram.ts";
import type { Room } from "./telegram/world.ts";

export type Policy = "resend" | "hold";

/** A chat on Telegram, and what its person has written there so far. */
export interface Chat {
  readonly name: string;
  readonly room: Room;
  readonly key: string;
  readonly said: string[];
  say(isLong: boolean): void;
}

export interface TelegramScene {
  readonly home: string;
  readonly policy: Policy;
  readonly telegram: FakeTelegram;
  readonly model: TalkingModel;
  /** The owner's comes first. */
  readonly chats: readonly Chat[];
  readonly web: Client;
  /** What was written in the web chat. */
  readonly webSent: readonly Sent[];
  /** Writes the next message there when the one before is accepted; resolves when it is accepted itself. */
  writeByWeb(): Promise<void>;
  stop(): Promise<void>;
}

const OWNER = 5_000_000_001;
const FRIEND = 5_000_000_002;
const MEMBER = 5_000_000_003;
const GROUP = -1_001_234_567_890;
const SEND_METHODS: ReadonlySet<string> = new Set(["sendMessage", "sendDocument"]);

/** Whether the call shows something that may not be shown twice. */
export function isSend({ method }: CallRecord): boolean {
  return SEND_METHODS.has(method);
}

/** A call that Telegram has received and not answered yet. */
export function openSends({ telegram }: Pick<TelegramScene, "telegram">): CallRecord[] {
  return telegram.calls.filter((call) => isSend(call) && call.outcome === undefined);
}

const SLOW_SHARE = 0.1;

export async function startScene(home: string, policy: Policy, random: Seeded): Promise<TelegramScene> {
  const telegram = await startTelegram();
  telegram.latency((method) =>
    SEND_METHODS.has(method)
      ? { beforeMs: random.between(0, 30), afterMs: random.between(5, 60) }
      : { beforeMs: 0, afterMs: random.between(0, 10) },
  );
  // Now and then so slow that typing and a draft are shown.
  const model = await startTalkingModel(() =>
    random.next() < SLOW_SHARE ? random.between(200, 600) : random.between(2, 25),
  );
  const chats = chatsOn(telegram);
  const port = await freePort();
  await writeSettings(home, settingsOn(telegram, model, policy, port));
  const web = webClient({ home, address: `http://127.0.0.1:${port}` }, "web");
  const webSent: Sent[] = [];
  let accepted = Promise.resolve();
  return {
    ...{ home, policy, telegram, model, chats, web, webSent },
    writeByWeb() {
      accepted = accepted.then(() => {
        const text = messageText("web", webSent.length + 1, false);
        webSent.push({ text, client: web });
        return web.send(text);
      });
      return accepted;
    },
    async stop() {
      await web.stop();
      await model.stop();
      await telegram.stop();
    },
  };
}

/** The owner's own chat, the private chat of somebody who is let in, and a group. */
function chatsOn(telegram: FakeTelegram): Chat[] {
  const [owner, friend, member] = [
    telegram.user({ id: OWNER, name: "Ann" }),
    telegram.user({ id: FRIEND, name: "Ben" }),
    telegram.user({ id: MEMBER, name: "Cem" }),
  ];
  const group = telegram.group({ id: GROUP, title: "Garden", members: [owner, member] });
  const chat = (name: string, room: Room, person: typeof owner): Chat => {
    const said: string[] = [];
    return {
      ...{ name, room, said, key: `telegram:default:${room.id}` },
      say(isLong) {
        const text = messageText(name, said.length + 1, isLong);
        said.push(text);
        telegram.says(room, person, text);
      },
    };
  };
  return [
    chat("owner", telegram.privateChat(owner), owner),
    chat("friend", telegram.privateChat(friend), friend),
    chat("group", group, member),
  ];
}

function settingsOn({ token, address }: FakeTelegram, model: TalkingModel, policy: Policy, port: number): string {
  const groups = `{ "${GROUP}": { mention: false, allow: [ "${MEMBER}" ] } }`;
  const channel = `token: "${token}", apiRoot: "${address}", ambiguous: ${policy}, allow: [ "${FRIEND}" ], groups: ${groups}`;
  const more = `turns: { graceMs: 500 }\nowner: [ "telegram:${OWNER}" ]\nchannels: { telegram: { ${channel} } }`;
  return settingsFor(model.baseUrl, more, port);
}

/** One for the whole run: the web client must find the host again after each death. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

/** Messages of one chat that wait for their answers: more would fill the queue and Telegram's pace, and test only these. */
const MOST_OPEN = 3;
/** Within it a life's messages come: some before the host is up, some while it works. */
const WRITING_MS = 1_500;
const LONG_SHARE = 0.25;

/** What people write during one life of the host. @param open how many messages of a chat wait for their answers */
export async function write(scene: TelegramScene, random: Seeded, open: (chat: Chat) => number): Promise<void> {
  const byWeb = async (atMs: number) => {
    await delay(atMs);
    await scene.writeByWeb();
  };
  const byTelegram = async (chat: Chat, atMs: number, isLong: boolean) => {
    await delay(atMs);
    chat.say(isLong);
  };
  const writing = scene.chats.flatMap((chat) => {
    const most = Math.min(2, MOST_OPEN - open(chat));
    return Array.from({ length: Math.max(0, most) }, () =>
      byTelegram(chat, random.between(0, WRITING_MS), random.next() < LONG_SHARE),
    );
  });
  await Promise.all([...writing, byWeb(random.between(0, WRITING_MS))]);
}

const DROP_SHARE = 0.15;
const FLOOD_SHARE = 0.15;

/** Now and then something goes wrong with a send by itself. */
export function trouble({ telegram }: TelegramScene, random: Seeded): void {
  if (random.next() < DROP_SHARE) telegram.dropAfterAccept("sendMessage");
  if (random.next() < FLOOD_SHARE) {
    const retry_after = random.pick([1, 2]);
    const description = `Too Many Requests: retry after ${retry_after}`;
    telegram.failNext("sendMessage", { status: 429, description, parameters: { retry_after } });
  }
}
