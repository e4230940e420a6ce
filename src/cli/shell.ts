// Owns: what a command gets from its process: environment, time, randomness and the three streams.
// Never knows a command, never ends the process.
import type { Readable, Writable } from "node:stream";
import { type Clock, systemClock } from "../kernel/clock.ts";
import { systemCode } from "../kernel/errors.ts";
import { type Ids, systemIds } from "../kernel/ids.ts";
import { type Env, envText } from "../settings/env.ts";
import { type HomePaths, homePaths } from "../settings/home.ts";

export interface Output {
  /** Resolves once the system has taken the text; rejects with the system's error when nobody can read it. */
  write(text: string): Promise<void>;
  readonly stream: TerminalOutput;
  readonly isTerminal: boolean;
  /** On a terminal, unless NO_COLOR forbids it (no-color.org). */
  readonly colour: boolean;
  /** Width of the terminal; `undefined` where lines may have any length. */
  columns(): number | undefined;
}

export type TerminalOutput = Writable & { readonly isTTY?: boolean; readonly columns?: number };
export type TerminalInput = Readable & { readonly isTTY?: boolean };

export interface Shell {
  readonly env: Env;
  readonly paths: HomePaths;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly input: TerminalInput;
  readonly out: Output;
  readonly err: Output;
}

/** What every listing takes. */
export interface JsonOption {
  readonly json?: boolean | undefined;
}

export function processShell(env: Env): Shell {
  const { stdin, stdout, stderr } = process;
  return {
    env,
    paths: homePaths(env),
    clock: systemClock(),
    ids: systemIds(),
    input: stdin,
    out: makeOutput(stdout, env),
    err: makeOutput(stderr, env),
  };
}

const USUAL_COLUMNS = 80;

export function makeOutput(stream: TerminalOutput, env: Env): Output {
  const isTerminal = stream.isTTY === true;
  // A reader that is gone shows in the promise of `write`; without a listener it would also end the process.
  stream.on("error", () => {});
  return {
    write: (text) =>
      new Promise((resolve, reject) => {
        stream.write(text, (error) => (error ? reject(error) : resolve()));
      }),
    stream,
    isTerminal,
    colour: isTerminal && envText(env, "NO_COLOR") === undefined && env["TERM"] !== "dumb",
    // A terminal that does not know its size says 0.
    columns: () => (isTerminal ? stream.columns || USUAL_COLUMNS : undefined),
  };
}

/** Whether the reader of our output has gone, as `head` does: no failure, there is just nothing more to do. */
export function isReaderGone(thrown: unknown): boolean {
  return ["EPIPE", "ERR_STREAM_DESTROYED", "ERR_STREAM_WRITE_AFTER_END"].includes(systemCode(thrown) ?? "");
}
