// Owns: how files of the home are read and written: whole, limited in size, private to their owner.
// Never interprets what is in them.
import {
  closeSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { systemCode } from "../kernel/errors.ts";

/** Windows has no such bits; there the folder's access list protects the files. */
const HAS_MODES = process.platform !== "win32";

export interface TextFile {
  readonly text: string;
  /** The permission bits, such as 0o600. */
  readonly mode: number;
}

/**
 * Reads a whole UTF-8 file.
 * @param limit largest size in bytes
 * @throws Error with a sentence that can be shown, without the file's content
 */
export function readTextFile(path: string, limit: number): TextFile {
  try {
    const stat = statSync(path);
    if (!stat.isFile()) throw new Error("expected a file, but it is a folder or a device");
    if (stat.size > limit) throw new Error(`expected at most ${limit} bytes, but it has ${stat.size}`);
    const text = new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(path));
    return { text, mode: stat.mode & 0o777 };
  } catch (thrown) {
    throw new Error(readFailure(thrown), { cause: thrown });
  }
}

function readFailure(thrown: unknown): string {
  switch (systemCode(thrown)) {
    case "ENOENT":
    case "ENOTDIR":
      return "the file does not exist";
    case "EACCES":
    case "EPERM":
      return "the file may not be read by this user";
    case "ELOOP":
      return "the file is a link that leads to itself";
    case "ERR_ENCODING_INVALID_ENCODED_DATA":
      return "expected UTF-8 text, but it holds other bytes";
    default:
      return thrown instanceof Error ? thrown.message : String(thrown);
  }
}

/** Whether something, even a broken link, has this name. */
export function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (thrown) {
    // Below a file there is nothing; a folder that may not be searched may hold it: let the reading say so.
    return systemCode(thrown) !== "ENOTDIR";
  }
}

/** Whether a file or folder of this mode gives the group or others any right (SEC-R2). */
export function isOpenToOthers(mode: number): boolean {
  return HAS_MODES && (mode & 0o077) !== 0;
}

/** `0644`, as chmod writes it. */
export function modeText(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}

/**
 * Replaces a file by a private one (0600) in one step: a crash leaves the old one or the new one, never a part.
 * @throws the system's error; the old file is then untouched
 */
export function writePrivate(path: string, text: string): void {
  const temporary = writeBeside(path, text);
  try {
    renameSync(temporary, path);
  } catch (thrown) {
    rmSync(temporary, { force: true });
    throw thrown;
  }
  syncFolder(dirname(path));
}

/**
 * Makes a private file (0600) unless one is there already; it appears with all its text.
 * @returns false when another process was first; its file is untouched
 */
export function createPrivate(path: string, text: string): boolean {
  const temporary = writeBeside(path, text);
  try {
    linkSync(temporary, path);
  } catch (thrown) {
    if (systemCode(thrown) === "EEXIST") return false;
    throw thrown;
  } finally {
    rmSync(temporary, { force: true });
  }
  syncFolder(dirname(path));
  return true;
}

/** The process id keeps two processes from sharing a temporary file; one left by a dead process is replaced. */
function writeBeside(path: string, text: string): string {
  const temporary = `${path}.${process.pid}.tmp`;
  rmSync(temporary, { force: true });
  try {
    writeFileSync(temporary, text, { mode: 0o600, flag: "wx", flush: true });
  } catch (thrown) {
    rmSync(temporary, { force: true });
    throw thrown;
  }
  return temporary;
}

/** A new name is durable only after its folder was synced. Windows cannot open a folder for that. */
function syncFolder(path: string): void {
  if (!HAS_MODES) return;
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
