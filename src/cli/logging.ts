// Owns: where log lines go: JSON to stderr when that is no terminal, and always to rotated files in the home.
import pino from "pino";
import { createStream } from "rotating-file-stream";
import type { Clock } from "../kernel/clock.ts";
import { type Log, pinoLog } from "../kernel/log.ts";

/** Enough for weeks of a personal host; more would fill small disks (Q17.3). */
const FILE_SIZE = "10M";
const FILES_KEPT = 5;

export interface Logging {
  readonly log: Log;
  /** Resolves when what was logged is in the file. */
  close(): Promise<void>;
}

/** After a write that failed the file is opened anew, but not for every line of a disk that stays full. */
const REOPEN_MS = 10_000;

/** @param options.folder of the log files; they are rotated by size and the oldest are removed */
export function startLogging(options: { level: pino.Level; folder: string; toStderr: boolean; clock: Clock }): Logging {
  const file = lastingFile(options.folder, options.clock);
  const streams: pino.StreamEntry[] = [{ level: options.level, stream: file }];
  if (options.toStderr) streams.push({ level: options.level, stream: process.stderr });
  const logger = pino(
    { level: options.level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.multistream(streams),
  );
  return { log: pinoLog(logger), close: file.close };
}

/** A full disk must not end the host: lines are lost while it lasts, and it ends a stream for good, so a new one follows. */
function lastingFile(folder: string, clock: Clock) {
  let brokenAt: number | undefined;
  const open = () => {
    const stream = createStream("laneway.log", { path: folder, size: FILE_SIZE, maxFiles: FILES_KEPT, mode: 0o600 });
    return stream.on("error", () => {
      brokenAt = clock.mono();
    });
  };
  let current = open();
  return {
    write(line: string) {
      if (brokenAt !== undefined && clock.mono() - brokenAt >= REOPEN_MS) {
        brokenAt = undefined;
        current.destroy();
        current = open();
      }
      if (brokenAt === undefined) current.write(line);
    },
    close: (): Promise<void> =>
      brokenAt === undefined ? new Promise((resolve) => current.end(() => resolve())) : Promise.resolve(),
  };
}
