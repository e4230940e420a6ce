// Owns: a strict stand-in for Telegram's Bot API server, over real HTTP. It refuses what the platform refuses and writes down
// which rules the client broke; it never lets pass what it does not know.
import type { Update, User } from "grammy/types";
import { type Clock, systemClock } from "../../../src/kernel/clock.ts";
import { answer } from "./exchange.ts";
import { type FaultVerbs, makeFaults } from "./faults.ts";
import { makeFlood } from "./flood.ts";
import { type CallRecord, type Journal, makeJournal } from "./journal.ts";
import { openLine } from "./line.ts";
import { botMethods } from "./methods-bot.ts";
import { fileMethods } from "./methods-files.ts";
import { messageMethods } from "./methods-messages.ts";
import { makePeople, type People } from "./people.ts";
import { makeUpdates } from "./updates.ts";
import { makeWebhook, type WebhookOptions } from "./webhook.ts";
import { Refused } from "./wire.ts";
import { type Draft, makeWorld, type Room, type SeenMessage } from "./world.ts";

export interface TelegramOptions extends Partial<WebhookOptions> {
  readonly token?: string;
  readonly botId?: number;
  readonly botUsername?: string;
  /** Enforces the numbers of messages per chat, group and second. A 429 that a test forces has its window in any case. */
  readonly limits?: boolean;
  readonly clock?: Clock;
}

export interface FakeTelegram
  extends People,
    FaultVerbs,
    Pick<Journal, "calls" | "violations" | "until">,
    AsyncDisposable {
  /** The root for the client: `http://127.0.0.1:<port>`. */
  readonly address: string;
  readonly token: string;
  readonly bot: User;
  /** How many calls of getUpdates wait: 0 or 1. */
  readonly openPolls: number;
  /** The updates that the bot has not confirmed. */
  readonly pending: readonly Update[];
  /** The calls of one method, in order. */
  callsOf(method: string): readonly CallRecord[];
  /** What people see in a chat now, in order. */
  messages(chat: Room | number): readonly SeenMessage[];
  /** Every draft that was sent to a chat, in order. */
  drafts(chat: Room | number): readonly Draft[];
  /** The draft that people see now, if any. */
  draft(chat: Room | number): Draft | undefined;
  /** The id of the next update; later ones count on from there. */
  nextUpdateId(id: number): void;
  /** Refuses connections and breaks the open ones; `false` ends it. All state stays. */
  offline(on: boolean): Promise<void>;
  /** Makes the token invalid and returns the new one. */
  revokeToken(): string;
  stop(): Promise<void>;
}

/** core.telegram.org/bots/api#sendmessagedraft: "a temporary 30-second preview". */
const DRAFT_MS = 30_000;

/** Starts the platform for one bot on a free port. */
export async function startTelegram(options: TelegramOptions = {}): Promise<FakeTelegram> {
  const { clock = systemClock(), botId = 7_042_424_242, botUsername = "laneway_test_bot", limits = false } = options;
  const { insecureWebhooks = false, webhookRetryMs = 1000 } = options;
  let token = options.token ?? `${botId}:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0`;
  const bot: User = { id: botId, is_bot: true, first_name: "Laneway", username: botUsername };

  const journal = makeJournal(clock);
  const world = makeWorld(clock, bot);
  const updates = makeUpdates({ clock, journal });
  const webhook = makeWebhook({ clock, journal, updates, insecureWebhooks, webhookRetryMs });
  const platform = { clock, journal, world, updates, webhook, queries: new Map() };
  const faults = makeFaults();
  const flood = makeFlood(clock, limits);
  const methods = { ...botMethods(platform), ...messageMethods(platform), ...fileMethods(platform) };
  const exchange = { clock, journal, faults, flood, world, methods, token: () => token };
  const line = await openLine((request, response) => void answer(exchange, request, response));

  const stop = async () => {
    await webhook.stop();
    await line.close();
  };
  return {
    ...makePeople(platform),
    ...faults.verbs,
    ...{ calls: journal.calls, violations: journal.violations, until: journal.until, bot, stop },
    address: `http://127.0.0.1:${line.port}`,
    get token() {
      return token;
    },
    get openPolls() {
      return updates.openPolls();
    },
    get pending() {
      return updates.pending();
    },
    callsOf: (method) => journal.calls.filter((call) => call.method === method),
    messages: (chat) => world.seen(chat),
    drafts: (chat) => world.roomOf(chat).drafts,
    draft: (chat) =>
      world.roomOf(chat).drafts.findLast(({ gone, shownMs }) => !gone && clock.mono() - shownMs < DRAFT_MS),
    nextUpdateId: (id) => updates.nextId(id),
    offline: (on) => (on ? line.close() : line.open()),
    revokeToken() {
      token = `${botId}:AAR${journal.calls.length}evokedAndNewCH1vGWJxfSeofSAs0K5`;
      updates.endPoll(new Refused(401, "Unauthorized"));
      return token;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
