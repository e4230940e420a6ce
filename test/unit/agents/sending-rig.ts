// Owns: the sending half of a host on a real store, for the tests of this folder: one account of a push channel whose platform
// says what the test says. A life ends as a crash or with the test.
import { type Delivery, makeDelivery, type Placed } from "../../../src/agents/delivery.ts";
import { makeSender, type OutgoingDeps, type Sender } from "../../../src/agents/outgoing.ts";
import type { Outlet } from "../../../src/agents/send-part.ts";
import type { CommandId, PartId, SessionKey } from "../../../src/kernel/ids.ts";
import { makeBackground } from "../../../src/kernel/log.ts";
import { type NewCommand, type Route, routeOf } from "../../../src/store/commands.ts";
import type { Part, PartClass, PartState } from "../../../src/store/outbox.ts";
import type { Store, Tx } from "../../../src/store/store.ts";
import { type FakeClock, fakeClock } from "../../support/clock.ts";
import {
  collectingLog,
  type LogLine,
  openTestStore,
  type TempHome,
  type TestStore,
  tempHome,
} from "../../support/store.ts";

export type SendResult = Awaited<ReturnType<Outlet["send"]>>;
type Outgoing = Parameters<Outlet["send"]>[0];

/** One call of the channel's `send`, in the test's hand once it was begun. */
export interface Send {
  readonly part: Outgoing;
  readonly signal: AbortSignal;
  readonly atMono: number;
  /** The state of the row when `begin` had resolved, read by a connection of its own; undefined when it has not. */
  begunAs?: PartState | undefined;
}

/** What the platform does with a part; a promise keeps the send in flight. */
export type Script = (send: Send, count: number) => SendResult | Promise<SendResult>;

export interface SendingOptions {
  readonly home?: TempHome;
  readonly clock?: FakeClock;
  readonly ambiguous?: Outlet["ambiguous"];
  readonly script?: Script;
  /** Replaces the outlet, to break its contract. */
  readonly send?: Outlet["send"];
  /** What is waited for before a part goes: the preview of its answer. */
  readonly previewEnds?: OutgoingDeps["quiet"];
  /** The owner's private chats; by default one, `owner`. */
  readonly owners?: readonly string[];
  readonly crashPoint?: (name: string) => void;
}

export interface SendingRig extends AsyncDisposable {
  readonly host: TestStore<FakeClock>;
  readonly store: Store;
  readonly clock: FakeClock;
  readonly sender: Sender;
  readonly delivery: Delivery;
  readonly sends: readonly Send[];
  readonly logged: readonly LogLine[];
  /** Puts parts of one command (a notice: of none) into the outbox; `text` is cut at `|`. Handed over unless told otherwise. */
  place(chat: string, text: string, options?: { class?: PartClass; handOver?: boolean }): Promise<PartId[]>;
  quiet(): Promise<void>;
  pass(ms: number): Promise<void>;
  part(id: PartId | undefined): Part;
  /** Texts of the calls, `again` marked by a star. */
  texts(chat?: string): string[];
  /** Texts of what stands in the owner's chat. */
  toldOwner(): string[];
  kill(): void;
}

export const SENT: SendResult = { kind: "sent", ref: "1" };
export const REFUSED: SendResult = { kind: "refused", reason: "blocked" };
export const AMBIGUOUS: SendResult = { kind: "ambiguous", reason: "no answer" };
export const later = (afterMs: number, wholeAccount = false): SendResult => ({
  ...{ kind: "later", afterMs, wholeAccount, reason: "not now" },
});

export function pushRoute(chat: string): Route {
  return { channel: "push", account: "default", chat, thread: undefined };
}

