// Owns: killing a real host again and again while people write to it on Telegram and by web, and while it answers them there;
// then counting: nothing lost, nothing shown twice unmarked, nothing in doubt untold.
import { setTimeout as delay } from "node:timers/promises";
import Database from "better-sqlite3";
import { checkShown } from "./crash-checks.ts";
import { checkEverything, type Death } from "./crash-telegram-checks.ts";
import { answered, isQuiet, type PartRow, readRows } from "./crash-telegram-rows.ts";
import {
  type Chat,
  isSend,
  openSends,
  type Policy,
  startScene,
  type TelegramScene,
  trouble,
  write,
} from "./crash-telegram-stage.ts";
import { type HostProcess, logLines, startHostProcess } from "./host.ts";
import { type Seeded, seeded } from "./seeded.ts";

export interface TelegramCrashReport {
  readonly kills: number;
  /** Kills while Telegram worked on a send: a run without them proves nothing. */
  readonly inFlight: number;
  readonly messages: number;
  /** Parts that were sent once more, with the mark. */
  readonly again: number;
  /** Parts that were left in doubt, listed and told to the owner. */
  readonly doubtful: number;
  /** Everything that should not be: empty when the guarantees hold. */
  readonly violations: readonly string[];
}

interface RunOptions {
  readonly home: string;
  readonly seed: number;
  readonly kills: number;
  readonly policy: Policy;
  /** A control: after each kill the host is made to forget what it was sending and what it accepted last. The run must notice. */
  readonly forget?: boolean;
}

/** Random SIGKILLs while three chats on Telegram and one on the web are busy (G1, G2, G4, G5, G6, R1). */
export async function telegramKills({
  home,
  seed,
  kills,
  policy,
  forget = false,
}: RunOptions): Promise<TelegramCrashReport> {
  const random = seeded(seed);
  const scene = await startScene(home, policy, random);
  const deaths: Death[] = [];
  const writing: Promise<void>[] = [];
  try {
    for (let done = 0; done < kills; done += 1) {
      writing.push(write(scene, random, openMessages(scene, done)));
      const host = await startHostProcess(home);
      trouble(scene, random);
      await untilNobodyIsDoomed(host);
      await instantOfDeath(scene, random);
      deaths.push(await killed(scene, host));
      if (forget) forgetNewest(home);
    }
    const wrong = await settle(scene, writing);
    const rows = readRows(home);
    const violations = [
      ...wrong,
      ...checkEverything(scene, rows, { deaths, waits: await waitsNoted(home) }),
      ...checkShown(scene.webSent),
    ];
    const { parts } = rows;
    return {
      kills,
      inFlight: deaths.filter((death) => death.inFlight).length,
      messages: scene.webSent.length + scene.chats.flatMap(({ said }) => said).length,
      again: parts.filter((part) => part.again === 1).length,
      doubtful: parts.filter(({ state }) => state === "unknown" || state === "held").length,
      violations,
    };
  } finally {
    await scene.stop();
  }
}

/** How many messages of a chat wait for their answers, as the last host has left it. */
function openMessages({ home }: TelegramScene, done: number): (chat: Chat) => number {
  if (done === 0) return () => 0;
  const rows = readRows(home);
  return ({ room, said }) => said.length - answered(rows, room.id);
}

/** G1: a kill test never kills the same command three times without a finished step, so a second strike is waited out. */
async function untilNobodyIsDoomed(host: HostProcess): Promise<void> {
  for (;;) {
    const { body } = await host.api("queue.list", { limit: 1_000 });
    if (!body.commands.some((command: { strikes: number }) => command.strikes >= 2)) return;
    await delay(20);
  }
}

/** This share of the kills looks for a send that Telegram is working on; the others come at any time. */
const AIMED_SHARE = 0.6;
const LIFE_MS = { low: 20, high: 1_000 };
/** For a send to begin; in a wait that Telegram asked for none does. */
const PATIENCE_MS = 2_500;
/** Where in the send: it takes from 5 to 90 ms. */
const INTO_SEND_MS = 30;
/** Which call from now on may be the one: not always the first send of a life. */
const MOST_PASSED = 8;

