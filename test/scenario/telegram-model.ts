// Owns: a model for talks on Telegram: it answers `echo: <words>`, tells which images it was shown, and is slow where a test says so.
import { once } from "node:events";
import { chunk, DONE, sendStream, startModelEndpoint } from "../support/model-endpoint.ts";

/** An answer in the hand of the test. */
export interface SlowAnswer {
  /** Resolves when the model has been asked. */
  readonly asked: Promise<void>;
  says(text: string): Promise<void>;
  ends(): Promise<void>;
  /** Cuts the connection. */
  breaks(): Promise<void>;
  /** Resolves when the host has let go of it. */
  readonly gone: Promise<void>;
}

export interface ChatModel {
  readonly baseUrl: string;
  /** The words of each request, oldest first. */
  readonly asked: readonly string[];
  /** What the model is told of the whole conversation, for each request. */
  readonly heard: readonly (readonly HeardMessage[])[];
  answers(words: string, text: string): void;
  /** The next request with these words is answered as the test says. */
  slow(words: string): SlowAnswer;
  stop(): Promise<void>;
}

export interface HeardMessage {
  readonly role: string;
  /** Images stand as `<media type, bytes>`. */
  readonly words: string;
}

interface Piece {
  readonly type: string;
  readonly text?: string;
  readonly image_url?: { readonly url: string };
}

export async function startChatModel(): Promise<ChatModel> {
  const texts = new Map<string, string>();
  const slow = new Map<string, Held>();
  const heard: HeardMessage[][] = [];
  const asked: string[] = [];
  const endpoint = await startModelEndpoint(async (response, { body }) => {
    const messages = (body["messages"] as { role: string; content: unknown }[]).map(({ role, content }) => ({
      role,
      words: wordsOf(content),
    }));
    const words = messages.findLast(({ role }) => role === "user")?.words ?? "";
    heard.push(messages);
    asked.push(words);
    const held = slow.get(words);
    slow.delete(words);
    if (held !== undefined) return held.begin(response);
    sendStream(response, chunk({ role: "assistant", content: texts.get(words) ?? `echo: ${words}` }));
    response.end(chunk({}, "stop") + DONE);
  });
  return {
    baseUrl: endpoint.baseUrl,
    asked,
    heard,
    answers: (words, text) => {
      texts.set(words, text);
    },
    slow(words) {
      const { answer, held } = hold();
      slow.set(words, held);
      return answer;
    },
    stop: endpoint.stop,
  };
}

type Response = Parameters<Parameters<typeof startModelEndpoint>[0]>[0];

interface Held {
  begin(response: Response): void;
}

function hold(): { answer: SlowAnswer; held: Held } {
  const begun = Promise.withResolvers<Response>();
  const asked = begun.promise.then(() => {});
  const gone = begun.promise.then(async (response) => {
    await once(response, "close");
  });
  return {
    held: {
      begin(response) {
        sendStream(response, chunk({ role: "assistant", content: "" }));
        begun.resolve(response);
      },
    },
    answer: {
      asked,
      gone,
      says: async (text) => {
        (await begun.promise).write(chunk({ content: text }));
      },
      breaks: async () => {
        (await begun.promise).destroy();
      },
      ends: async () => {
        (await begun.promise).end(chunk({}, "stop") + DONE);
      },
    },
  };
}

function wordsOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return (content as Piece[]).map((piece) => piece.text ?? imageWords(piece.image_url?.url ?? "")).join("\n");
}

function imageWords(url: string): string {
  const [, type, data = ""] = /^data:([^;]+);base64,(.*)$/.exec(url) ?? [];
  return `<${type}, ${Buffer.from(data, "base64").length} bytes>`;
}
