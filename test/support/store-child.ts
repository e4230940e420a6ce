// Owns: the other process of the store tests, which can be killed. It says one line for each thing that has happened, after it
// has happened, and obeys one word a line. An error ends it with the exit code that the host would have.
// Arguments: what to do, the home, then what the task says.
import { closeSync, openSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import Database from "better-sqlite3";
import { systemClock } from "../../src/kernel/clock.ts";
import { crashAt, noCrashPoint } from "../../src/kernel/crashpoint.ts";
import { EXIT, LanewayError } from "../../src/kernel/errors.ts";
import { makeEvents } from "../../src/kernel/events.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { homePaths } from "../../src/settings/home.ts";
import { takeLock } from "../../src/store/lock.ts";
import { migrate } from "../../src/store/migrate.ts";
import { type Opened, openDatabase } from "../../src/store/open.ts";
import type { Migration } from "../../src/store/schema.ts";
import { makeStore, type Store } from "../../src/store/store.ts";
import { KILL_POINT, KILLABLE, PLANTED } from "./store-migrations.ts";

const [task = "", home = "", ...rest] = process.argv.slice(2);
const paths = homePaths({ LANEWAY_HOME: home });
const commands = createInterface({ input: process.stdin });

/** Written through at once: a line that was said is said, even when the next instruction kills the process. */
function say(line: string): void {
  writeSync(1, `${line}\n`);
}

function die(): void {
  process.kill(process.pid, "SIGKILL");
}

function open(migrations?: readonly Migration[]): Opened {
  const holder = () => rest[0];
  return openDatabase({
    db: paths.db,
    lockDb: paths.lockDb,
    holder,
    ...(migrations === undefined ? {} : { migrations }),
  });
}

function storeOn(opened: Opened, crash?: string): Store {
  const events = makeEvents((thrown) => {
    throw thrown;
  });
  events.on((event) => say(event.type));
  return makeStore({
    opened,
    clock: systemClock(),
    log: silentLog,
    events,
    crashPoint: crash === undefined ? noCrashPoint : crashAt(crash, die),
    onFatal: (error) => process.exit(error.exitCode),
  });
}

function note(store: Store, action: string, bytes = 10): Promise<void> {
  const detail = { filler: "x".repeat(bytes) };
  return store.write("row", (tx) => tx.audit.add({ actor: "", action, target: "", detail }, 0));
}

/** Holds the home until its input ends. `write` writes a row; `touch` does what the host must never do. */
async function hold(): Promise<void> {
  const opened = open();
  const store = storeOn(opened);
  say(`open ${opened.generation}`);
  for await (const word of commands) {
    if (word === "touch") closeSync(openSync(paths.lockDb, "r"));
    if (word === "write") await note(store, "written");
    say(`${word} done`);
  }
  store.close();
}

/** `go` tries to open the home and says what came of it; `close` lets it go again. */
async function race(): Promise<void> {
  let opened: Opened | undefined;
  say("ready");
  for await (const word of commands) {
    if (word === "close") opened?.close();
    else opened = tryOpen();
    if (word === "close") say("closed");
  }
}

function tryOpen(): Opened | undefined {
  try {
    const opened = open();
    say(`open ${opened.generation}`);
    return opened;
  } catch (thrown) {
    if (!(thrown instanceof LanewayError)) throw thrown;
    say(`refused ${thrown.exitCode}`);
    return undefined;
  }
}

/** Takes the lock of a home without waiting for anything, for a moment of 50 ms, as a start on its way up does. */
async function passBy(): Promise<void> {
  const db = new Database(paths.lockDb);
  db.exec("begin");
  db.prepare("select count(*) from sqlite_schema").get();
  say("half-way");
  await systemClock().sleep(50, new AbortController().signal);
  db.close();
}

/** Says `acknowledged n` for each row, five rows a loop turn, for ever. `early` acknowledges before the commit: the control. */
async function write(): Promise<void> {
  const [manner = "", crash] = rest;
  const store = storeOn(open(), crash);
  for (let turn = 0; ; turn++) {
    const numbers = [1, 2, 3, 4, 5].map((n) => turn * 5 + n);
    const writes = numbers.map(async (n) => {
      const written = note(store, `${n}`, 500);
      if (manner !== "early") await written;
      say(`acknowledged ${n}`);
      await written;
    });
    await Promise.all(writes);
  }
}

/** Writes batches of four until the disk refuses one, then waits for the word to go on, and writes one more batch. */
async function fill(): Promise<void> {
  const store = storeOn(open());
  say("open");
  let n = 0;
  const batch = async () => {
    const writes = Array.from({ length: 4 }, () => {
      n += 1;
      return attempt(store, n);
    });
    await Promise.all(writes);
  };
  while (!store.paused()) await batch();
  await attempt(store, 1_000_000);
  await store.writable(new AbortController().signal);
  await batch();
  say(`integrity ${store.integrity().join()}`);
  for await (const word of commands) if (word === "end") break;
  store.close();
}

async function attempt(store: Store, n: number): Promise<void> {
  try {
    await note(store, `${n}`, 20_000);
    say(`acknowledged ${n}`);
  } catch (thrown) {
    say(`rejected ${n} ${thrown instanceof LanewayError ? `${thrown.code} ${thrown.message}` : String(thrown)}`);
  }
}

/** Applies the planted migrations by way of the real opening; says when it begins. */
function upgrade(): void {
  say("begins");
  open(PLANTED).close();
  say("upgraded");
}

/** The same, with a death inside of a migration, at the point with the given number. */
function upgradeAndDie(): void {
  const unlock = takeLock(paths.lockDb, () => undefined);
  const db = new Database(paths.db);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  // So small that half of a migration is in the log file, uncommitted, when the process dies.
  db.pragma("cache_size = 10");
  db.function(KILL_POINT, (point: number) => {
    if (point === Number(rest[0])) die();
    return 0;
  });
  migrate(db, KILLABLE);
  db.close();
  unlock();
  say("upgraded");
}

const TASKS: Readonly<Record<string, () => void | Promise<void>>> = {
  hold,
  race,
  write,
  fill,
  upgrade,
  "pass-by": passBy,
  "upgrade-and-die": upgradeAndDie,
};

try {
  await TASKS[task]?.();
} catch (thrown) {
  console.error(thrown);
  process.exitCode = thrown instanceof LanewayError ? thrown.exitCode : EXIT.internal;
}
commands.close();
