// Owns: starting store-child.ts and listening to it.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { TempHome } from "./store.ts";

const SCRIPT = fileURLToPath(new URL("store-child.ts", import.meta.url));

export interface StoreProcess extends AsyncDisposable {
  readonly pid: number;
  /** Everything that it has said. Grows until `ended` is resolved, also after its death. */
  readonly said: readonly string[];
  /** What it wrote to its error output. */
  errors(): string;
  /** The first line that matches, said already or later. Rejects when the process ends without it. */
  line(pattern: RegExp): Promise<string>;
  /** Resolves as soon as it has said so many lines. */
  lines(count: number): Promise<void>;
  tell(word: string): void;
  /** No more words: most tasks end by that. */
  hangUp(): void;
  kill(): void;
  /** Resolves when it has ended and all it said has been read. */
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

interface StartOptions {
  /** Command and arguments before the `node …` of the child. */
  readonly prefix?: readonly string[];
}

/** Starts a task of store-child.ts on a home. Disposing kills it. */
export function startStoreProcess(
  task: string,
  home: TempHome,
  args: readonly string[] = [],
  { prefix = [] }: StartOptions = {},
): StoreProcess {
  const [command = "", ...rest] = [...prefix, process.execPath, SCRIPT, task, home.path, ...args];
  const child = spawn(command, rest, { stdio: ["pipe", "pipe", "pipe"] });
  const said: string[] = [];
  const wakers = new Set<() => void>();
  const wake = () => {
    for (const waker of [...wakers]) waker();
  };
  let errors = "";
  let over = false;
  createInterface({ input: child.stdout }).on("line", (line) => {
    said.push(line);
    wake();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    errors += chunk.toString();
  });
  // It may have died before it read a word.
  child.stdin.on("error", () => {});
  const ended = end(child).finally(() => {
    over = true;
    wake();
  });

  const until = <T>(found: () => T | undefined, what: string) =>
    new Promise<T>((resolve, reject) => {
      const look = () => {
        const result = found();
        if (result === undefined && !over) return;
        wakers.delete(look);
        if (result !== undefined) resolve(result);
        else reject(new Error(`${task} ended without ${what}; it said ${JSON.stringify(said)} ${errors}`));
      };
      wakers.add(look);
      look();
    });

  return {
    pid: child.pid ?? 0,
    said,
    errors: () => errors,
    line: (pattern) => until(() => said.find((line) => pattern.test(line)), String(pattern)),
    lines: async (count) => {
      await until(() => (said.length >= count ? true : undefined), `${count} lines`);
    },
    tell: (word) => child.stdin.write(`${word}\n`),
    hangUp: () => child.stdin.end(),
    kill: () => child.kill("SIGKILL"),
    ended,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

async function end(child: ChildProcess): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  await once(child, "close");
  return { code: child.exitCode, signal: child.signalCode };
}
