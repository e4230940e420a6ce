// Owns: the Telegram channel of one account, put together from its parts, and its life from start to stop.
// It knows nothing of sessions, roles or rows: what comes in goes to the host, what the host gives goes out.
import type { Clock } from "../../kernel/clock.ts";
import { Aborted } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Background, Log } from "../../kernel/log.ts";
import type { Channel, ChannelHost, ChannelState } from "../port.ts";
import { makeAccount } from "./account.ts";
import { makeClient } from "./client.ts";
import { type Command, registerCommands } from "./commands.ts";
import { download } from "./download.ts";
import { type Health, makeHealth } from "./health.ts";
import { openMessage } from "./message-preview.ts";
import { makeDrafts } from "./preview.ts";
import { type Receiving, receive } from "./receive.ts";
import { renderTelegram } from "./render.ts";
import { send } from "./send.ts";
import type { TelegramSettings } from "./settings.ts";
import type { Taker } from "./take.ts";
import { showTyping } from "./typing.ts";
import { makeWebhook, type Webhook } from "./webhook.ts";

export interface TelegramDeps {
  readonly settings: TelegramSettings;
  readonly account: string;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly background: Background;
  /** Ends everything, as the stop of `start` does. */
  readonly signal?: AbortSignal | undefined;
}

export interface TelegramChannel extends Channel {
  /** Undefined in polling mode. */
  readonly webhook: Webhook | undefined;
}

/** A stop ends within 2 s; what is being sent may use most of that. */
const LAST_SENDS_MS = 1_500;
const PRESS_MS = 10_000;
/** Said for a send when the token was refused: a person must act first. */
const STOPPED_RETRY_MS = 60_000;

/** Nothing is sent or asked before `start`, `send` or another verb is called. It may be started again after a stop. */
export function makeTelegram(deps: TelegramDeps): TelegramChannel {
  const { settings, clock, ids, log, background } = deps;
  const account = makeAccount({ ...settings, clock });
  const pollClient = makeClient({ ...settings, clock });
  const drafts = makeDrafts({ account, clock });
  let life = lifeUnder(deps.signal);
  let health: Health | undefined;
  let taker: Taker | undefined;
  let registering = new AbortController();
  let commands: readonly Command[] | undefined;

  const register = () => {
    registering.abort();
    if (commands === undefined || taker === undefined) return;
    registering = new AbortController();
    const signal = AbortSignal.any([registering.signal, life.receiving.signal]);
    background("telegram.commands", untilStopped(registerCommands({ account, clock, ids, log }, commands, signal)));
  };

  const start = (host: ChannelHost) => {
    if (life.receiving.signal.aborted && deps.signal?.aborted !== true) life = lifeUnder(deps.signal);
    const mine = life;
    const { signal } = mine.receiving;
    const current = makeHealth({ clock, ids, log, account: deps.account, changed: host.changed });
    health = current;
    const receiving: Receiving = {
      ...{ settings, clock, health: current, client: pollClient, hold: account.hold },
      known: (bot) => {
        taker = { host, bot, log, answerPress: (id) => background("telegram.press", answerPress(id, signal)) };
        register();
        return taker;
      },
    };
    const running = untilStopped(receive(receiving, signal));
    background("telegram.receive", running);
    const stopReceiving = async () => {
      taker = undefined;
      mine.receiving.abort();
      await running;
    };
    const stop = async () => {
      await stopReceiving();
      const stopTimer = clock.after(LAST_SENDS_MS, () => mine.sending.abort());
      await Promise.all([pollClient.idle(), account.rest()]);
      stopTimer();
      mine.sending.abort();
      pollClient.renew();
    };
    return { stopReceiving, stop };
  };

  const answerPress = (id: string, signal: AbortSignal) =>
    account.now((api, apiSignal) => api.answerCallbackQuery({ callback_query_id: id }, apiSignal), {
      limitMs: PRESS_MS,
      signal,
    });

  const state = (): ChannelState => health?.state() ?? { state: "starting" };
  return {
    name: "telegram",
    account: deps.account,
    start,
    state,
    render: renderTelegram,
    async send(part, signal, begin) {
      const now = state();
      if (now.state === "stopped") {
        return { kind: "later", afterMs: STOPPED_RETRY_MS, wholeAccount: true, reason: now.reason };
      }
      return send(account, part, AbortSignal.any([signal, life.sending.signal]), begin);
    },
    hold: account.hold,
    typing: (chat, thread) => showTyping({ account, clock, background, signal: life.receiving.signal }, chat, thread),
    preview(place, keep) {
      const outer = life.receiving.signal;
      if (place.chatKind === "private" && !place.asMessage && place.ref === undefined) return drafts.open(place, outer);
      return openMessage({ account, clock, outer, cut: life.sending.signal }, place, keep);
    },
    download: (ref, maxBytes, signal) =>
      download(
        { account, clock, ...settings },
        { ref, maxBytes, signal: AbortSignal.any([signal, life.receiving.signal]) },
      ),
    announceCommands(announced) {
      commands = announced;
      register();
    },
    webhook:
      settings.mode === "webhook"
        ? makeWebhook({ secret: settings.secret, log, taker: () => taker, taken: () => health?.event() })
        : undefined,
  };
}

interface Life {
  /** Everything but sends. */
  readonly receiving: AbortController;
  readonly sending: AbortController;
}

function lifeUnder(signal: AbortSignal | undefined): Life {
  const life = { receiving: new AbortController(), sending: new AbortController() };
  const end = () => {
    life.receiving.abort();
    life.sending.abort();
  };
  if (signal?.aborted === true) end();
  else signal?.addEventListener("abort", end, { once: true });
  return life;
}

/** Being stopped is how these end. */
async function untilStopped(running: Promise<void>): Promise<void> {
  try {
    await running;
  } catch (thrown) {
    if (!(thrown instanceof Aborted)) throw thrown;
  }
}
