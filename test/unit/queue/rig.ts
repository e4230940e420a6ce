// Owns: a lane queue on a real store for the tests of this folder. Work begins, progresses and ends when the test says so;
// a life ends as a crash, as a planned stop, or with the test.

import type { Events } from "../../../src/kernel/events.ts";
import type { CommandId, PartId, SessionKey } from "../../../src/kernel/ids.ts";
import { makeBackground } from "../../../src/kernel/log.ts";
import type { Outcome } from "../../../src/queue/command.ts";
import { makeQueue, type Queue, type QueueSettings } from "../../../src/queue/queue.ts";
import type { Recovered } from "../../../src/queue/recover.ts";
import type { CommandEnd, Runner } from "../../../src/queue/runner.ts";
import { type Command, chatKey, type NewCommand, type StepKind } from "../../../src/store/commands.ts";
import type { Store, Tx } from "../../../src/store/store.ts";
import { makeJournal } from "../../../src/turns/journal.ts";
import { type FakeClock, fakeClock } from "../../support/clock.ts";
import {
  collectingLog,
  type LogLine,
  openTestStore,
  type TempHome,
  type TestStore,
  tempHome,
} from "../../support/store.ts";

/** One run of one claim, in the test's hand. */
export interface Work {
  readonly command: Command;
  readonly signal: AbortSignal;
  /** Ends it `done` or `failed`, with one part for its person. */
  finish(state?: "done" | "failed"): void;
  end(end: CommandEnd): void;
  reject(thrown: unknown): void;
  /** The step in flight finishes, and one of kind `next` begins: one commit, as in a turn. */
  step(next?: StepKind): Promise<void>;
}

export interface RigOptions {
  readonly home?: TempHome;
  /** An open store to work on; it stays open. */
  readonly host?: TestStore<FakeClock>;
  readonly clock?: FakeClock;
  readonly settings?: Partial<QueueSettings>;
  /** Called when a claim's work begins. */
  readonly onRun?: (work: Work) => void;
  /** Work that does not listen when it is told to stop; other work hands itself back at once. */
  readonly isDeaf?: (command: Command) => boolean;
  /** Called first in the claim's transaction. */
  readonly onBegin?: (command: Command) => void;
  /** Replaces parts of the runner, to break them. */
  readonly runner?: Partial<Runner>;
  /** The kind of a claim's first step. */
  readonly firstStep?: (command: Command) => StepKind;
  readonly crashPoint?: (name: string) => void;
  readonly events?: Events;
}

export interface Rig extends AsyncDisposable {
  readonly host: TestStore<FakeClock>;
  readonly clock: FakeClock;
  readonly store: Store;
  readonly queue: Queue;
  readonly logged: readonly LogLine[];
  /** What runs now, by command. */
  readonly works: ReadonlyMap<CommandId, Work>;
  /** Every claim's command, in the order in which work began. */
  readonly claims: readonly CommandId[];
  /** Names of what was handed to the background and rejected: always a bug. */
  readonly failures: readonly LogLine[];
  start(): Promise<Recovered>;
  /** @param notBefore its back-off's end, in wall-clock ms. */
  message(fields?: Partial<NewCommand>): Omit<NewCommand, "orderKey">;
  accept(fields?: Partial<NewCommand>, notBefore?: number): Promise<CommandId>;
  /** Resolves when every write, and all that follows from it, has happened. */
  quiet(): Promise<void>;
  /** Lets time pass, and all that follows happen. */
  pass(ms: number): Promise<void>;
  state(id: CommandId): string;
  row(id: CommandId): Command;
  running(): CommandId[];
  /** Takes work that the queue has given up out of `works`. */
  forget(id: CommandId): void;
  /** The texts that the command's person got. */
  told(id: CommandId): string[];
  /** The process is gone: what was not committed is lost, and nobody runs on. */
  kill(): void;
}

export const LANES = {
  ...{ main: 8, subagent: 8, cron: 4, "cron-nested": 4, background: 1, nestedTotal: 8, total: 24, mainReserved: 1 },
  agingMs: 60_000,
};

export const SETTINGS: QueueSettings = {
  lanes: LANES,
  cap: 1_000,
  hostCap: 100_000,
  maxAgeMs: 7_200_000,
  abortGraceMs: 5_000,
};

export async function makeRig(options: RigOptions = {}): Promise<Rig> {
  const logged: LogLine[] = [];
  const log = collectingLog(logged);
  const host = options.host ?? (await openHost(options));
  const { clock } = host;
  const { store, writing } = countWrites(host.store);
  const works = new Map<CommandId, Work>();
  const claims: CommandId[] = [];
  const runner = scriptedRunner({
    options,
    store,
    clock,
    works,
    claims,
    onProgress: (id, kind) => queue.progressed(id, kind),
  });
  const background = makeBackground(log);
  const queue = makeQueue({
    ...{ store, clock, log, background, runner },
    events: options.events ?? host.events,
    settings: () => ({ ...SETTINGS, ...options.settings }),
  });
  const backOff = host.opened.db.prepare("update commands set not_before = ? where id = ?");
  const row = (id: CommandId) => store.read.commands.get(id)!;
  const kill = () => {
    works.clear();
    host.opened.close();
    store.close();
  };
  const quiet = () => settled(writing);
  return {
    ...{ host, clock, store, queue, logged, works, claims, row, kill, quiet },
    get failures() {
      return logged.filter((line) => line.event === "background.failed");
    },
    start: () => queue.start(),
    message: (fields) => message(clock.now(), fields),
    async accept(fields, notBefore = 0) {
      const made = await store.write("accept", (tx) => {
        const row = queue.insert(tx, message(clock.now(), fields));
        backOff.run(notBefore, row.id);
        return { ...row, notBefore };
      });
      queue.offer(made);
      return made.id;
    },
    async pass(ms) {
      await clock.advance(ms);
      await quiet();
    },
    state: (id) => row(id).state,
    running: () => [...works.keys()],
    forget: (id) => works.delete(id),
    told: (id) => store.read.outbox.ofCommand(id).map((part) => part.text),
    async [Symbol.asyncDispose]() {
      if (options.host === undefined) kill();
      if (options.home === undefined && options.host === undefined) await host.home[Symbol.asyncDispose]();
    },
  };
}

