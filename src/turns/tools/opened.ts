// Owns: what opening a path inside a workspace gives, and the words with which it is refused.
import type { FileHandle } from "node:fs/promises";
import { systemCode, ToolError } from "../../kernel/errors.ts";
import { visible } from "../../kernel/visible.ts";
import type { Denied } from "./denied.ts";

interface Place {
  /** Where it really is, absolute, as seen when it was opened. */
  readonly realPath: string;
  readonly denied: Denied;
}

export interface OpenedFile extends Place, AsyncDisposable {
  readonly kind: "file";
  readonly handle: FileHandle;
  readonly sizeBytes: number;
}

export interface OpenedFolder extends Place, AsyncDisposable {
  readonly kind: "folder";
  /** The path to list it by until it is disposed of; on Linux it leads to this very folder whatever happens to its name. */
  readonly at: string;
}

export type Opened = OpenedFile | OpenedFolder;

/** What to open, and how a refusal of it is made. */
export interface Wish {
  /** The workspace root, absolute, as the settings give it. */
  readonly root: string;
  readonly denied: Denied;
  readonly wanted: string;
  readonly refuse: Refuse;
}

export type Refuse = (cause: keyof typeof REFUSALS) => ToolError;

/** `outside` says the same whether the outer path exists or not. */
const REFUSALS = {
  outside: "is outside the workspace. Name a path inside it, relative to its root.",
  denied: "belongs to the host itself and is closed to tools.",
  special: "is neither a file nor a folder (a pipe, socket or device) and is not opened.",
  winding: "leads through too many folders and links. Name a shorter path.",
  moved: "was moved while it was opened. Try again.",
  "not-folder": "passes through something that is not a folder.",
  "no-proc": "cannot be opened safely: the host needs /proc to be mounted. Tell the owner.",
} as const;

const SYSTEM_CAUSES: Readonly<Record<string, string>> = {
  ENOENT: "does not exist in the workspace. Use list to see what does; ~ and % codes are taken literally.",
  ENOTDIR: REFUSALS["not-folder"],
  EACCES: "is not readable for the host.",
  EPERM: "is not readable for the host.",
  ENAMETOOLONG: "has a name that is too long.",
  EINVAL: REFUSALS.moved,
  ELOOP: REFUSALS.moved,
};

export function refuser(wanted: string): Refuse {
  return (cause) => new ToolError(`"${shown(wanted)}" ${REFUSALS[cause]}`);
}

/** A ToolError as it is; anything else as one. The system's own message holds paths of the host, the model gets the cause. */
export function asToolError(thrown: unknown, wanted: string): ToolError {
  if (thrown instanceof ToolError) return thrown;
  const code = systemCode(thrown) ?? "unknown error";
  return new ToolError(`"${shown(wanted)}" ${SYSTEM_CAUSES[code] ?? `cannot be opened (${code}).`}`, { cause: thrown });
}

/** A path as messages show it: escaped, and long enough to recognise it. */
export function shown(wanted: string): string {
  return visible(wanted.length > 200 ? `${wanted.slice(0, 200)}…` : wanted);
}
