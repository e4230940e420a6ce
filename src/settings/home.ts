// Owns: where the files of one home are, and that the home is private (SEC-R2). Never reads or writes the files themselves.
import { accessSync, chmodSync, constants, mkdirSync, readdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { ConfigError, messageOf, systemCode } from "../kernel/errors.ts";
import { type Env, envText } from "./env.ts";
import { isOpenToOthers, isThere, modeText } from "./files.ts";

/** All paths are absolute. */
export interface HomePaths {
  readonly home: string;
  readonly settings: string;
  /** A copy of the settings that worked last. */
  readonly lastGood: string;
  readonly db: string;
  readonly lockDb: string;
  readonly workspace: string;
  /** Compiled code, may be deleted at any time. */
  readonly cache: string;
  readonly logs: string;
  /** Pictures that came with messages. */
  readonly media: string;
  readonly token: string;
  /** Pid and address of the running host. */
  readonly hostFile: string;
}

/** The home is `$LANEWAY_HOME`, by default `~/.laneway`. Touches nothing. */
export function homePaths(env: Env): HomePaths {
  const home = resolvePath(process.cwd(), envText(env, "LANEWAY_HOME") ?? "~/.laneway", env);
  return {
    home,
    settings: join(home, "laneway.yaml"),
    lastGood: join(home, "laneway.last-good.yaml"),
    db: join(home, "laneway.db"),
    lockDb: join(home, "lock.db"),
    workspace: join(home, "workspace"),
    cache: join(home, "cache"),
    logs: join(home, "logs"),
    media: join(home, "media"),
    token: join(home, "token"),
    hostFile: join(home, "host.json"),
  };
}

/** An absolute path for what a person wrote: `~` is the user's folder, anything else is relative to `base`. */
export function resolvePath(base: string, written: string, env: Env): string {
  const ownFolder = envText(env, "HOME") ?? homedir();
  if (written === "~") return resolve(ownFolder);
  if (/^~[/\\]/.test(written)) return resolve(ownFolder, written.slice(2));
  return resolve(base, written);
}

/**
 * Makes the home and its folders, all 0700, and lets this process create private files only (SEC-R2).
 * @throws ConfigError when the home is not a folder, is not writable or cannot be made private
 */
export function prepareHome(paths: HomePaths): void {
  process.umask(0o077);
  makeFolder(paths.home);
  keepPrivate(paths);
  try {
    accessSync(paths.home, constants.W_OK | constants.X_OK);
  } catch (thrown) {
    throw homeError(`expected to be able to write in ${paths.home}, but cannot`, thrown);
  }
  for (const folder of [paths.workspace, paths.logs, paths.media, paths.cache]) makeFolder(folder);
}

/** Step by step: Node's own recursive mkdir never returns where a file system takes no folders, as /proc. */
function makeFolder(path: string): void {
  if (isFolder(path)) return;
  const parent = dirname(path);
  if (!isThere(parent)) makeFolder(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (thrown) {
    // Another process may have made it meanwhile.
    if (isFolder(path)) return;
    if (isThere(path) || systemCode(thrown) === "ENOTDIR") {
      throw homeError(`expected a folder at ${path}, but a file is in the way`, thrown);
    }
    throw homeError(`expected to be able to make the folder ${path}, but cannot`, thrown);
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** A freshly mounted ext volume holds this folder and is otherwise empty. */
const NEW_VOLUME_ENTRY = "lost+found";

/**
 * Closes a home that others can enter. Only an empty folder or one with our files is closed by itself:
 * a mistyped LANEWAY_HOME must not lock people out of a folder that serves something else.
 */
function keepPrivate(paths: HomePaths): void {
  const mode = statSync(paths.home).mode & 0o777;
  if (!isOpenToOthers(mode)) return;
  const advice = { hint: `run "chmod 700 ${paths.home}", or set LANEWAY_HOME to a folder of its own` };
  const state = `expected ${paths.home} to be private (mode 0700), but it has mode ${modeText(mode)}`;
  try {
    const names = readdirSync(paths.home).filter((name) => name !== NEW_VOLUME_ENTRY);
    const ours = [paths.settings, paths.lastGood, paths.db, paths.lockDb].map((path) => basename(path));
    if (names.length > 0 && !names.some((name) => ours.includes(name)))
      throw new ConfigError(`${state} and holds other things`, advice);
    chmodSync(paths.home, 0o700);
  } catch (thrown) {
    if (thrown instanceof ConfigError) throw thrown;
    throw new ConfigError(`${state} and it cannot be changed: ${messageOf(thrown)}`, { ...advice, cause: thrown });
  }
}

function homeError(sentence: string, cause: unknown): ConfigError {
  return new ConfigError(`${sentence} (${systemCode(cause) ?? messageOf(cause)})`, {
    hint: "set LANEWAY_HOME to a folder that this user can write in",
    cause,
  });
}
