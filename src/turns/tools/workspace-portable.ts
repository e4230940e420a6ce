// Owns: opening inside a workspace where the system cannot say where an open descriptor is (macOS, Windows).
// The real path is checked before and after, and the file must be the same throughout. Weaker than the walk on Linux: a
// local program that swaps a folder for a link and back, at four moments in the right order, can win, and so can one that swaps
// a folder while it is listed. Nothing that comes in from outside can do that; a program that the agent runs could try.
import { constants } from "node:fs";
import { lstat, open, realpath } from "node:fs/promises";
import path from "node:path";
import { isAtOrBelow } from "./denied.ts";
import type { Opened, Wish } from "./opened.ts";

/** Windows has neither of the two flags: there they are undefined, which `|` takes for 0. */
const SAFE_READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** See openInside, which is the only caller. Throws the system's own errors too. */
export async function openByRealPath(wish: Wish): Promise<Opened> {
  const root = await realpath(wish.root);
  const given = path.resolve(wish.root);
  const plain = path.resolve(given, wish.wanted);
  if (!isAtOrBelow(given, plain) && !isAtOrBelow(root, plain)) throw wish.refuse("outside");
  const before = await look(root, plain, wish);
  const place = { realPath: before.realPath, denied: wish.denied };
  if (before.stat.isDirectory()) {
    return { kind: "folder", at: before.realPath, ...place, [Symbol.asyncDispose]: async () => {} };
  }
  if (!before.stat.isFile()) throw wish.refuse("special");
  const handle = await open(before.realPath, SAFE_READ);
  try {
    const opened = await handle.stat({ bigint: true });
    const after = await look(root, plain, wish);
    for (const seen of [before.stat, after.stat]) {
      if (seen.ino !== opened.ino || seen.dev !== opened.dev) throw wish.refuse("moved");
    }
    return {
      kind: "file",
      handle,
      sizeBytes: Number(opened.size),
      ...place,
      [Symbol.asyncDispose]: () => handle.close(),
    };
  } catch (thrown) {
    await handle.close();
    throw thrown;
  }
}

/** Looks without opening: a denied file must not be opened even for a moment. */
async function look(root: string, plain: string, wish: Wish) {
  const realPath = await realpath(plain).catch(async (thrown: unknown) => {
    if (await breaksAtLink(root, plain)) throw wish.refuse("outside");
    throw thrown;
  });
  if (!isAtOrBelow(root, realPath)) throw wish.refuse("outside");
  const stat = await lstat(realPath, { bigint: true });
  if (wish.denied.covers(realPath, stat)) throw wish.refuse("denied");
  return { realPath, stat };
}

/**
 * True when a path that cannot be resolved fails at or behind a link, which may lead outside. It is then refused like any
 * path outside, so that the answer does not tell what exists there.
 */
async function breaksAtLink(root: string, plain: string): Promise<boolean> {
  const parent = path.dirname(plain);
  const realParent = await realpath(parent).catch(() => undefined);
  if (realParent === undefined) return parent === plain || (await breaksAtLink(root, parent));
  if (!isAtOrBelow(root, realParent)) return true;
  const stat = await lstat(plain).catch(() => undefined);
  return stat?.isSymbolicLink() ?? false;
}
