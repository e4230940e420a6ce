// Owns: real folders for tests, gone when the test is.
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

export interface TemporaryFolder extends AsyncDisposable {
  readonly path: string;
  /** Absolute path of a name in the folder. */
  at(name: string): string;
  /** Writes a file, with the folders on the way to it, and returns its absolute path. */
  write(name: string, content: string | Uint8Array): Promise<string>;
}

/** An empty folder with no link on the way to it. */
export async function temporaryFolder(): Promise<TemporaryFolder> {
  const root = await realpath(await mkdtemp(path.join(tmpdir(), "laneway-")));
  const at = (name: string) => path.join(root, name);
  return {
    path: root,
    at,
    async write(name, content) {
      await mkdir(path.dirname(at(name)), { recursive: true });
      await writeFile(at(name), content);
      return at(name);
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

/** Makes a named pipe, which Node itself cannot. Not on Windows. */
export function makePipe(file: string): void {
  execFileSync("sh", ["-c", 'mkfifo "$1"', "sh", file]);
}
