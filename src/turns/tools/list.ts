// Owns: the tool `list`: the names in a folder of the workspace. Changes nothing, follows no link that it meets on the way
// down, opens only through workspace.ts and shows every name escaped (FILE-R3).
import type { BigIntStats, Dirent } from "node:fs";
import { lstat, opendir } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { ToolError } from "../../kernel/errors.ts";
import { visible } from "../../kernel/visible.ts";
import { asToolError, type OpenedFolder, shown } from "./opened.ts";
import type { Tool } from "./port.ts";
import { openInside, type Workspace } from "./workspace.ts";

/** More lines than a model can use. */
const MAX_ENTRIES = 1000;
/** A thousand ordinary lines have 50 KB; names made of escapes could have megabytes. */
const MAX_TEXT_LENGTH = 256 * 1024;
/** Names read of one folder, to sort them: some 5 MB of memory. A folder with more is listed in part and says so. */
const MAX_NAMES = 20_000;

const listInput = z.strictObject({
  path: z.string().min(1).default(".").describe("Folder in the workspace, relative to its root."),
  depth: z.int().min(1).max(3).default(1).describe("How many levels of folders to show, 1 to 3."),
});
type ListInput = z.output<typeof listInput>;

/**
 * The tool `list`.
 * @param deps.denied absolute paths of the product's own files and folders, see Workspace.
 */
export function makeListTool(deps: Pick<Workspace, "denied" | "means">): Tool<ListInput> {
  return {
    name: "list",
    description: `Lists a folder of the workspace: names, folders with a slash, sizes in bytes. At most ${MAX_ENTRIES} entries.`,
    input: listInput,
    effect: "read",
    timeoutMs: 30_000,
    async run(input, context) {
      const listing = await gather({ ...deps, root: context.workspace }, input, context.signal);
      return shownListing(input, listing);
    },
  };
}

interface Entry {
  /** Relative to the listed folder. */
  readonly name: string;
  /** What stands behind the name. */
  readonly note: string;
}

interface Listing {
  readonly entries: Entry[];
  /** Why entries are missing, one line each. */
  readonly gaps: Set<string>;
}

/** Level by level, so that one large folder cannot hide its neighbours behind the cap. */
async function gather(workspace: Workspace, input: ListInput, signal: AbortSignal): Promise<Listing> {
  const listing: Listing = { entries: [], gaps: new Set() };
  let level = [""];
  for (let depth = 1; depth <= input.depth && level.length > 0; depth++) {
    const below: string[] = [];
    for (const folder of level) {
      signal.throwIfAborted();
      below.push(...(await listFolder({ workspace, input, folder, listing }, signal)));
    }
    level = below;
  }
  return listing;
}

interface Visit {
  readonly workspace: Workspace;
  readonly input: ListInput;
  /** The folder to list, relative to the one that was asked for; empty for that one. */
  readonly folder: string;
  readonly listing: Listing;
}

/** Adds the entries of one folder and returns the folders among them, as relative paths. */
async function listFolder(visit: Visit, signal: AbortSignal): Promise<string[]> {
  const { workspace, input, folder, listing } = visit;
  if (isFull(listing)) return [];
  const wanted = folder === "" ? input.path : `${input.path}/${folder}`;
  try {
    await using opened = await openInside(workspace, wanted);
    if (opened.kind === "file") throw new ToolError(`"${shown(wanted)}" is a file. Use read to see it.`);
    const names = await namesIn(opened, listing, signal).catch((thrown: unknown) => {
      signal.throwIfAborted();
      throw asToolError(thrown, wanted);
    });
    const folders: string[] = [];
    for (const entry of names) {
      if (isFull(listing)) break;
      const name = folder === "" ? entry.name : `${folder}/${entry.name}`;
      const note = await noteOn(opened, entry);
      listing.entries.push({ name, note });
      if (note === FOLDER) folders.push(name);
    }
    return folders;
  } catch (thrown) {
    // What was asked for must be listed; a folder further down may be closed, or gone by now.
    if (folder === "" || !(thrown instanceof ToolError)) throw thrown;
    listing.gaps.add(`not listed: ${visible(folder)}/`);
    return [];
  }
}

/** Says so in the listing, too. */
function isFull({ entries, gaps }: Listing): boolean {
  if (entries.length < MAX_ENTRIES) return false;
  gaps.add(`stopped at ${MAX_ENTRIES} entries, there is more: list a folder further down, or with a smaller depth`);
  return true;
}

async function namesIn(folder: OpenedFolder, listing: Listing, signal: AbortSignal): Promise<Dirent[]> {
  const found: Dirent[] = [];
  for await (const entry of await opendir(folder.at, { bufferSize: 256 })) {
    signal.throwIfAborted();
    if (found.length === MAX_NAMES) {
      listing.gaps.add(`a folder has more than ${MAX_NAMES} names: only that many, in no order, were looked at`);
      break;
    }
    found.push(entry);
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

const FOLDER = "/";

async function noteOn(folder: OpenedFolder, entry: Dirent): Promise<string> {
  const stat = await lstat(path.join(folder.at, entry.name), { bigint: true }).catch(() => undefined);
  // Gone meanwhile, or a name that is not UTF-8 and so cannot be asked for.
  if (stat === undefined) return "  (unreadable)";
  if (folder.denied.covers(path.join(folder.realPath, entry.name), stat)) return "  (closed to tools)";
  return noteOf(stat);
}

function noteOf(stat: BigIntStats): string {
  if (stat.isDirectory()) return FOLDER;
  if (stat.isFile()) return `  ${stat.size}`;
  // The target is not shown: it may name what lies outside.
  if (stat.isSymbolicLink()) return " -> (link)";
  return "  (pipe, socket or device)";
}

function shownListing(input: ListInput, { entries, gaps }: Listing): string {
  const head = `${shown(input.path)}: ${entries.length} ${entries.length === 1 ? "entry" : "entries"}`;
  const lines = [head];
  let room = MAX_TEXT_LENGTH;
  for (const { name, note } of entries.toSorted(asTree)) {
    const line = harmless(visible(name)) + note;
    room -= line.length + 1;
    if (room < 0) {
      gaps.add(`cut at ${MAX_TEXT_LENGTH} characters: list a folder further down, or with a smaller depth`);
      break;
    }
    lines.push(line);
  }
  return [...lines, ...[...gaps].map((gap) => `[${gap}]`)].join("\n");
}

/** Each folder directly before what is in it: a slash sorts before all other characters. */
function asTree(a: Entry, b: Entry): number {
  return a.name.replaceAll("/", "\0") < b.name.replaceAll("/", "\0") ? -1 : 1;
}

/** Copied into a command, a name with a leading dash would be taken for an option. */
function harmless(name: string): string {
  return name.startsWith("-") ? `./${name}` : name;
}
