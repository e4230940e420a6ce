// Measures: accept → claim → finish through the host's own code, all committed at FULL with transcript and outbox rows, as a
// ratio to a bare three-commit loop of the same run. Rounds are interleaved, because the machine's speed drifts.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { type Delivery, makeDelivery } from "../../src/agents/delivery.ts";
import { makeAccept } from "../../src/gateway/accept.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { noCrashPoint } from "../../src/kernel/crashpoint.ts";
import { makeEvents } from "../../src/kernel/events.ts";
import type { CommandId } from "../../src/kernel/ids.ts";
import { makeBackground, silentLog } from "../../src/kernel/log.ts";
import { makeQueue } from "../../src/queue/queue.ts";
import type { Runner } from "../../src/queue/runner.ts";
import { openDatabase } from "../../src/store/open.ts";
import { makeStore } from "../../src/store/store.ts";
import { makeJournal } from "../../src/turns/journal.ts";
import { assistantRow, userRow } from "../../src/turns/transcript.ts";
import { modelIntent } from "../../src/turns/turn.ts";
import { median } from "./median.ts";

export interface DurableResult {
  readonly inFlight: number;
  readonly perSecond: number;
  readonly barePerSecond: number;
  readonly ratio: number;
}

const ROUNDS = 5;
const ROUND_MS = 800;
const ANSWER =
  "An answer of about two hundred characters, which is what a short reply of a model looks like when it ".repeat(2);

/** One result for each number in flight; each is the median of interleaved rounds. */
export async function benchDurable(inFlights: readonly number[]): Promise<DurableResult[]> {
  const folder = mkdtempSync(join(tmpdir(), "laneway-bench-"));
  const bare = openBare(join(folder, "bare.db"));
  const host = await openHost(folder);
  const rates = new Map<number, { own: number[]; bare: number[] }>(inFlights.map((n) => [n, { own: [], bare: [] }]));
  await host.run(64, ROUND_MS);
  bare.run(ROUND_MS);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [n, rate] of rates) {
      rate.bare.push(bare.run(ROUND_MS));
      rate.own.push(await host.run(n, ROUND_MS));
    }
  }
  host.close();
  bare.close();
  rmSync(folder, { recursive: true });
  return [...rates].map(([inFlight, rate]) => {
    const ratio = median(rate.own.map((own, i) => own / (rate.bare[i] ?? Number.NaN)));
    return { inFlight, perSecond: Math.round(median(rate.own)), barePerSecond: Math.round(median(rate.bare)), ratio };
  });
}

/** The yardstick: one small row, three commits, nothing else. */
function openBare(file: string) {
  const db = new Database(file);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.exec("create table job (id integer primary key, state text not null, body text not null)");
  const insert = db.prepare("insert into job (state, body) values ('queued', ?)");
  const claim = db.prepare("update job set state = 'running' where id = ?");
  const done = db.prepare("update job set state = 'done' where id = ?");
  return {
    run(ms: number): number {
      const started = performance.now();
      let count = 0;
      while (performance.now() - started < ms) {
        const { lastInsertRowid: id } = insert.run(ANSWER);
        claim.run(id);
        done.run(id);
        count += 1;
      }
      return (count * 1_000) / (performance.now() - started);
    },
    close: () => db.close(),
  };
}

async function openHost(folder: string) {
  const clock = systemClock();
  const events = makeEvents(() => {});
  const opened = openDatabase({
    db: join(folder, "host.db"),
    lockDb: join(folder, "lock.db"),
    holder: () => undefined,
  });
  const fail = (error: Error) => {
    throw error;
  };
  const store = makeStore({ opened, clock, log: silentLog, events, crashPoint: noCrashPoint, onFatal: fail });
  const delivery = makeDelivery({ clock, render: () => undefined, ownerRoutes: [], send: () => {} });
  const runner = instantRunner(store, delivery);
  const many = 1_000;
  const lanes = {
    main: many,
    subagent: 1,
    cron: 1,
    "cron-nested": 1,
    background: 1,
    nestedTotal: 1,
    total: many,
    mainReserved: 1,
    agingMs: 60_000,
  };
  const settings = { lanes, cap: 20, hostCap: 100_000, maxAgeMs: 0, abortGraceMs: 1_000 };
  const queue = makeQueue({
    store,
    clock,
    log: silentLog,
    events,
    background: makeBackground(silentLog),
    runner,
    settings: () => settings,
  });
  await queue.start();
  const describe = () => ({ version: "bench", upMs: 0, backends: [] });
  const accept = makeAccept({
    store,
    queue,
    clock,
    events,
    busy: () => ({ mode: "followup", debounceMs: 0, perChannel: {} }),
    chatCommands: { queue, clock, describe, delivery, backends: [] },
  });
  const waiters = new Map<CommandId, () => void>();
  events.on((event) => {
    if (event.type === "command" && event.state === "done") waiters.get(event.id)?.();
  });
  let key = 0;
  const one = async (chat: number) => {
    key += 1;
    const { command } = await accept({
      event: { channel: "web", account: "default", key: String(key) },
      rawHash: "bench",
      route: { channel: "web", account: "default", chat: `chat${chat}`, thread: undefined },
      ...{
        agent: "main",
        sender: "owner",
        actor: "owner",
        role: "owner",
        source: "chat",
        kind: "message",
        text: ANSWER,
      },
    });
    await new Promise<void>((resolve) => waiters.set(command, resolve));
    waiters.delete(command);
  };
  return {
    async run(inFlight: number, ms: number): Promise<number> {
      const started = performance.now();
      let count = 0;
      const loop = async (chat: number) => {
        while (performance.now() - started < ms) {
          await one(chat);
          count += 1;
        }
      };
      await Promise.all(Array.from({ length: inFlight }, (_, chat) => loop(chat)));
      return (count * 1_000) / (performance.now() - started);
    },
    close: () => store.close(),
  };
}

/** Work that takes no time: what is left is the host's own cost. Journal, transcript and outbox are the real ones. */
function instantRunner(store: ReturnType<typeof makeStore>, delivery: Delivery): Runner {
  const clock = systemClock();
  return {
    begin: (tx, command) => tx.steps.intend(command.id, modelIntent(1), clock.now()),
    run: async (command) => {
      const journal = makeJournal({ store, clock, command, rows: 0, keepTranscript: true, onProgress: () => {} });
      const rows = [userRow(command.text), assistantRow(ANSWER, [])];
      return {
        state: "done",
        outcome: { reason: "answered" },
        write(tx) {
          journal.writeEnd(tx, {
            n: 1,
            kind: "model",
            name: "bench",
            result: { inputTokens: 1, outputTokens: 1 },
            rows,
          });
          delivery.answer(tx, command, { class: "answer", text: ANSWER });
        },
      };
    },
    crashed: (_command, thrown) => {
      throw thrown;
    },
    cancelled: () => {},
    givenBack: () => {},
    gaveUp: () => {},
  };
}
