// Owns: a real disk of a few megabytes for the tests of a full disk, where the machine lets this process mount one.
import { execFileSync } from "node:child_process";
import { rmSync, statfsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { messageOf } from "../../src/kernel/errors.ts";

export interface SmallDisk extends Disposable {
  /** Takes the free space away except for so many bytes. */
  fill(leaveBytes: number): void;
  /** Gives it back. */
  free(): void;
}

/** A file system of `bytes` in memory, mounted on the folder; or the reason why there is none. */
export function mountSmallDisk(folder: string, bytes: number): SmallDisk | string {
  try {
    const options = `size=${bytes},mode=700`;
    execFileSync("mount", ["-t", "tmpfs", "-o", options, "laneway-test", folder], { stdio: "pipe" });
  } catch (thrown) {
    return messageOf(thrown).trim();
  }
  const ballast = path.join(folder, "ballast");
  const freeBytes = () => {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  };
  return {
    fill(leaveBytes) {
      rmSync(ballast, { force: true });
      writeFileSync(ballast, Buffer.alloc(Math.max(0, freeBytes() - leaveBytes)));
    },
    free: () => rmSync(ballast, { force: true }),
    [Symbol.dispose]: () => {
      execFileSync("umount", ["--lazy", folder], { stdio: "pipe" });
    },
  };
}
