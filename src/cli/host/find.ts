// Owns: finding the host that runs on a home, and the token that opens it. Reads only; never makes a token.
import { z } from "zod";
import { ConfigError, messageOf, NotRunning, systemCode } from "../../kernel/errors.ts";
import { envText } from "../../settings/env.ts";
import { isThere, readTextFile } from "../../settings/files.ts";
import { type HostFile, hostFile } from "../../settings/host-file.ts";
import type { Shell } from "../shell.ts";

type Place = Pick<Shell, "paths" | "env" | "ids">;
/** Of host.json and of the settings when they are only searched for a word. */
const SMALL_FILE_BYTES = 1024 * 1024;

/** The running host. Throws NotRunning when there is none, also when only the file of a dead one is left. */
export function findHost({ paths }: Pick<Shell, "paths">): HostFile & { address: string } {
  const found = readHostFile(paths.hostFile);
  if (found === undefined) throw noHost(paths.home, "");
  const { address, pid } = found;
  if (!isAlive(pid)) throw noHost(paths.home, ` (process ${pid} has ended without a goodbye)`);
  if (address !== undefined) return { ...found, address };
  throw new NotRunning(`the host on ${paths.home} (process ${pid}) is still starting`, {
    hint: "Try again in a moment.",
  });
}

function noHost(home: string, detail: string): NotRunning {
  return new NotRunning(`no host runs on ${home}${detail}`, { hint: "Start one with `laneway start`." });
}

/** What host.json says, or `undefined` when it is absent. Throws NotRunning when it cannot be understood. */
export function readHostFile(path: string): HostFile | undefined {
  if (!isThere(path)) return undefined;
  try {
    return hostFile.parse(JSON.parse(readTextFile(path, SMALL_FILE_BYTES).text));
  } catch (thrown) {
    // It goes when the host does: between the look and the reading it may have gone.
    if (!isThere(path)) return undefined;
    throw new NotRunning(
      `expected the host's pid and address in ${path}, but it cannot be read (${firstLine(thrown)})`,
      {
        hint: "When no host runs, delete the file; then start one with `laneway start`.",
        cause: thrown,
      },
    );
  }
}

function firstLine(thrown: unknown): string {
  return thrown instanceof z.ZodError ? "wrong form" : (messageOf(thrown).split("\n")[0] ?? "");
}

/** Whether a process with this id exists. One of another user counts: it cannot be asked more. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return systemCode(thrown) === "EPERM";
  }
}

/**
 * The token by the contract's order: LANEWAY_TOKEN, `gateway.token` of the settings, the home's own file.
 * Throws ConfigError when there is none or it cannot be read.
 */
export async function findToken({ paths, env, ids }: Place, settingsFile: string | undefined): Promise<string> {
  const given = envText(env, "LANEWAY_TOKEN");
  if (given !== undefined) return given;
  const { readToken } = await import("../../settings/token.ts");
  const written = await tokenOfSettings({ paths, env, ids }, settingsFile);
  if (written !== undefined) return written;
  if (!isThere(paths.token)) {
    throw new ConfigError(
      `expected the host's token in LANEWAY_TOKEN, in the settings or in ${paths.token}, but there is none`,
      {
        hint: "Set LANEWAY_TOKEN to the one that the host was started with.",
      },
    );
  }
  return readToken({ settings: { gateway: NO_TOKEN }, paths, env, ids });
}

const NO_TOKEN = { host: "", port: 0, allowedOrigins: [], allowedHosts: [] };

/** Settings that cannot be used now do not keep people from the host: it runs on the last good ones. */
async function tokenOfSettings({ paths, env }: Place, settingsFile: string | undefined): Promise<string | undefined> {
  const path = settingsFile ?? paths.settings;
  if (!mentionsToken(path)) return undefined;
  const { readSettings } = await import("../../settings/load.ts");
  try {
    return readSettings({ file: settingsFile, paths, env }).settings.gateway.token;
  } catch (thrown) {
    if (thrown instanceof ConfigError) return undefined;
    throw thrown;
  }
}

/** Reading YAML costs a third of a short command's time, and few settings hold a token. */
function mentionsToken(path: string): boolean {
  try {
    return readTextFile(path, SMALL_FILE_BYTES).text.includes("token");
  } catch {
    return false;
  }
}
