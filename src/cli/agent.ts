// Owns: `laneway agent`: one message for scripts. It is accepted once, whatever the connection does, and with --wait its
// answer is the output.
import { EXIT, type ExitCode, InvalidInput, NotRunning } from "../kernel/errors.ts";
import { visible } from "../kernel/visible.ts";
import { type Chat, chatOf, readUnread, waitForEnd } from "./chat/chat.ts";
import { type Client, makeClient } from "./host/client.ts";
import { AnswerLost, isPassing } from "./host/errors.ts";
import { persist } from "./host/persist.ts";
import { accepted, acknowledged, type Waited } from "./host/replies.ts";
import { jsonLine } from "./print/json.ts";
import { paint } from "./print/paint.ts";
import { startProgress } from "./print/progress.ts";
import { textLines } from "./print/text.ts";
import type { JsonOption, Shell } from "./shell.ts";

interface AgentOptions extends JsonOption {
  readonly message: string;
  readonly session?: string | undefined;
  readonly wait?: boolean | undefined;
}

/** A restart takes seconds. A host that is away for longer was stopped, and a script should hear of it. */
const GIVE_UP_MS = 120_000;
const FAILED_STATES = ["failed", "dead", "cancelled"];

export async function agent(shell: Shell, { message, session, wait, json }: AgentOptions): Promise<ExitCode> {
  const chat = chatOf(session);
  const text = message === "-" ? await readAll(shell) : message;
  if (text.trim() === "")
    throw new InvalidInput("the message is empty", { hint: "Give it with -m TEXT, or -m - for stdin." });
  const client = makeClient(shell);
  const { command, seq, duplicate } = await sendOnce(shell, client, chat, text);
  if (!wait) {
    await shell.out.write(json ? jsonLine({ id: command, state: "queued", seq, duplicate }) : `${command}\n`);
    return EXIT.ok;
  }
  const end = await waitWithProgress(shell, client, command);
  await writeEnd(shell, end, json === true);
  await acknowledge(client, chat, end);
  return FAILED_STATES.includes(end.state) ? EXIT.workFailed : EXIT.ok;
}

async function readAll({ input }: Shell): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of input) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString("utf8");
}

/** A lost answer is asked for again with the same key. A host that was never there is not waited for. */
function sendOnce(shell: Shell, client: Client, chat: Chat, text: string) {
  const key = shell.ids.random();
  let reached = false;
  const again = (thrown: unknown) => {
    if (!(thrown instanceof NotRunning)) reached = true;
    return reached && isPassing(thrown);
  };
  const attempt = () => client.call("send", { ...chat, text, key }, accepted);
  return persist(attempt, { again, giveUpMs: GIVE_UP_MS, signal: new AbortController().signal }, shell);
}

async function waitWithProgress(shell: Shell, client: Client, command: number): Promise<Waited> {
  let doing = "queued";
  const stopProgress = startProgress(shell, () => `command ${command}: ${doing}`);
  const onState = (state: string) => {
    doing = visible(state);
  };
  try {
    return await waitForEnd(shell, client, command, {
      giveUpMs: GIVE_UP_MS,
      onState,
      signal: new AbortController().signal,
    });
  } catch (thrown) {
    if (!(thrown instanceof NotRunning || thrown instanceof AnswerLost)) throw thrown;
    throw new NotRunning(`the host went away while command ${command} was being worked on`, {
      hint: `The message is kept. When the host runs again, \`laneway queue show ${command}\` tells how it went.`,
      cause: thrown,
    });
  } finally {
    stopProgress();
  }
}

/** Answers and notices to stdout, what went wrong to stderr. */
async function writeEnd({ out, err }: Shell, { command, ...end }: Waited, json: boolean): Promise<void> {
  if (json) return out.write(jsonLine({ id: command, ...end }));
  const said = end.parts.filter((part) => part.class !== "failure").map(({ text }) => textLines(text));
  if (said.length > 0) await out.write(`${said.join("\n\n")}\n`);
  if (!FAILED_STATES.includes(end.state)) return;
  const failures = end.parts.filter((part) => part.class === "failure").map(({ text }) => textLines(text));
  const why = failures.length > 0 ? failures.join("\n") : visible(end.outcome?.message ?? end.outcome?.reason ?? "");
  await err.write(
    `${paint(err, "red", "laneway:")} command ${command} ended ${visible(end.state)}${why && `: ${why}`}\n`,
  );
}

/**
 * Acknowledging takes in everything earlier of the chat, so it is done only when nothing else waits there unread. Else the
 * answer shows once more in `laneway chat`, which is better than a part that nobody saw. Failing here fails nothing.
 */
async function acknowledge(client: Client, chat: Chat, { parts }: Waited): Promise<void> {
  const last = Math.max(0, ...parts.map(({ seq }) => seq));
  if (last === 0) return;
  try {
    const unread = await readUnread(client, chat);
    const others = unread.parts.filter(({ seq }) => seq < last && !parts.some((part) => part.seq === seq));
    if (others.length === 0) await client.call("ack", { ...chat, seq: last }, acknowledged);
  } catch {
    // The host went away after it had answered; the part stays unread.
  }
}
