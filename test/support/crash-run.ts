// Owns: killing a real host again and again while people write to it, and then counting: nothing lost, nothing answered twice,
// parts in order, the database whole.
import { setTimeout as delay } from "node:timers/promises";
import Database from "better-sqlite3";
import { checkRequests, checkRows, checkShown, type Sent } from "./crash-checks.ts";
import { apiClient, type Client, terminalClient, webClient } from "./crash-clients.ts";
import { type EchoModel, startEchoModel } from "./echo-model.ts";
import { type HostProcess, settingsFor, startHostProcess, writeSettings } from "./host.ts";
import { type Seeded, seeded } from "./seeded.ts";

export interface CrashReport {
  readonly kills: number;
  /** Kills while at least one answer was being streamed: a run without them proves nothing. */
  readonly inFlight: number;
  readonly messages: number;
  /** Everything that should not be: empty when the guarantees hold. */
  readonly violations: readonly string[];
}

interface RunOptions {
  readonly home: string;
  readonly seed: number;
  readonly kills: number;
  /** A control: after each kill the newest accepted message is removed behind the host's back. The run must notice. */
  readonly loseInbox?: boolean;
}

const SETTLE_MS = 60_000;
/** Messages of one client that wait for their answers. */
const MOST_OPEN = 5;
/** Time for which a started host lives before it is killed. */
const LIFE_MS = { low: 30, high: 500 };

/** Random SIGKILLs under load from three doors (G1, G2, G5, G6, R1). */
export async function randomKills({ home, seed, kills, loseInbox = false }: RunOptions): Promise<CrashReport> {
  const random = seeded(seed);
  const model = await startEchoModel(() => random.between(5, 40));
  const port = await prepare(home, model);
  const address = `http://127.0.0.1:${port}`;
  let host = await startHostProcess(home);
  const clients = [
    webClient({ home, address }, "web"),
    terminalClient({ home, address }, "term"),
    apiClient({ home, address }, "api"),
  ];
  const load = startLoad(clients, random);
  let inFlight = 0;
  try {
    await untilConnected(clients);
    for (let done = 0; done < kills; done += 1) {
      if (done > 0) host = await startHostProcess(home);
      await delay(random.between(LIFE_MS.low, LIFE_MS.high));
      await untilNobodyIsDoomed(host);
      if (model.active() > 0) inFlight += 1;
      await host.kill();
      if (loseInbox) loseNewest(home);
    }
    const sent = await load.stop();
    const violations = await settleAndCheck(home, clients, sent, model);
    return { kills, inFlight, messages: sent.length, violations };
  } finally {
    await Promise.all(clients.map((client) => client.stop()));
    await model.stop();
  }
}

/** A port of its own for the whole run: the clients must find the host again after each death. */
async function prepare(home: string, model: EchoModel): Promise<number> {
  await writeSettings(home, settingsFor(model.baseUrl));
  const probe = await startHostProcess(home);
  const port = Number(new URL(probe.address).port);
  await probe.stop();
  // Each message is to have an answer of its own, by which it is counted.
  await writeSettings(home, settingsFor(model.baseUrl, "turns: { graceMs: 500 }\nqueue: { mode: followup }", port));
  return port;
}

/** A terminal needs a running host to begin with; from then on it lives through every death. */
async function untilConnected(clients: readonly Client[]): Promise<void> {
  while (clients.some((client) => client.shown.length === 0)) await delay(20);
}

function loseNewest(home: string): void {
  const db = new Database(`${home}/laneway.db`);
  db.pragma("foreign_keys = OFF");
  const newest = db.prepare("select max(id) from commands where state in ('queued', 'running')").pluck().get();
  if (newest !== null) {
    for (const table of ["steps", "inbox", "messages"])
      db.prepare(`delete from ${table} where command = ?`).run(newest);
    db.prepare("delete from commands where id = ?").run(newest);
  }
  db.close();
}

