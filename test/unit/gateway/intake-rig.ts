// Owns: the taking in of one account of a channel on a real store and a real queue, for the tests of this folder.
import { type Delivery, makeDelivery, type Placed } from "../../../src/agents/delivery.ts";
import { type MessageExtra, messageExtraOf } from "../../../src/agents/message.ts";
import type { ChannelEvent, EventBatch, UnreadableEvent } from "../../../src/channels/port.ts";
import type { AccessRules } from "../../../src/gateway/admission.ts";
import { makeIntake } from "../../../src/gateway/intake.ts";
import type { Ids } from "../../../src/kernel/ids.ts";
import { type Command, routeOf } from "../../../src/store/commands.ts";
import type { Part } from "../../../src/store/outbox.ts";
import { collectingLog, type LogLine } from "../../support/store.ts";
import { makeRig, type Rig, type RigOptions } from "../queue/rig.ts";

export const OWNER_ID = "1";
/** The bot's own number, by which inbox and position are kept. */
export const BOT = "900";

export type Event = ChannelEvent | UnreadableEvent;

export interface IntakeRig extends AsyncDisposable {
  readonly rig: Rig;
  readonly sent: readonly Placed[];
  readonly logged: readonly LogLine[];
  /** May be changed at any time. */
  rules: AccessRules;
  take(events: readonly Event[], options?: { position?: string; identity?: string }): Promise<void>;
  /** Messages, oldest first; chat commands are left out. */
  messages(): Command[];
  extraOf(command: Command | undefined): MessageExtra;
  /** What stands in the outbox for a chat, oldest first. */
  parts(chat: string): Part[];
  position(identity?: string): string | undefined;
  rejected(): { event_key: string; raw: string; problem: string }[];
}

export interface IntakeOptions extends RigOptions {
  readonly rules?: Partial<AccessRules>;
  /** Replaces parts of the delivery, to break it. */
  readonly delivery?: (real: Delivery) => Partial<Delivery>;
}

export function fixedIds(): Ids {
  let count = 0;
  return {
    random: () => Buffer.from(`id${String(count++).padStart(4, "0")}`).toString("base64url"),
    fraction: () => 0.5,
  };
}

export async function makeIntakeRig(options: IntakeOptions = {}): Promise<IntakeRig> {
  const rig = await makeRig(options);
  await rig.start();
  const { store, queue, clock } = rig;
  const logged: LogLine[] = [];
  const sent: Placed[] = [];
  const real = makeDelivery({
    clock,
    render: (_, text) => [{ text, extra: undefined }],
    ownerRoutes: [{ channel: "telegram", account: "default", chat: OWNER_ID, thread: undefined }],
    send: (placed) => sent.push(placed),
  });
  const delivery = { ...real, ...options.delivery?.(real) };
  const describe = () => ({ version: "1", upMs: 0, backends: [] });
  const state = { rules: { dm: "pairing", allow: [], groups: {}, ...options.rules } as AccessRules };
  const intake = makeIntake(
    { channel: "telegram", account: "default", rules: () => state.rules },
    {
      ...{ store, queue, clock, delivery, events: rig.host.events, log: collectingLog(logged), ids: fixedIds() },
      ...{ owners: [`telegram:${OWNER_ID}`], agent: "main" },
      busy: () => ({ mode: "followup", debounceMs: 0, perChannel: {} }),
      chatCommands: { queue, clock, delivery, describe, backends: [] },
    },
  );
  let batches = 0;
  return {
    ...{ rig, sent, logged },
    get rules() {
      return state.rules;
    },
    set rules(rules) {
      state.rules = rules;
    },
    async take(events, { position = String(++batches), identity = BOT } = {}) {
      const batch: EventBatch = { events, position };
      await intake(identity, batch);
      await rig.quiet();
    },
    messages: () =>
      store.read.commands
        .recent(Number.MAX_SAFE_INTEGER, 1_000)
        .filter((command) => command.kind === "message")
        .reverse(),
    extraOf: (command) => messageExtraOf(command ?? { extra: undefined })!,
    parts: (chat) =>
      store.read.outbox
        .recent(1_000)
        .filter((part) => routeOf(part.chatKey).chat === chat)
        .reverse(),
    position: (identity = BOT) => store.read.positions.get("telegram", identity),
    rejected: () =>
      rig.host.opened.db.prepare("select event_key, raw, problem from rejected order by id").all() as never,
    [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose](),
  };
}

const numbers = { next: 1 };

/** A message of the owner in his private chat unless told otherwise; each has a key of its own. */
export function message(text: string, fields: Partial<ChannelEvent> = {}): ChannelEvent {
  const n = numbers.next++;
  const key = `m:${n}`;
  return {
    ...{ key, rawHash: key, chat: OWNER_ID, thread: undefined, chatKind: "private", addressed: "none", ref: String(n) },
    ...{ sender: { id: OWNER_ID, name: "Ann", bot: false }, kind: "message", text, quoted: undefined },
    ...{ attachments: [], album: undefined, full: false },
    ...fields,
  };
}

export const person = (id: string, name = `P${id}`) => ({ id, name, bot: false });

/** A message of a person in the private chat with him. */
export function from(id: string, text: string, fields: Partial<ChannelEvent> = {}): ChannelEvent {
  return message(text, { chat: id, sender: person(id), ...fields });
}