async function instantOfDeath(scene: TelegramScene, random: Seeded): Promise<void> {
  const { telegram } = scene;
  if (random.next() > AIMED_SHARE) return delay(random.between(LIFE_MS.low, LIFE_MS.high));
  const passed = telegram.calls.length + Math.floor(random.between(0, MOST_PASSED));
  await telegram.until(() => openSends(scene).some(({ id }) => id > passed), PATIENCE_MS).catch(() => {});
  await delay(random.between(0, INTO_SEND_MS));
}

async function killed(scene: TelegramScene, host: HostProcess): Promise<Death> {
  const open = openSends(scene);
  const at = Date.now();
  await host.kill();
  await scene.telegram.until(() => open.every(({ outcome }) => outcome !== undefined));
  const { parts } = readRows(scene.home);
  const sending = parts.filter(({ state }) => state === "sending");
  const isOpen = ({ text }: PartRow) => open.some(({ params }) => String(params["text"]).endsWith(text));
  return {
    at,
    inFlight: sending.some(isOpen),
    sending: sending.map(({ id }) => id),
    knewOfWait: parts.some(({ state, not_before }) => state === "ready" && not_before > at),
  };
}

/** From the log, which outlives the hosts. */
async function waitsNoted(home: string): Promise<number[]> {
  const lines = await logLines(home);
  return lines.filter(({ event }) => event === "outbox.later").map(({ time }) => Date.parse(String(time)));
}

function forgetNewest(home: string): void {
  const db = new Database(`${home}/laneway.db`);
  db.pragma("foreign_keys = OFF");
  db.prepare("update outbox set state = 'ready' where state = 'sending'").run();
  const live = "select max(id) from commands where channel = 'telegram' and state in ('queued', 'running')";
  const newest = db.prepare(live).pluck().get();
  if (newest !== null) {
    for (const table of ["steps", "inbox", "messages"])
      db.prepare(`delete from ${table} where command = ?`).run(newest);
    db.prepare("delete from commands where id = ?").run(newest);
  }
  db.close();
}

const SETTLE_MS = 120_000;
const LOOK_MS = 100;

/** Lets everything come to rest, and starts once more: then nothing is left to be sent. */
async function settle(scene: TelegramScene, writing: readonly Promise<void>[]): Promise<string[]> {
  const host = await startHostProcess(scene.home);
  // Who was writing when the last host died tries again until there is one.
  await Promise.all(writing);
  const wrong = await comeToRest(scene);
  await scene.web.settled(SETTLE_MS);
  const listed = await unlisted(scene, host);
  const code = await host.stop();
  const sends = scene.telegram.calls.filter(isSend).length;
  const next = await startHostProcess(scene.home);
  await scene.telegram.until(() => scene.telegram.openPolls === 1);
  await next.stop();
  const more = scene.telegram.calls.filter(isSend).length - sends;
  return [
    ...wrong,
    ...listed,
    ...(code === 0 ? [] : [`the host ended with ${code}`]),
    ...(more === 0 ? [] : [`${more} sends after everything had come to rest`]),
  ];
}

async function comeToRest({ home, telegram }: TelegramScene): Promise<string[]> {
  for (let leftMs = SETTLE_MS; leftMs > 0; leftMs -= LOOK_MS) {
    if (telegram.pending.length === 0 && isQuiet(readRows(home))) return [];
    await delay(LOOK_MS);
  }
  const rows = readRows(home);
  const moving = rows.parts.filter(({ state }) => state === "ready" || state === "sending");
  return [
    `no rest within ${SETTLE_MS} ms: ${telegram.pending.length} updates, ${JSON.stringify(moving).slice(0, 500)}`,
  ];
}

/** What is in doubt and the host does not list. */
async function unlisted({ home }: TelegramScene, host: HostProcess): Promise<string[]> {
  const { body } = await host.api("outbox.list", { limit: 1_000 });
  const listed = new Set(body.parts.map(({ id }: { id: number }) => id));
  return readRows(home)
    .parts.filter(({ id, state }) => (state === "unknown" || state === "held") && !listed.has(id))
    .map(({ id, state }) => `part ${id} is ${state} and not listed`);
}
