// Owns: reading `/api/events` as a page does: from a sequence on, message by message, until the test has seen enough.
import { TOKEN } from "../support/host.ts";
import type { Json } from "./world.ts";

export interface StreamMessage {
  readonly event: string;
  readonly id: number | undefined;
  readonly data: Json;
}

export interface EventStream {
  /** Everything heard so far. */
  readonly heard: readonly StreamMessage[];
  /** The first message that fits, heard already or still to come. Rejects when the stream ends before. */
  until(fits: (message: StreamMessage) => boolean): Promise<StreamMessage>;
  close(): Promise<void>;
}

interface Options {
  readonly chat?: string;
  readonly after?: number;
  readonly lastEventId?: number;
}

export async function openEvents(
  address: string,
  { chat = "main", after, lastEventId }: Options = {},
): Promise<EventStream> {
  const query = new URLSearchParams({ chat, ...(after === undefined ? {} : { after: String(after) }) });
  const stop = new AbortController();
  const response = await fetch(`${address}/api/events?${query}`, {
    headers: {
      authorization: `Bearer ${TOKEN}`,
      ...(lastEventId === undefined ? {} : { "last-event-id": String(lastEventId) }),
    },
    signal: stop.signal,
  });
  if (response.status !== 200 || response.body === null) throw new Error(`events was answered ${response.status}`);
  const heard: StreamMessage[] = [];
  let wake = Promise.withResolvers<void>();
  let over: { why: unknown } | undefined;
  const reading = read(response.body, (message) => {
    heard.push(message);
    wake.resolve();
    wake = Promise.withResolvers();
  }).then(
    () => ({ why: "the host ended it" }),
    (why: unknown) => ({ why }),
  );
  const ending = reading.then((end) => {
    over = end;
    wake.resolve();
  });
  return {
    heard,
    async until(fits) {
      for (let at = 0; ; at += 1) {
        while (at >= heard.length) {
          if (over !== undefined) throw new Error(`the stream ended early: ${String(over.why)}`);
          await wake.promise;
        }
        const message = heard[at];
        if (message !== undefined && fits(message)) return message;
      }
    },
    async close() {
      stop.abort();
      await ending;
    },
  };
}

async function read(body: ReadableStream<Uint8Array>, tell: (message: StreamMessage) => void): Promise<void> {
  let text = "";
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const message = parse(block);
      if (message !== undefined) tell(message);
    }
  }
}

/** Undefined for a comment. */
function parse(block: string): StreamMessage | undefined {
  const fields = new Map(
    block.split("\n").map((line) => {
      const at = line.indexOf(":");
      return [line.slice(0, at), line.slice(at + 1).trimStart()] as const;
    }),
  );
  const data = fields.get("data");
  const id = fields.get("id");
  if (data === undefined) return undefined;
  return {
    event: fields.get("event") ?? "message",
    id: id === undefined ? undefined : Number(id),
    data: JSON.parse(data),
  };
}
