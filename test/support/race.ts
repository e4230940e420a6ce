// Owns: running something again and again while another process swaps a folder for a link under it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export interface Swap {
  /** The name that is in turn the folder and the link. All three lie in one folder; absolute. */
  readonly name: string;
  readonly folder: string;
  readonly link: string;
}

/** Calls `attempt` one after the other, `times` times, while the swaps go on. */
export async function whileSwapping<T>(swap: Swap, times: number, attempt: () => Promise<T>): Promise<T[]> {
  const script = fileURLToPath(new URL("swap-loop.ts", import.meta.url));
  const child = spawn(process.execPath, [script, swap.name, swap.folder, swap.link], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  try {
    await Promise.race([
      once(child.stdout, "data"),
      ended.then(() => Promise.reject(new Error("the swaps ended early"))),
    ]);
    const results: T[] = [];
    for (let count = 0; count < times; count++) results.push(await attempt());
    if (child.exitCode !== null) throw new Error("the swaps ended early");
    return results;
  } finally {
    child.stdin.end();
    await ended;
  }
}
