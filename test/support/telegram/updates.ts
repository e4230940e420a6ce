// Owns: the updates that wait for the bot, their numbers, and the long poll that takes them. The webhook takes from here too.
import type { Update } from "grammy/types";
import { z } from "zod";
import type { Clock } from "../../../src/kernel/clock.ts";
import type { CallRecord, Journal } from "./journal.ts";
import { int, json, Refused, readParams } from "./wire.ts";

export type UpdateKind = Exclude<keyof Update, "update_id">;

/** core.telegram.org/bots/api#getupdates: these come only to a bot that names them. */
const ONLY_WHEN_NAMED = new Set<string>(["chat_member", "message_reaction", "message_reaction_count"]);

/** The largest timeout that the server takes; it cuts a larger one down. */
const MAX_POLL_S = 50;

/** An offset further ahead of the newest update than this belongs to other times; the server begins at the front again. */
const AHEAD = 10;

const Params = z.object({
  offset: int.optional(),
  limit: int.optional(),
  timeout: int.optional(),
  allowed_updates: json(z.array(z.string())).optional(),
});

export interface Updates {
  /** Queues an update unless the bot does not want its kind. Undefined: it does not. */
  push(kind: UpdateKind, body: object): number | undefined;
  /** core.telegram.org/bots/api#update: ids are sequential, but after a quiet week the next one is chosen at random. */
  nextId(id: number): void;
  /** Not confirmed yet, oldest first. */
  pending(): readonly Update[];
  poll(call: CallRecord, gone: AbortSignal): Promise<readonly Update[]>;
  openPolls(): number;
  /** Ends the open poll with a refusal. */
  endPoll(refused: Refused): void;
  /** Forgets updates: the oldest ones up to an id, or all. */
  forget(upTo?: number): void;
  allow(kinds: readonly string[] | undefined): void;
  allowed(): readonly string[];
  onPush(listener: () => void): void;
}

interface OpenPoll {
  readonly call: CallRecord;
  readonly gone: AbortSignal;
  wake(): void;
  fail(refused: Refused): void;
}

export function makeUpdates({ clock, journal }: { clock: Clock; journal: Journal }): Updates {
  let queue: Update[] = [];
  let next = 700_000_001;
  let confirmed = 0;
  let allowed: readonly string[] = [];
  let open: OpenPoll | undefined;
  const listeners: (() => void)[] = [];

  const forgetBelow = (id: number) => {
    queue = queue.filter(({ update_id }) => update_id >= id);
    journal.changed();
  };

  /** The first id to give out, after what the offset confirms was forgotten. */
  const confirm = (call: CallRecord, offset: number) => {
    if (offset < 0) queue = queue.slice(offset);
    if (offset <= 0 || offset > next + AHEAD) return 0;
    if (offset < confirmed) journal.violated(call, `the offset went back from ${confirmed} to ${offset}`);
    confirmed = Math.max(confirmed, offset);
    forgetBelow(offset);
    return offset;
  };

  const waitForMore = (call: CallRecord, gone: AbortSignal, timeoutMs: number) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const poll: OpenPoll = { call, gone, wake: resolve, fail: reject };
    const stop = clock.after(timeoutMs, resolve, { keepAlive: false });
    gone.addEventListener("abort", () => resolve(), { once: true });
    open = poll;
    journal.changed();
    return promise.finally(() => {
      stop();
      if (open === poll) open = undefined;
      journal.changed();
    });
  };

  const endPoll = (refused: Refused) => {
    const ended = open;
    open = undefined;
    ended?.fail(refused);
  };

  /** Only one poll may be open; the newer one wins. A client that has died is no offender, its end may just not be seen yet. */
  const endOther = () => {
    if (open === undefined) return;
    const { call, gone } = open;
    endPoll(terminated());
    setImmediate(() => gone.aborted || journal.violated(call, "two calls of getUpdates at once"));
  };

  return {
    push(kind, body) {
      if (allowed.length === 0 ? ONLY_WHEN_NAMED.has(kind) : !allowed.includes(kind)) return undefined;
      const update_id = next++;
      queue.push({ update_id, [kind]: structuredClone(body) } as unknown as Update);
      queueMicrotask(() => open?.wake());
      for (const listener of listeners) listener();
      journal.changed();
      return update_id;
    },
    nextId(id) {
      if (id < next && queue.length > 0) throw new Error("the next id can be lower only when no update waits");
      if (id < next) confirmed = 0;
      next = id;
    },
    pending: () => queue,
    openPolls: () => (open === undefined ? 0 : 1),
    endPoll,
    async poll(call, gone) {
      const params = readParams(Params, call.params);
      endOther();
      if (params.allowed_updates !== undefined) allowed = params.allowed_updates;
      const limit = within(call, journal, "limit", params.limit ?? 100, [1, 100]);
      const timeout = within(call, journal, "timeout", params.timeout ?? 0, [0, MAX_POLL_S]);
      const from = confirm(call, params.offset ?? 0);
      const wanted = () => queue.filter(({ update_id }) => update_id >= from).slice(0, limit);
      if (wanted().length === 0 && timeout > 0) await waitForMore(call, gone, timeout * 1000);
      return wanted();
    },
    forget: (upTo) => forgetBelow(upTo === undefined ? next : upTo + 1),
    allow: (kinds) => {
      if (kinds !== undefined) allowed = kinds;
    },
    allowed: () => allowed,
    onPush: (listener) => listeners.push(listener),
  };
}

/** core.telegram.org/bots/api#getupdates names the range; the server cuts down what is outside. */
function within(
  call: CallRecord,
  journal: Journal,
  name: string,
  value: number,
  [least, most]: [number, number],
): number {
  if (value < least || value > most) journal.violated(call, `${name} ${value} is not within ${least}-${most}`);
  return Math.min(Math.max(value, least), most);
}

function terminated(): Refused {
  const what = "terminated by other getUpdates request; make sure that only one bot instance is running";
  return new Refused(409, `Conflict: ${what}`);
}
