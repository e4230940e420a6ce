// Owns: the shape of logging. Logs are events with fields; never message text, never a secret.
import type { Logger } from "pino";
import { messageOf, systemCode } from "./errors.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface Log {
  /** `event` is a dotted name such as `command.finished`. */
  info(event: string, fields?: Fields): void;
  warn(event: string, fields?: Fields): void;
  error(event: string, fields?: Fields): void;
  debug(event: string, fields?: Fields): void;
}

export function pinoLog(logger: Logger): Log {
  const at =
    (level: "info" | "warn" | "error" | "debug") =>
    (event: string, fields: Fields = {}) =>
      logger[level]({ event, ...fields });
  return { info: at("info"), warn: at("warn"), error: at("error"), debug: at("debug") };
}

export const silentLog: Log = { info() {}, warn() {}, error() {}, debug() {} };

/** The fields of a thrown value that are safe and useful in a log line. */
export function errorFields(thrown: unknown): Fields {
  return {
    error: messageOf(thrown),
    code: systemCode(thrown),
    ...(thrown instanceof Error && thrown.cause !== undefined ? { cause: messageOf(thrown.cause) } : {}),
  };
}

/** Hands a promise to the background: it is never awaited, and a rejection is logged under `name`. */
export type Background = (name: string, promise: Promise<unknown>) => void;

export function makeBackground(log: Log): Background {
  return (name, promise) => {
    promise.catch((thrown: unknown) => log.error("background.failed", { name, ...errorFields(thrown) }));
  };
}
