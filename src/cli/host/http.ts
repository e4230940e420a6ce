// Owns: one HTTP request to the host of this machine. node:http with an agent of its own, so that no proxy of the
// environment ever sees the token. Follows no redirect, repeats nothing.
import { request as httpRequest, type IncomingMessage } from "node:http";
import { Aborted, NotRunning, systemCode } from "../../kernel/errors.ts";
import { AnswerLost } from "./errors.ts";

export interface HttpRequest {
  readonly url: URL;
  readonly method: "GET" | "POST";
  readonly token: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/**
 * Resolves with the head of the answer; the body is still to be read.
 * @throws NotRunning when nobody listens, AnswerLost when the connection broke, Aborted when the signal did
 */
export function send({ url, method, token, body, headers, signal }: HttpRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, {
      method,
      agent: false,
      signal,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined
          ? {}
          : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
        ...headers,
      },
    });
    request.once("response", resolve);
    request.on("error", (thrown) => reject(connectionError(thrown, url, signal)));
    request.end(body);
  });
}

/** The whole body as text. Throws like `send`. */
export async function readText(response: IncomingMessage, url: URL, signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of readChunks(response, url, signal)) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

/** The body as it comes. Throws like `send`. */
export async function* readChunks(response: IncomingMessage, url: URL, signal: AbortSignal): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of response) yield Buffer.from(chunk);
  } catch (thrown) {
    throw connectionError(thrown, url, signal);
  }
}

function connectionError(thrown: unknown, url: URL, signal: AbortSignal): Error {
  if (signal.aborted) return signal.reason instanceof Error ? signal.reason : new Aborted(signal.reason);
  const code = systemCode(thrown);
  if (code === "ECONNREFUSED" || code === "EADDRNOTAVAIL") {
    return new NotRunning(`nothing listens at ${url.origin}, where the host should be`, {
      hint: "Start the host with `laneway start`.",
      cause: thrown,
    });
  }
  return new AnswerLost(
    `the connection to the host at ${url.origin} was lost before it answered (${code ?? "closed"})`,
    {
      hint: "It may or may not have acted on this. `laneway status` tells whether it runs.",
      cause: thrown,
    },
  );
}
