// Owns: the way from a token to received updates: who am I, which way do updates come, then poll or let the webhook work.
import type { Clock } from "../../kernel/clock.ts";
import type { Call } from "./account.ts";
import type { Client } from "./client.ts";
import type { Health } from "./health.ts";
import { poll } from "./poll.ts";
import { type Bot, botSchema } from "./schema.ts";
import type { TelegramSettings } from "./settings.ts";
import { ALLOWED_UPDATES, type Taker } from "./take.ts";

const SETUP_MS = 30_000;

export interface Receiving {
  readonly settings: TelegramSettings;
  readonly clock: Clock;
  readonly health: Health;
  readonly client: Client;
  readonly hold: (ms: number) => void;
  /** Called once the bot's own id is known and updates can come. */
  known(bot: Bot): Taker;
}

/** Resolves when the token is refused; rejects with Aborted when the signal aborts. */
export async function receive(deps: Receiving, signal: AbortSignal): Promise<void> {
  const { settings, health } = deps;
  const me = await insist(
    deps,
    (api, apiSignal) => api.getMe(apiSignal).then((found) => botSchema.parse(found)),
    signal,
  );
  if (me === undefined) return;
  if (settings.mode === "polling") {
    // While a webhook is set getUpdates is refused. What waits is kept.
    const cleared = await insist(deps, (api, apiSignal) => api.deleteWebhook({}, apiSignal), signal);
    if (cleared === undefined) return;
    health.up();
    await poll({ ...deps, taker: deps.known(me), stallMs: settings.stallMs }, signal);
    return;
  }
  const { url, secret } = settings;
  deps.known(me);
  // One connection, so that updates come in their order.
  const args = { url, secret_token: secret, allowed_updates: ALLOWED_UPDATES, max_connections: 1 };
  const set = await insist(deps, (api, apiSignal) => api.setWebhook(args, apiSignal), signal);
  if (set !== undefined) health.up();
}

/** Calls until it succeeds; undefined when the token is refused. */
async function insist<T>(deps: Receiving, make: Call<T>, signal: AbortSignal): Promise<T | undefined> {
  for (;;) {
    const answer = await deps.client.call(make, { limitMs: SETUP_MS, signal });
    if (answer.ok) return answer.result;
    deps.client.renew();
    if (!(await deps.health.failed(answer.fault, signal))) return undefined;
  }
}
