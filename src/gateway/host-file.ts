// Owns: host.json, by which the command line finds the running host. It grants nothing; the token does.
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { z } from "zod";

const hostFile = z.object({ pid: z.int(), address: z.string().optional(), startedAt: z.string() });
export type HostFile = z.infer<typeof hostFile>;

/** Undefined when there is none or it is unreadable: it is only a hint. */
export function readHostFile(path: string): HostFile | undefined {
  try {
    const parsed = hostFile.safeParse(JSON.parse(readFileSync(path, "utf8")));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

export function writeHostFile(path: string, content: HostFile): void {
  writeFileSync(`${path}.new`, JSON.stringify(content), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

export function removeHostFile(path: string): void {
  rmSync(path, { force: true });
}
