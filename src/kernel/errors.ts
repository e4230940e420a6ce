// Owns: the errors by cause and the exit codes. A message says what was expected, what came, what to do.

/** Exit codes of the process, fixed by the contract. A supervisor must not restart on 65, 75 and 78. */
export const EXIT = {
  ok: 0,
  workFailed: 1,
  usage: 2,
  dataUnusable: 65,
  notRunning: 69,
  internal: 70,
  alreadyRunning: 75,
  settingsRefused: 78,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** An error that ends the process with a given exit code when nobody handles it. */
export abstract class LanewayError extends Error {
  abstract readonly code: string;
  readonly exitCode: ExitCode = EXIT.workFailed;
  /** What the reader can do about it, in one sentence. */
  readonly hint: string | undefined;

  constructor(message: string, options: { hint?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.hint = options.hint;
  }
}

/** The settings are unusable and there is no last good copy. */
export class ConfigError extends LanewayError {
  readonly code = "settings";
  override readonly exitCode = EXIT.settingsRefused;
}

/** Another host holds this data directory (G13). */
export class AlreadyRunning extends LanewayError {
  readonly code = "already_running";
  override readonly exitCode = EXIT.alreadyRunning;
}

/** No host runs on this home, or it cannot be reached. */
export class NotRunning extends LanewayError {
  readonly code = "not_running";
  override readonly exitCode = EXIT.notRunning;
}

/** The data is corrupt, of a newer version, or on a file system that cannot hold it. */
export class DataUnusable extends LanewayError {
  readonly code = "data_unusable";
  override readonly exitCode = EXIT.dataUnusable;
}

/** This process lost its generation: another host has taken over (G6). */
export class FencedOff extends LanewayError {
  readonly code = "fenced_off";
  override readonly exitCode = EXIT.internal;
}

/** The store cannot write now (disk full, I/O error). Nothing of the batch was kept; try again when it is writable. */
export class StoreUnavailable extends LanewayError {
  readonly code = "store_unavailable";
}

/** Input that does not have the expected form. Nothing was changed. */
export class InvalidInput extends LanewayError {
  readonly code: string = "invalid_input";
  override readonly exitCode = EXIT.usage;
}

/** A thing that was named does not exist. */
export class NotFound extends LanewayError {
  readonly code = "not_found";
}

/** The queue is full; nothing was accepted (G15). */
export class QueueFull extends LanewayError {
  readonly code = "queue_full";
}

/** Not allowed for this caller. */
export class Forbidden extends LanewayError {
  readonly code: string = "forbidden";
}

/** A tool refused or failed; its text is a result for the model, not the end of the turn. */
export class ToolError extends LanewayError {
  readonly code = "tool";
}

/** The work was told to stop. `reason` is what the signal carried. */
export class Aborted extends LanewayError {
  readonly code = "aborted";
  readonly reason: unknown;
  constructor(reason?: unknown) {
    super("the work was stopped", { cause: reason });
    this.reason = reason;
  }
}

/** The text of anything that was thrown, for logs and messages. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name;
  return String(thrown);
}

/** The system's error name (`ENOSPC`, `SQLITE_FULL` …), when the thrown value has one. */
export function systemCode(thrown: unknown): string | undefined {
  if (typeof thrown !== "object" || thrown === null || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" ? thrown.code : undefined;
}
