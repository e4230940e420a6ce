// Owns: a real store in a real folder for tests, with its clock, its events, its log and its fatal errors in the test's hand.
import type { Clock } from "../../src/kernel/clock.ts";
import { type CrashPoint, noCrashPoint } from "../../src/kernel/crashpoint.ts";
import type { LanewayError } from "../../src/kernel/errors.ts";
import { type Events, type HostEvent, makeEvents } from "../../src/kernel/events.ts";
import type { Log } from "../../src/kernel/log.ts";
import { type HomePaths, homePaths } from "../../src/settings/home.ts";
import { type Opened, openDatabase } from "../../src/store/open.ts";
import type { Migration } from "../../src/store/schema.ts";
import { makeStore, type Store } from "../../src/store/store.ts";
import { type FakeClock, fakeClock } from "./clock.ts";
import { type TemporaryFolder, temporaryFolder } from "./files.ts";

export interface TempHome extends TemporaryFolder {
  readonly paths: HomePaths;
}

/** An empty home, gone when the test is. */
export async function tempHome(): Promise<TempHome> {
  const folder = await temporaryFolder();
  return { ...folder, paths: homePaths({ LANEWAY_HOME: folder.path }) };
}

export interface LogLine {
  readonly level: "info" | "warn" | "error" | "debug";
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface TestStore<C extends Clock> extends AsyncDisposable {
  readonly store: Store;
  readonly home: TempHome;
  readonly clock: C;
  /** The connection beneath the store, to break it, and to look past the store. */
  readonly opened: Opened;
  readonly events: Events;
  /** Every event and every log line so far, in order. */
  readonly seen: readonly HostEvent[];
  readonly logged: readonly LogLine[];
  /** What the store gave to its `onFatal`, which ends the process of a host. */
  readonly fatal: readonly LanewayError[];
}

interface TestStoreOptions {
  /** A home to open again; it is not removed with the store. */
  readonly home?: TempHome;
  readonly crashPoint?: CrashPoint;
  readonly migrations?: readonly Migration[];
}

/** The next life of a host on a home: takes the lock, raises the generation. Disposing closes it and removes its own home. */
export function openTestStore(options?: TestStoreOptions): Promise<TestStore<FakeClock>>;
export function openTestStore<C extends Clock>(
  options: TestStoreOptions & { readonly clock: C },
): Promise<TestStore<C>>;
export async function openTestStore(options: TestStoreOptions & { readonly clock?: Clock } = {}): Promise<unknown> {
  const home = options.home ?? (await tempHome());
  const opened = openHome(home, options.migrations);
  const seen: HostEvent[] = [];
  const logged: LogLine[] = [];
  const fatal: LanewayError[] = [];
  const clock = options.clock ?? fakeClock();
  const events = makeEvents((thrown) => {
    throw thrown;
  });
  events.on((event) => seen.push(event));
  const store = makeStore({
    opened,
    clock,
    log: collectingLog(logged),
    events,
    crashPoint: options.crashPoint ?? noCrashPoint,
    onFatal: (error) => fatal.push(error),
  });
  const dispose = async () => {
    store.close();
    if (options.home === undefined) await home[Symbol.asyncDispose]();
  };
  return { store, home, clock, opened, events, seen, logged, fatal, [Symbol.asyncDispose]: dispose };
}

/** Opens the database of a home and nothing above it. */
export function openHome(home: TempHome, migrations?: readonly Migration[]): Opened {
  const { db, lockDb } = home.paths;
  return openDatabase({ db, lockDb, holder: () => undefined, ...(migrations === undefined ? {} : { migrations }) });
}

/** A log that keeps its lines in `lines`. */
export function collectingLog(lines: LogLine[]): Log {
  const at =
    (level: LogLine["level"]) =>
    (event: string, fields: LogLine["fields"] = {}) => {
      lines.push({ level, event, fields });
    };
  return { info: at("info"), warn: at("warn"), error: at("error"), debug: at("debug") };
}
