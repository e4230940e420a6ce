// Owns: `laneway chat` by pipe: each line of stdin is a message, one after the other, and what answers it goes to stdout.
// A part is acknowledged after stdout has taken it, and never written twice.
import { createInterface } from "node:readline";
import { EXIT, type ExitCode } from "../../kernel/errors.ts";
import type { Client } from "../host/client.ts";
import { isFull, isPassing } from "../host/errors.ts";
import { persist } from "../host/persist.ts";
import { accepted, acknowledged, type PartItem } from "../host/replies.ts";
import { textLines } from "../print/text.ts";
import type { Shell } from "../shell.ts";
import { type Chat, readUnread, waitForEnd } from "./chat.ts";

/** Longer than any restart; a script should not hang for ever on a host that was stopped. */
const GIVE_UP_MS = 600_000;

/** 1 when a message ended without an answer: failed, dead or cancelled. */
export async function pipe(shell: Shell, client: Client, chat: Chat): Promise<ExitCode> {
  const { signal } = new AbortController();
  const trouble = makeTrouble(shell);
  const shown = new Set<number>();
  const persistence = {
    again: (thrown: unknown) => isPassing(thrown) || isFull(thrown),
    giveUpMs: GIVE_UP_MS,
    onFailure: trouble.begins,
    signal,
  };

  async function persistently<T>(attempt: () => Promise<T>): Promise<T> {
    const result = await persist(attempt, persistence, shell);
    trouble.ends();
    return result;
  }

  async function show(parts: readonly PartItem[]): Promise<void> {
    const fresh = parts.filter(({ seq }) => !shown.has(seq));
    for (const { seq, text } of fresh) {
      await shell.out.write(`${textLines(text)}\n`);
      shown.add(seq);
    }
    const seq = Math.max(0, ...fresh.map((part) => part.seq));
    if (seq > 0) await persistently(() => client.call("ack", { ...chat, seq }, acknowledged));
  }

  async function answer(text: string): Promise<boolean> {
    const key = shell.ids.random();
    const { command } = await persistently(() => client.call("send", { ...chat, text, key }, accepted));
    const end = await waitForEnd(shell, client, command, persistence);
    await show((await persistently(() => readUnread(client, chat))).parts);
    return end.state === "done";
  }

  // Made once: nobody waits for a host that is not there at all.
  const { parts } = await readUnread(client, chat);
  if (parts.length > 0) await shell.err.write("While you were away:\n");
  await show(parts);
  let failed = false;
  for await (const line of createInterface({ input: shell.input, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.trim() === "/quit") break;
    if (line.trim() !== "" && !(await answer(line))) failed = true;
  }
  return failed ? EXIT.workFailed : EXIT.ok;
}

/** Says once what it waits for, and that a lost connection is back. */
function makeTrouble({ err }: Shell) {
  let what: "lost" | "full" | undefined;
  const say = (text: string) => void err.stream.write(`${text}\n`);
  return {
    begins(thrown: unknown): void {
      const now = isFull(thrown) ? "full" : "lost";
      if (now !== what) say(`${now === "full" ? "the queue is full" : "connection lost"}, trying again`);
      what = now;
    },
    ends(): void {
      if (what === "lost") say("connected again");
      what = undefined;
    },
  };
}