/** A store whose home stays when it is closed. */
async function openHost({
  home,
  clock = fakeClock(),
  crashPoint = () => {},
}: RigOptions): Promise<TestStore<FakeClock>> {
  const host = await openTestStore({ home: home ?? (await tempHome()), clock, crashPoint });
  // Nothing here cuts the power, and a sync for each commit would be most of the time.
  host.opened.db.pragma("synchronous = OFF");
  return host;
}

/** Kills a life and begins the next one on the same data, at the same time. */
export async function nextLife(rig: Rig, options: RigOptions = {}): Promise<Rig> {
  rig.kill();
  const next = await makeRig({ ...options, home: rig.host.home, clock: rig.clock });
  await next.start();
  await next.quiet();
  return next;
}

/** How often a property is tried: its share in CI, or what the environment asks for. */
export function runs(inCi: number): number {
  return Number(process.env["LANEWAY_FUZZ_RUNS"] ?? inCi);
}

/** A person's message; every sender has a chat and a session of their own unless told otherwise. */
export function message(now: number, fields: Partial<NewCommand> = {}): Omit<NewCommand, "orderKey"> {
  const sender = fields.sender ?? "owner";
  const chat = fields.session ?? sender;
  return {
    ...{ lane: "main", priority: 1, session: `agent:main:test:default:${chat}` as SessionKey },
    route: { channel: "test", account: "default", chat, thread: undefined },
    ...{
      sender,
      actor: sender,
      role: "user",
      source: "chat",
      kind: "message",
      text: "hello",
      extra: undefined,
      acceptedAt: now,
    },
    ...fields,
  };
}

interface ScriptedDeps {
  readonly options: RigOptions;
  readonly store: Store;
  readonly clock: FakeClock;
  readonly works: Map<CommandId, Work>;
  readonly claims: CommandId[];
  readonly onProgress: (id: CommandId, kind: StepKind) => void;
}

function scriptedRunner(deps: ScriptedDeps): Runner {
  const { options, clock, works } = deps;
  const firstStep = options.firstStep ?? (() => "model");
  return {
    begin(tx, command) {
      options.onBegin?.(command);
      const next = (tx.steps.ofCommand(command.id).at(-1)?.n ?? 0) + 1;
      tx.steps.inFlightUnknown(command.id, clock.now());
      tx.steps.intend(command.id, { n: next, kind: firstStep(command), name: "scripted" }, clock.now());
    },
    run(command, signal) {
      const result = Promise.withResolvers<CommandEnd>();
      const work = makeWork(command, signal, result, deps);
      works.set(command.id, work);
      deps.claims.push(command.id);
      signal.addEventListener("abort", () => {
        if (options.isDeaf?.(command) !== true) work.end({ state: "handed-back" });
      });
      options.onRun?.(work);
      return result.promise;
    },
    crashed: (command) => ({
      state: "failed",
      outcome: { reason: "internal" },
      write: tell(command, "internal", clock),
    }),
    cancelled: () => {},
    givenBack: () => {},
    gaveUp: (tx, command, outcome) => tell(command, outcome.reason, clock)(tx),
    ...options.runner,
  };
}

function makeWork(
  command: Command,
  signal: AbortSignal,
  result: PromiseWithResolvers<CommandEnd>,
  deps: ScriptedDeps,
): Work {
  const { store, clock, works } = deps;
  const journal = makeJournal({
    ...{ store, clock, command, rows: 0, keepTranscript: false },
    onProgress: (kind) => deps.onProgress(command.id, kind),
  });
  const gone = () => {
    if (works.get(command.id)?.command.claim === command.claim) works.delete(command.id);
  };
  return {
    command,
    signal,
    finish(state = "done") {
      const outcome: Outcome = { reason: state === "done" ? "answered" : "backends-failed" };
      const write = (tx: Tx) => {
        const last = tx.steps.ofCommand(command.id).at(-1);
        if (state === "done" && last !== undefined) tx.steps.done(command.id, last.n, "{}", clock.now());
        tell(command, state, clock)(tx);
      };
      this.end({ state, outcome, write });
    },
    end(end) {
      gone();
      result.resolve(end);
    },
    reject(thrown) {
      gone();
      result.reject(thrown);
    },
    async step(next = "model") {
      const { n, kind } = store.read.steps.ofCommand(command.id).at(-1)!;
      await journal.advance(
        { n, kind, name: "scripted", result: {}, rows: [] },
        { n: n + 1, kind: next, name: "scripted" },
        signal,
      );
    },
  };
}

function tell(command: Command, text: string, clock: FakeClock): (tx: Tx) => void {
  const part = { chatKey: chatKey(command.route), command: command.id, part: 0, class: "answer", text } as const;
  return (tx) => tx.outbox.insert(tx.nextSeq() as PartId, part, tx.generation, clock.now());
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

/** Promises settle within one immediate and a write within two; what follows from a write may be another one. */
async function settled(writing: () => number): Promise<void> {
  for (let calm = 0; calm < 2; calm = writing() === 0 ? calm + 1 : 0)
    await new Promise((resolve) => setImmediate(resolve));
}
