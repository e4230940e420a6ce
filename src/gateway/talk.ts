// Owns: putting the push channels together with the outbox and the queue, and their order at start and stop.
import { type Delivery, makeDelivery } from "../agents/delivery.ts";
import { makeSender, type Sender } from "../agents/outgoing.ts";
import type { ChannelRun } from "../channels/port.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Events } from "../kernel/events.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Background, Log } from "../kernel/log.ts";
import type { Settings } from "../settings/schema.ts";
import type { Store } from "../store/store.ts";
import type { AcceptDeps } from "./accept.ts";
import {
  type ChannelStatus,
  type Channels,
  channelStatus,
  outletOf,
  ownerRoutes,
  renderFor,
  startChannels,
} from "./channels.ts";
import type { HttpDeps } from "./http.ts";
import { makeIntake } from "./intake.ts";
import { showTurns } from "./showing.ts";

interface TalkDeps {
  readonly channels: Channels;
  readonly settings: Settings;
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly events: Events;
  readonly background: Background;
}

export interface Talk {
  readonly delivery: Delivery;
  readonly status: () => readonly ChannelStatus[];
  readonly webhook: HttpDeps["telegramWebhook"];
  /** After recovery: what is in the outbox goes out, then the channels receive. */
  start(accept: AcceptDeps): Promise<void>;
  /** Nothing more comes in. */
  stopReceiving(): Promise<void>;
  /** After the drain: what is being sent ends. */
  stop(): Promise<void>;
}

export function makeTalk(deps: TalkDeps): Talk {
  const { channels, settings, store, clock, log, background } = deps;
  const showing = showTurns(deps);
  // The delivery tells the sender of parts, the sender tells the owner by the delivery: one of them comes second.
  const later: { sender?: Sender } = {};
  const delivery = makeDelivery({
    clock,
    render: renderFor(channels),
    ownerRoutes: ownerRoutes(settings.owner, channels),
    send: (placed) => later.sender?.offer(placed),
  });
  const sender = makeSender({
    ...{ store, clock, log, background, delivery },
    outlet: (route) => outletOf(channels, route),
    quiet: showing.quiet,
  });
  later.sender = sender;
  let run: ChannelRun = { stopReceiving: async () => {}, stop: async () => {} };
  return {
    delivery,
    status: () => channelStatus(channels),
    webhook: (account, secret, body) => channels.get(`telegram:${account}`)?.webhook?.(secret, body),
    async start(accept) {
      // Drafts and typing are calls too.
      for (const [account, ms] of await sender.start()) channels.get(account)?.channel.hold(ms);
      const intake = { ...accept, log, ids: deps.ids, delivery, owners: settings.owner, agent: "main" };
      run = startChannels({
        ...{ channels, store, delivery, background },
        reached: sender.retryNow,
        intake: ({ channel, settings: rules }) =>
          makeIntake({ channel: channel.name, account: channel.account, rules: () => rules }, intake),
      });
    },
    stopReceiving: () => run.stopReceiving(),
    async stop() {
      // Side by side: the sender may wait for what a channel shows, and the channel cuts that off after its own short grace.
      await Promise.all([sender.stop(), run.stop()]);
      await showing.stop();
    },
  };
}
