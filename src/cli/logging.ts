// Owns: where log lines go: JSON to stderr when that is no terminal, and always to rotated files in the home.
import pino from "pino";
import { createStream } from "rotating-file-stream";
import { type Log, pinoLog } from "../kernel/log.ts";

/** Enough for weeks of a personal host; more would fill small disks (Q17.3). */
const FILE_SIZE = "10M";
const FILES_KEPT = 5;

export interface Logging {
  readonly log: Log;
  /** Resolves when what was logged is in the file. */
  close(): Promise<void>;
}

/** @param options.folder of the log files; they are rotated by size and the oldest are removed */
export function startLogging(options: { level: pino.Level; folder: string; toStderr: boolean }): Logging {
  const file = createStream("laneway.log", {
    path: options.folder,
    size: FILE_SIZE,
    maxFiles: FILES_KEPT,
    mode: 0o600,
  });
  // A full disk must not end the host: the line is lost, the work is not.
  file.on("error", () => {});
  const streams: pino.StreamEntry[] = [{ level: options.level, stream: file }];
  if (options.toStderr) streams.push({ level: options.level, stream: process.stderr });
  const logger = pino(
    { level: options.level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.multistream(streams),
  );
  return { log: pinoLog(logger), close: () => new Promise((resolve) => file.end(() => resolve())) };
}
