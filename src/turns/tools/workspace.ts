// Owns: opening a path inside an agent's workspace, and nothing outside it, however the path is written, wherever links lead
// and whatever changes meanwhile (FILE-R1, G25). Every file tool opens through here and reads only from what it returns.
// Never writes. How it is opened depends on the system: workspace-descriptor.ts on Linux, workspace-portable.ts elsewhere.
import { lookUpDenied } from "./denied.ts";
import { asToolError, type Opened, refuser, type Wish } from "./opened.ts";
import { openByDescriptor } from "./workspace-descriptor.ts";
import { openByRealPath } from "./workspace-portable.ts";

export interface Workspace {
  /** Absolute; may itself be, or lie behind, a symbolic link. */
  readonly root: string;
  /** Absolute paths of the product's own files and folders, which stay closed even when they lie inside the root. */
  readonly denied: readonly string[];
  /** `descriptor` needs Linux with /proc and is the default there; `realpath` works everywhere and is weaker. */
  readonly means?: "descriptor" | "realpath" | undefined;
}

/**
 * Opens an existing regular file for reading, or a folder for listing. Dispose of it with `await using`.
 * A hard link counts as a file of the workspace, since nothing tells it from one; only those of denied files are refused.
 * @param wanted relative to the root, or absolute inside it. Taken literally: no `~`, no percent codes.
 * @throws ToolError for a path that leaves the workspace, is one of the product's own, is neither a file nor a folder, or
 * cannot be opened. Its text never tells whether something outside exists.
 */
export async function openInside(workspace: Workspace, wanted: string): Promise<Opened> {
  const refuse = refuser(wanted);
  if (wanted.includes("\0")) throw refuse("outside");
  try {
    const wish: Wish = { root: workspace.root, denied: await lookUpDenied(workspace.denied), wanted, refuse };
    const means = workspace.means ?? (process.platform === "linux" ? "descriptor" : "realpath");
    return await (means === "descriptor" ? openByDescriptor(wish) : openByRealPath(wish));
  } catch (thrown) {
    throw asToolError(thrown, wanted);
  }
}
