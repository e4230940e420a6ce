// Owns: a model endpoint for crash runs: it answers `echo: <last message>` in a few pieces, calls a tool when asked to, and
// keeps every request, so that a run can be checked from the model's side.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";

interface WireMessage {
  readonly role: string;
  readonly content: string | null;
}

export interface EchoModel {
  readonly baseUrl: string;
  /** The messages of each request, oldest first. */
  readonly requests: readonly (readonly WireMessage[])[];
  /** Answers that are being streamed now. */
  active(): number;
  /** Called with the last user text of each request before it is answered. */
  onAsk: (text: string) => void;
  /** Whether an answer to this user text is begun and never told; tool calls are made all the same. */
  isHeld: (text: string) => boolean;
  stop(): Promise<void>;
}

/** @param pieceMs the pause before each of four pieces */
export async function startEchoModel(pieceMs: () => number): Promise<EchoModel> {
  const requests: WireMessage[][] = [];
  let active = 0;
  const server = createServer(async (incoming, response) => {
    const { messages } = JSON.parse(await text(incoming)) as { messages: WireMessage[] };
    requests.push(messages);
    const last = messages.at(-1);
    const asked = messages.findLast((message) => message.role === "user")?.content ?? "";
    model.onAsk(asked);
    active += 1;
    try {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const send = (delta: object, finish: string | null = null) =>
        response.write(
          `data: ${JSON.stringify({ id: "e", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
        );
      await delay(pieceMs());
      if (asked.includes("[tool]") && last?.role === "user") {
        const call = {
          index: 0,
          id: `call-${requests.length}`,
          type: "function",
          function: { name: "list", arguments: "{}" },
        };
        send({ role: "assistant", tool_calls: [call] });
        send({}, "tool_calls");
      } else if (model.isHeld(asked)) {
        await once(response, "close");
        return;
      } else {
        for (const piece of ["echo", ": ", asked]) {
          send({ content: piece });
          await delay(pieceMs());
        }
        send({}, "stop");
      }
      response.end("data: [DONE]\n\n");
    } finally {
      active -= 1;
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const model: EchoModel = {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    active: () => active,
    onAsk: () => {},
    isHeld: () => false,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return model;
}
