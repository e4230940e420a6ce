// Owns: which paths no file tool may reach although they may lie inside a workspace: the product's own data.
// Never opens anything. Closing any descriptor of a database or lock file drops the POSIX locks that SQLite holds on
// it, so these files are known by path and by stat alone.
import { lstat, realpath, stat } from "node:fs/promises";
import path from "node:path";

/** What identifies a file whatever its name is. */
export interface Identity {
  readonly dev: bigint;
  readonly ino: bigint;
}

export interface Denied {
  /** True for a denied path, all below it, SQLite's files beside a `.db`, and a hard link or bind mount of it. */
  covers(realPath: string, identity: Identity): boolean;
}

/** The kernel's own view of processes and devices: `/proc/self/environ` holds secrets. Never part of a workspace. */
const KERNEL_FOLDERS = ["/proc", "/sys"];

/** SQLite keeps a database's newest pages, and locks, in files of these names beside it. */
const BESIDE_DATABASE = ["", "-wal", "-shm", "-journal"];

/**
 * Looks up where the denied paths are at this moment. They need not exist. Called for every use of a tool, since a
 * token or a settings file is replaced by renaming a new one over it.
 * @param paths absolute paths of files or folders.
 */
export async function lookUpDenied(paths: readonly string[]): Promise<Denied> {
  const found = await Promise.all(paths.map(whereIs));
  const roots = [...KERNEL_FOLDERS, ...found.flatMap((one) => one.paths)];
  const identities = new Set(found.flatMap((one) => one.identities).map(keyOf));
  return {
    covers: (realPath, identity) =>
      identities.has(keyOf(identity)) || roots.some((root) => isAtOrBelow(root, realPath)),
  };
}

/** True when `inner` is `outer` or lies below it. Both absolute; a sibling that shares a prefix is not below. */
export function isAtOrBelow(outer: string, inner: string): boolean {
  return inner === outer || inner.startsWith(outer.endsWith(path.sep) ? outer : outer + path.sep);
}

interface Place {
  readonly paths: readonly string[];
  readonly identities: readonly Identity[];
}

async function whereIs(given: string): Promise<Place> {
  const paths = new Set<string>();
  const identities: Identity[] = [];
  for (const ending of given.endsWith(".db") ? BESIDE_DATABASE : [""]) {
    const name = given + ending;
    paths.add(name);
    paths.add(path.join(await realFolder(path.dirname(name)), path.basename(name)));
    const target = await realpath(name).catch(() => undefined);
    if (target !== undefined) paths.add(target);
    for (const look of [lstat, stat]) {
      const seen = await look(name, { bigint: true }).catch(() => undefined);
      if (seen !== undefined) identities.push(seen);
    }
  }
  return { paths: [...paths], identities };
}

async function realFolder(folder: string): Promise<string> {
  return await realpath(folder).catch(() => folder);
}

function keyOf(identity: Identity): string {
  return `${identity.dev}:${identity.ino}`;
}
