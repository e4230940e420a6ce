// Owns: the push channels of a host: made from the settings, started and stopped, and what they say of themselves.
// Their modules are heavy and are loaded only when the settings use them.
import type { Delivery } from "../agents/delivery.ts";
import type { Outlet } from "../agents/send-part.ts";
import type { Channel, ChannelRun, ChannelState } from "../channels/port.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Background, Log } from "../kernel/log.ts";
import type { TelegramAccount } from "../settings/channels.ts";
import type { Settings } from "../settings/schema.ts";
import { deriveKey } from "../settings/token.ts";
import type { Route } from "../store/commands.ts";
import type { Store } from "../store/store.ts";
import { chatCommandList } from "./chat-commands.ts";
import type { Intake } from "./intake.ts";

/** One account of a push channel, with what the settings say of it. */
export interface ChannelEntry {
  readonly channel: Channel;
  readonly settings: TelegramAccount;
  /** Takes a webhook call; undefined in polling mode. */
  readonly webhook:
    | ((secret: string | undefined, body: Uint8Array) => Promise<{ readonly status: number }>)
    | undefined;
}

export type Channels = ReadonlyMap<string, ChannelEntry>;

interface ChannelDeps {
  readonly settings: Settings;
  readonly token: string;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly background: Background;
}

/** The account of the token that stands beside `accounts`. */
const DEFAULT_ACCOUNT = "default";

export async function makeChannels(deps: ChannelDeps): Promise<Channels> {
  const { telegram } = deps.settings.channels;
  const found = new Map<string, ChannelEntry>();
  if (telegram === undefined) return found;
  const { makeTelegram } = await import("../channels/telegram/telegram.ts");
  const { accounts, ...first } = telegram;
  for (const [account, settings] of Object.entries({ [DEFAULT_ACCOUNT]: first, ...accounts })) {
    const { clock, ids, log, background } = deps;
    const channel = makeTelegram({
      settings: channelSettings(settings, account, deps.token),
      account,
      clock,
      ids,
      log,
      background,
    });
    found.set(`telegram:${account}`, { channel, settings, webhook: channel.webhook });
  }
  return found;
}

/** The secret of a webhook follows from the host's own token, so that nobody has to invent one (NET-R5). */
function channelSettings(
  { token, apiRoot, stallMs, mode, webhookUrl }: TelegramAccount,
  account: string,
  hostToken: string,
) {
  const base = { token, apiRoot, stallMs };
  if (mode === "polling") return { ...base, mode } as const;
  return { ...base, mode, url: webhookUrl ?? "", secret: webhookSecret(hostToken, account) } as const;
}

function webhookSecret(hostToken: string, account: string): string {
  return Buffer.from(deriveKey(hostToken, `telegram-webhook:${account}`)).toString("base64url");
}

/** The names under which Telegram reaches this host. */
export function webhookHosts({ channels: { telegram } }: Settings): string[] {
  if (telegram === undefined) return [];
  const accounts = [telegram, ...Object.values(telegram.accounts)];
  return accounts.flatMap(({ mode, webhookUrl }) =>
    mode === "webhook" && webhookUrl !== undefined ? [new URL(webhookUrl).host] : [],
  );
}

export function entryOf(channels: Channels, route: Route): ChannelEntry | undefined {
  return channels.get(`${route.channel}:${route.account}`);
}

export function outletOf(channels: Channels, route: Route): Outlet | undefined {
  const entry = entryOf(channels, route);
  if (entry === undefined) return undefined;
  return { ambiguous: entry.settings.ambiguous, send: entry.channel.send };
}

/** Where the owner's own ids are reached, in the order of the settings: a private chat has the id of its person. */
export function ownerRoutes(owners: readonly string[], channels: Channels): Route[] {
  return owners.flatMap((owner) => {
    const [channel = "", id = ""] = owner.split(":");
    const route = { channel, account: DEFAULT_ACCOUNT, chat: id, thread: undefined };
    return entryOf(channels, route) === undefined ? [] : [route];
  });
}

interface RunDeps {
  readonly channels: Channels;
  readonly store: Store;
  readonly intake: (entry: ChannelEntry) => Intake;
  readonly delivery: Delivery;
  /** The channel was not reached for a while and is again. */
  readonly reached: (name: string) => void;
  readonly background: Background;
}

/** Starts to receive on every channel. */
export function startChannels({ channels, store, intake, delivery, reached, background }: RunDeps): ChannelRun {
  const running = [...channels].map(([name, entry]) => {
    const { channel } = entry;
    const take = intake(entry);
    channel.announceCommands(chatCommandList());
    return channel.start({
      position: (identity) => store.read.positions.get(channel.name, identity),
      take,
      changed: (state) => {
        if (state.state === "up") reached(name);
        if (state.state !== "stopped") return;
        const text = `${name} has stopped: ${state.reason}. The rest of the host goes on.`;
        background(
          "channel.stopped",
          store.write("notice", (tx) => delivery.tellOwner(tx, text, channel.name)).then(delivery.send),
        );
      },
    });
  });
  return {
    async stopReceiving() {
      await Promise.all(running.map((one) => one.stopReceiving()));
    },
    async stop() {
      await Promise.all(running.map((one) => one.stop()));
    },
  };
}

export interface ChannelStatus {
  readonly name: string;
  readonly state: ChannelState["state"];
  readonly reason?: string;
  readonly since?: string;
  readonly lastEventAt?: string;
}

export function channelStatus(channels: Channels): ChannelStatus[] {
  return [...channels].map(([name, { channel }]) => ({ name, ...stateOf(channel.state()) }));
}

function stateOf(state: ChannelState): Omit<ChannelStatus, "name"> {
  const iso = (ms: number) => new Date(ms).toISOString();
  switch (state.state) {
    case "starting":
      return { state: state.state };
    case "up":
      return { state: state.state, ...(state.lastEventAt !== undefined && { lastEventAt: iso(state.lastEventAt) }) };
    case "retrying":
    case "stopped":
      return { state: state.state, reason: state.reason, since: iso(state.since) };
  }
}

/** How a push channel puts Markdown; undefined for a pull door. */
export function renderFor(channels: Channels) {
  return (route: Route, markdown: string) => entryOf(channels, route)?.channel.render(markdown);
}
