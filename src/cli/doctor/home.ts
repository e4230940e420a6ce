// Owns: the checks of machine and home: Node, folder, modes (SEC-R2), file system. Reads no file's content: closing a
// descriptor of the database would drop the locks of the process.
import { accessSync, constants, type Stats, statSync } from "node:fs";
import { basename } from "node:path";
import { messageOf, systemCode } from "../../kernel/errors.ts";
import { isOpenToOthers, modeText } from "../../settings/files.ts";
import type { HomePaths } from "../../settings/home.ts";
import { refuseNetworkFileSystem } from "../../store/filesystem.ts";
import { type Check, fail, failedBy, ok, warn } from "./check.ts";

/** As package.json demands: Node 24 runs TypeScript as it is. */
const NEEDED_MAJOR = 24;

export function nodeCheck(): Check {
  const { node } = process.versions;
  if (Number(node.split(".")[0]) >= NEEDED_MAJOR) return ok("node", node);
  return fail(
    "node",
    `${node}, but Laneway needs ${NEEDED_MAJOR} or newer`,
    "Install Node 24 from https://nodejs.org.",
  );
}

export function homeChecks(paths: HomePaths): Check[] {
  const { home } = paths;
  const stat = statOf(home);
  if (stat === undefined) return [warn("home", `${home} is not there yet`, "The first `laneway start` makes it.")];
  if (stat instanceof Error)
    return [fail("home", `${home}: ${messageOf(stat)}`, "Set LANEWAY_HOME to a folder of your own.")];
  if (!stat.isDirectory()) return [fail("home", `${home} is not a folder`, "Set LANEWAY_HOME to another place.")];
  return [folderCheck(home, stat), filesCheck(paths), fileSystemCheck(home)];
}

function folderCheck(home: string, stat: Stats): Check {
  const mode = stat.mode & 0o777;
  if (isOpenToOthers(mode)) return fail("home", `${home} has mode ${modeText(mode)}`, `chmod 700 ${home}`);
  try {
    accessSync(home, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return fail("home", `${home} cannot be written by this user`, "Run as its owner, or set LANEWAY_HOME.");
  }
  return ok("home", `${home}, private`);
}

function filesCheck(paths: HomePaths): Check {
  const { token, db, lockDb, hostFile, settings, lastGood } = paths;
  const files = [token, db, `${db}-wal`, lockDb, hostFile, settings, lastGood];
  const open = files.filter((file) => {
    const stat = statOf(file);
    return stat !== undefined && !(stat instanceof Error) && isOpenToOthers(stat.mode);
  });
  if (open.length === 0) return ok("files", "readable by their owner only");
  const names = open.map((file) => basename(file)).join(", ");
  const command = `chmod 600 ${open.join(" ")}`;
  // Settings need not hold a secret; when they do and are open, loading them fails.
  if (open.every((file) => file === settings)) return warn("files", `others may read ${names}`, command);
  return fail("files", `others may read ${names}`, command);
}

function fileSystemCheck(home: string): Check {
  try {
    refuseNetworkFileSystem(home);
    return ok("file system", "local");
  } catch (thrown) {
    return failedBy("file system", thrown);
  }
}

function statOf(path: string): Stats | Error | undefined {
  try {
    return statSync(path);
  } catch (thrown) {
    if (systemCode(thrown) === "ENOENT") return undefined;
    return thrown instanceof Error ? thrown : new Error(String(thrown));
  }
}
