// Owns: host.json, by which the command line finds the running host. It grants nothing; the token does.
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { z } from "zod";

/** The form of the file, for its two readers: the command line, and the next host, which names this one. */
export const hostFile = z.object({
  pid: z.int().min(1),
  /** Absent while the host starts. */
  address: z.url({ protocol: /^http$/ }).optional(),
  startedAt: z.string(),
  /** The settings file that the host was started with, when it is not the home's own: there the command line finds its token. */
  settings: z.string().optional(),
});
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