function startLoad(clients: readonly Client[], random: Seeded) {
  const sent: Sent[] = [];
  let stopped = false;
  const running = clients.map(async (client) => {
    for (let n = 1; !stopped; n += 1) {
      const text = `${client.door} message ${n}${random.next() < 0.2 ? " [tool]" : ""} end`;
      sent.push({ text, client });
      await client.send(text);
      await delay(random.between(40, 200));
      // A person waits for answers too; without this the queue's cap would be what is tested.
      while (!stopped && client.shown.length < n - MOST_OPEN) await delay(20);
    }
  });
  return {
    sent,
    async stop(): Promise<readonly Sent[]> {
      stopped = true;
      await Promise.race([Promise.all(running), delay(2_000)]);
      return sent;
    },
  };
}

/** G1: a kill test never kills the same command three times without a finished step, so a second strike is waited out. */
async function untilNobodyIsDoomed(host: HostProcess): Promise<void> {
  for (;;) {
    const { body } = await host.api("queue.list", { limit: 1_000 });
    if (!body.commands.some((command: { strikes: number }) => command.strikes >= 2)) return;
    await delay(20);
  }
}

async function settleAndCheck(
  home: string,
  clients: readonly Client[],
  sent: readonly Sent[],
  model: EchoModel,
): Promise<string[]> {
  const host = await startHostProcess(home);
  await Promise.all(clients.map((client) => client.settled(SETTLE_MS)));
  await host.stop();
  return [...checkShown(sent), ...checkRows(home, sent), ...checkRequests(model)];
}

export interface PoisonReport {
  readonly deaths: number;
  readonly poison: { readonly state: string; readonly told: number };
  /** Messages beside the poison that did not end answered. */
  readonly unanswered: readonly string[];
}

const BYSTANDERS = 4;

/** A message whose every model call kills the host, among others that are harmless (G8). */
export async function plantedPoison(home: string): Promise<PoisonReport> {
  const model = await startEchoModel(() => 20);
  await prepare(home, model);
  let deaths = 0;
  let host = await startHostProcess(home);
  model.onAsk = (text) => {
    if (text !== "poison") return;
    deaths += 1;
    host.process.kill("SIGKILL");
  };
  const chats = ["poison", ...Array.from({ length: BYSTANDERS }, (_, i) => `harmless ${i}`)];
  try {
    await Promise.all(
      chats.map((text, i) => host.api("send", { chat: `chat${i}`, text, key: text }).catch(() => undefined)),
    );
    // Three deaths make it dead; a fourth would be a host that never stays up.
    for (let boots = 0; boots < 4 && (await diedAtWork(host)); boots += 1) host = await startHostProcess(home);
    await host.stop();
    return { deaths, ...poisonRows(home, chats) };
  } finally {
    await model.stop();
  }
}

/** True when the host died with work left; false when nothing is left to be done. */
async function diedAtWork(host: HostProcess): Promise<boolean> {
  const dead = host.ended.then(() => true);
  const looked = async () => {
    const { body } = await host.api("queue.list");
    return body.commands.length === 0 ? false : undefined;
  };
  for (;;) {
    // A host that dies under the question answers nothing: that is heard from `ended`.
    const found = await Promise.race([dead, looked().catch(() => dead)]);
    if (found !== undefined) return found;
    await delay(20);
  }
}

function poisonRows(home: string, chats: readonly string[]): Omit<PoisonReport, "deaths"> {
  const db = new Database(`${home}/laneway.db`, { readonly: true });
  try {
    const rows = db.prepare("select id, state, text from commands").all() as {
      id: number;
      state: string;
      text: string;
    }[];
    const poison = rows.find((row) => row.text === "poison");
    const told = db
      .prepare("select count(*) from outbox where command = ?")
      .pluck()
      .get(poison?.id ?? 0);
    const done = rows.filter((row) => row.state === "done").map((row) => row.text);
    const unanswered = chats.filter((text) => text !== "poison" && !done.includes(text));
    return { poison: { state: poison?.state ?? "missing", told: Number(told) }, unanswered };
  } finally {
    db.close();
  }
}
