// Owns: opening inside a workspace on Linux, free of races: what is checked is what is read. It does what openat2 with
// RESOLVE_BENEATH would do, which Node cannot call: each part of the path is opened by name below the descriptor of the folder
// before it, links are read and walked as text, and `..` goes back along the descriptors. So nothing outside the root is ever
// looked up. Never opens a file for reading before its path, kind and identity are checked.
import { constants } from "node:fs";
import { type FileHandle, open, readlink } from "node:fs/promises";
import path from "node:path";
import { isAtOrBelow } from "./denied.ts";
import type { Opened, Wish } from "./opened.ts";

/** Names a file without opening it: no device acts, no pipe is joined, and closing it drops no lock (open(2), O_PATH). */
const O_PATH = 0o10000000;
const NAME_ONLY = O_PATH | constants.O_NOFOLLOW;
/** The parts of a path with all its links: far more than an honest path has, and the end of a loop of links. */
const MAX_STEPS = 256;

/** A walk from the root to what is wanted. */
interface Walk {
  readonly wish: Wish;
  /** The root as it was given and as it really is. */
  readonly roots: readonly [given: string, real: string];
  /** Open descriptors from the root down to where the walk stands. */
  readonly trail: FileHandle[];
  /** The parts still to walk, the next one first. */
  readonly todo: string[];
}

/** See openInside, which is the only caller. Throws the system's own errors too. */
export async function openByDescriptor(wish: Wish): Promise<Opened> {
  const trail = [await open(wish.root, O_PATH | constants.O_DIRECTORY)];
  try {
    const roots = [wish.root, await realRoot(trail, wish)] as const;
    const walk: Walk = { wish, roots, trail, todo: partsBelow(roots, wish.wanted, wish) };
    for (let steps = 0; walk.todo.length > 0; steps++) {
      if (steps === MAX_STEPS) throw wish.refuse("winding");
      await takeStep(walk);
    }
    return await settle(walk);
  } finally {
    await closeFrom(trail, 0);
  }
}

async function realRoot(trail: readonly FileHandle[], wish: Wish): Promise<string> {
  return await readlink(pathOf(standing(trail))).catch(() => {
    throw wish.refuse("no-proc");
  });
}

async function takeStep(walk: Walk): Promise<void> {
  const { wish, trail, todo } = walk;
  const name = todo.shift() ?? ".";
  if (name === "..") {
    if (trail.length === 1) throw wish.refuse("outside");
    return await closeFrom(trail, -1);
  }
  const entry = `${pathOf(standing(trail))}/${name}`;
  trail.push(await open(entry, NAME_ONLY));
  const stat = await check(walk);
  if (stat.isSymbolicLink()) {
    await closeFrom(trail, -1);
    await follow(walk, await readlink(entry));
  } else if (!stat.isDirectory() && todo.length > 0) {
    throw wish.refuse("not-folder");
  }
}

/** Should the name mean another link by now, then that one is walked, under the same checks. */
async function follow({ wish, roots, trail, todo }: Walk, target: string): Promise<void> {
  todo.unshift(...partsBelow(roots, target, wish));
  if (path.isAbsolute(target)) await closeFrom(trail, 1);
}

/** Checks where the walk stands: inside, although a folder of the trail may have been moved, and not denied. */
async function check({ wish, roots, trail }: Walk) {
  const here = standing(trail);
  const stat = await here.stat({ bigint: true });
  const realPath = await readlink(pathOf(here));
  if (!isAtOrBelow(roots[1], realPath)) throw wish.refuse("moved");
  if (wish.denied.covers(realPath, stat)) throw wish.refuse("denied");
  return Object.assign(stat, { realPath });
}

/** Makes what the walk has reached readable: by its descriptor, not by its name, so that it is what was checked. */
async function settle(walk: Walk): Promise<Opened> {
  const stat = await check(walk);
  const here = standing(walk.trail);
  const place = { realPath: stat.realPath, denied: walk.wish.denied };
  if (stat.isDirectory()) {
    walk.trail.pop();
    return { kind: "folder", at: pathOf(here), ...place, [Symbol.asyncDispose]: () => here.close() };
  }
  if (!stat.isFile()) throw walk.wish.refuse("special");
  const handle = await open(pathOf(here), constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  return { kind: "file", handle, sizeBytes: Number(stat.size), ...place, [Symbol.asyncDispose]: () => handle.close() };
}

/** The parts of a relative path, or of an absolute one below a root: compared part by part, never as text. */
function partsBelow(roots: readonly string[], wanted: string, wish: Wish): string[] {
  const parts = partsOf(wanted);
  if (!path.isAbsolute(wanted)) return parts;
  for (const root of roots.map(partsOf)) {
    if (root.every((part, index) => part === parts[index])) return parts.slice(root.length);
  }
  throw wish.refuse("outside");
}

function partsOf(text: string): string[] {
  return text.split("/").filter((part) => part !== "" && part !== ".");
}

/** The descriptor on which the walk stands. The trail holds at least the root until it is closed. */
function standing(trail: readonly FileHandle[]): FileHandle {
  const handle = trail.at(-1);
  if (handle === undefined) throw new Error("expected a trail that begins at the root, got an empty one");
  return handle;
}

async function closeFrom(trail: FileHandle[], start: number): Promise<void> {
  await Promise.all(trail.splice(start).map((handle) => handle.close()));
}

/** The kernel's name for an open descriptor; it leads to the file itself, even when its name is gone. */
function pathOf(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`;
}
