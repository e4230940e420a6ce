// Owns: the model of the Telegram crash runs: it echoes what it is asked, and makes an answer of several messages out of a text
// that says `long`. Every word of such an answer is its own, so that a piece of it is recognised wherever it is shown.
import { setTimeout as delay } from "node:timers/promises";
import { chunk, DONE, type ModelEndpoint, startModelEndpoint } from "./model-endpoint.ts";

/** More than two full messages of Telegram. */
const LONG_UNITS = 9_000;
const PIECES = 4;

/** As people write it; `about` names the chat. */
export function messageText(about: string, n: number, isLong: boolean): string {
  return `${about} message ${n}${isLong ? " long" : ""} end`;
}

/** The whole answer to such a text. It has no paragraphs: its pieces are as full as they can be. */
export function answerTo(text: string): string {
  if (!text.includes(" long ")) return `echo: ${text}`;
  const [about, , n] = text.split(" ");
  const words: string[] = [];
  for (let units = 0; units < LONG_UNITS; ) {
    const word = `${about}-${n}-${String(words.length).padStart(4, "0")}`;
    words.push(word);
    units += word.length + 1;
  }
  return `echo: ${text} ${words.join(" ")}`;
}

/** What a person wrote, out of what the model is shown of it. */
function writtenIn(content: string): string {
  return /\w+ message \d+ .*end/.exec(content)?.[0] ?? content;
}

export interface TalkingModel {
  readonly baseUrl: string;
  /** The person's messages in each request, oldest first. */
  requests(): readonly (readonly string[])[];
  stop(): Promise<void>;
}

/** @param pieceMs the pause before each piece */
export async function startTalkingModel(pieceMs: () => number): Promise<TalkingModel> {
  const endpoint: ModelEndpoint = await startModelEndpoint(async (response, { body }) => {
    const answer = answerTo(usersOf(body).at(-1) ?? "");
    response.writeHead(200, { "content-type": "text/event-stream" });
    const size = Math.ceil(answer.length / PIECES);
    for (let from = 0; from < answer.length; from += size) {
      await delay(pieceMs());
      response.write(chunk({ content: answer.slice(from, from + size) }));
    }
    await delay(pieceMs());
    response.end(`${chunk({}, "stop")}${DONE}`);
  });
  return {
    baseUrl: endpoint.baseUrl,
    requests: () => endpoint.seen.map(({ body }) => usersOf(body)),
    stop: endpoint.stop,
  };
}

function usersOf(body: Record<string, unknown>): string[] {
  const messages = body["messages"] as readonly { role: string; content: string }[];
  return messages.filter(({ role }) => role === "user").map(({ content }) => writtenIn(content));
}
