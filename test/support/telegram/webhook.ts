// Owns: the webhook: setting it, and delivering the waiting updates to it, one at a time and in order.
import { z } from "zod";
import type { Clock } from "../../../src/kernel/clock.ts";
import { Aborted } from "../../../src/kernel/errors.ts";
import type { Journal } from "./journal.ts";
import type { Updates } from "./updates.ts";
import { bool, breach, int, json, Refused, readParams } from "./wire.ts";

export interface Webhook {
  set(params: Readonly<Record<string, unknown>>): true;
  remove(params: Readonly<Record<string, unknown>>): true;
  info(): object;
  active(): boolean;
  /** Resolves when no delivery is under way any more. */
  stop(): Promise<void>;
}

export interface WebhookOptions {
  /** Lets plain http and any port through, which the platform refuses. */
  readonly insecureWebhooks: boolean;
  readonly webhookRetryMs: number;
}

const Params = z.object({
  url: z.string(),
  // core.telegram.org/bots/api#setwebhook: "1-256 characters. Only characters A-Z, a-z, 0-9, _ and - are allowed."
  secret_token: z
    .string()
    .regex(/^[A-Za-z0-9_-]*$/, "secret token contains unallowed characters")
    .max(256)
    .optional(),
  max_connections: int.pipe(z.number().min(1).max(100)).optional(),
  allowed_updates: json(z.array(z.string())).optional(),
  drop_pending_updates: bool.optional(),
});
const RemoveParams = z.object({ drop_pending_updates: bool.optional() });

interface Target {
  readonly url: string;
  readonly secret: string | undefined;
  readonly maxConnections: number;
  lastError: { readonly date: number; readonly message: string } | undefined;
}

interface Deps extends WebhookOptions {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly updates: Updates;
}

export function makeWebhook(deps: Deps): Webhook {
  const { clock, updates, journal } = deps;
  let target: Target | undefined;
  let ending = new AbortController();
  let delivering: Promise<void> | undefined;

  const deliver = async (to: Target, signal: AbortSignal) => {
    for (let failures = 0; !signal.aborted; ) {
      const [update] = updates.pending();
      if (update === undefined) return;
      const problem = await post(to, update, signal);
      if (signal.aborted) return;
      if (problem === undefined) {
        updates.forget(update.update_id);
        failures = 0;
        continue;
      }
      // core.telegram.org/bots/api#setwebhook: the request is repeated as long as the status is not 2xx.
      to.lastError = { date: Math.floor(clock.now() / 1000), message: problem };
      journal.changed();
      await clock.sleep(deps.webhookRetryMs * 2 ** Math.min(failures++, 6), signal);
    }
  };

  const kick = () => {
    if (target === undefined || delivering !== undefined) return;
    delivering = deliver(target, ending.signal)
      .catch((error) => {
        if (!(error instanceof Aborted)) throw error;
      })
      .finally(() => {
        delivering = undefined;
        if (updates.pending().length > 0) kick();
      });
  };
  updates.onPush(kick);

  const drop = () => {
    target = undefined;
    ending.abort();
    ending = new AbortController();
  };

  return {
    active: () => target !== undefined,
    set(raw) {
      const params = readParams(Params, raw);
      if (params.url !== "") checkUrl(params.url, deps.insecureWebhooks);
      drop();
      if (params.drop_pending_updates === true) updates.forget();
      updates.allow(params.allowed_updates);
      if (params.url === "") return true;
      updates.endPoll(new Refused(409, "Conflict: terminated by setWebhook request"));
      const { url, secret_token: secret, max_connections: maxConnections = 40 } = params;
      target = { url, secret: secret === "" ? undefined : secret, maxConnections, lastError: undefined };
      kick();
      return true;
    },
    remove(raw) {
      const params = readParams(RemoveParams, raw);
      drop();
      if (params.drop_pending_updates === true) updates.forget();
      return true;
    },
    /** core.telegram.org/bots/api#webhookinfo */
    info: () => ({
      url: target?.url ?? "",
      has_custom_certificate: false,
      pending_update_count: updates.pending().length,
      ...(target && { max_connections: target.maxConnections }),
      ...(target?.lastError && {
        last_error_date: target.lastError.date,
        last_error_message: target.lastError.message,
      }),
      ...(updates.allowed().length > 0 && { allowed_updates: updates.allowed() }),
    }),
    async stop() {
      drop();
      await delivering;
    },
  };
}

/** Undefined when the update was taken; otherwise what went wrong. */
async function post(to: Target, update: object, signal: AbortSignal): Promise<string | undefined> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (to.secret !== undefined) headers["x-telegram-bot-api-secret-token"] = to.secret;
  try {
    const request = { method: "POST", headers, body: JSON.stringify(update), redirect: "manual" as const, signal };
    const response = await fetch(to.url, request);
    await response.arrayBuffer();
    return response.ok ? undefined : `Wrong response from the webhook: ${response.status} ${response.statusText}`;
  } catch (error) {
    return `Connection failed: ${error}`;
  }
}

/** core.telegram.org/bots/api#setwebhook: an HTTPS URL, and "Ports currently supported for webhooks: 443, 80, 88, 8443". */
function checkUrl(text: string, insecure: boolean): void {
  if (!URL.canParse(text)) breach("bad webhook: invalid webhook URL specified");
  if (insecure) return;
  const { protocol, port } = new URL(text);
  if (protocol !== "https:") breach("bad webhook: An HTTPS URL must be provided for webhook");
  const supported = ["", "443", "80", "88", "8443"];
  if (!supported.includes(port)) breach("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443");
}