export async function makeSending(options: SendingOptions = {}): Promise<SendingRig> {
  const clock = options.clock ?? fakeClock();
  const home = options.home ?? (await tempHome());
  const host = await openTestStore({ home, clock, ...(options.crashPoint && { crashPoint: options.crashPoint }) });
  host.opened.db.pragma("synchronous = OFF");
  const logged: LogLine[] = [];
  const log = collectingLog(logged);
  const sends: Send[] = [];
  const { store, writing } = countWrites(host.store);
  const later: { sender?: Sender } = {};
  const delivery = makeDelivery({
    clock,
    render: ({ channel }, text) =>
      channel === "push" ? text.split("|").map((piece) => ({ text: piece, extra: undefined })) : undefined,
    ownerRoutes: (options.owners ?? ["owner"]).map(pushRoute),
    send: (placed) => later.sender?.offer(placed),
  });
  const send = options.send ?? scripted(options.script ?? (() => SENT), { sends, clock, store });
  const sender = makeSender({
    ...{ store, clock, log, delivery, background: makeBackground(log) },
    outlet: ({ channel }) => (channel === "push" ? { ambiguous: options.ambiguous ?? "resend", send } : undefined),
    quiet: options.previewEnds ?? (async () => {}),
  });
  later.sender = sender;
  const quiet = () => settled(writing);
  const kill = () => {
    host.opened.close();
    store.close();
  };
  return {
    ...{ host, store, clock, sender, delivery, sends, logged, quiet, kill },
    async place(chat, text, { class: kind = "answer", handOver = true } = {}) {
      const placed = await store.write("place", (tx) => place(tx, delivery, clock, { chat, text, kind }));
      if (handOver) delivery.send(placed);
      await quiet();
      return [...placed.parts];
    },
    async pass(ms) {
      // In steps: a write takes longer than the clock waits between two timers.
      const stepMs = Math.max(500, Math.ceil(ms / 400));
      await quiet();
      for (let left = ms; left > 0; left -= stepMs) {
        await clock.advance(Math.min(left, stepMs));
        await quiet();
      }
    },
    part: (id) => store.read.outbox.get(id!)!,
    texts: (chat) =>
      sends
        .filter(({ part }) => chat === undefined || part.chat === chat)
        .map(({ part }) => `${part.text}${part.again ? "*" : ""}`),
    toldOwner: () =>
      store.read.outbox
        .recent(1_000)
        .filter((part) => routeOf(part.chatKey).chat === "owner" && part.command === undefined)
        .map((part) => part.text),
    async [Symbol.asyncDispose]() {
      kill();
      if (options.home === undefined) await home[Symbol.asyncDispose]();
    },
  };
}

/** Kills a life and begins the next one on the same data at the same time; what still waits in the old one never ends. */
export async function nextLife(rig: SendingRig, options: SendingOptions = {}): Promise<SendingRig> {
  rig.kill();
  const clock = fakeClock(rig.clock.now());
  const next = await makeSending({ clock, ...options, home: rig.host.home });
  await next.sender.start();
  await next.quiet();
  return next;
}

interface NewPlaced {
  readonly chat: string;
  readonly text: string;
  readonly kind: PartClass;
}

function place(tx: Tx, delivery: Delivery, clock: FakeClock, { chat, text, kind }: NewPlaced): Placed {
  const route = pushRoute(chat);
  if (kind === "notice") return delivery.notice(tx, route, text);
  const command: NewCommand = {
    ...{ lane: "main", priority: 1, orderKey: 1, session: `agent:main:push:default:${chat}` as SessionKey, route },
    ...{ sender: "s", actor: "a", role: "user", source: "chat", kind: "message", text: "asked", extra: undefined },
    acceptedAt: clock.now(),
  };
  const id = tx.nextSeq() as CommandId;
  tx.commands.insert(id, command, "done");
  return delivery.answer(tx, { id, route }, { class: kind, text });
}

function scripted(script: Script, deps: { sends: Send[]; clock: FakeClock; store: Store }): Outlet["send"] {
  const { sends, clock, store } = deps;
  return async (part, signal, begin) => {
    const send: Send = { part, signal, atMono: clock.mono() };
    try {
      await begin();
    } catch {
      return { kind: "later", afterMs: 1_000, wholeAccount: false, reason: "not to be sent" };
    }
    send.begunAs = store.read.outbox
      .recent(1_000)
      .find(({ text, state }) => text === part.text && state === "sending")?.state;
    sends.push(send);
    return script(send, sends.length);
  };
}

/** The same store, with a count of the writes that nobody has heard of yet. */
function countWrites(real: Store): { store: Store; writing: () => number } {
  let pending = 0;
  const write: Store["write"] = (name, fn) => {
    pending += 1;
    return real.write(name, fn).finally(() => {
      pending -= 1;
    });
  };
  return { store: { ...real, write }, writing: () => pending };
}

async function settled(writing: () => number): Promise<void> {
  for (let calm = 0; calm < 2; calm = writing() === 0 ? calm + 1 : 0)
    await new Promise((resolve) => setImmediate(resolve));
}
