// Owns: reading Server-Sent Events (html.spec.whatwg.org, section 9.2.6). Pure: bytes in, events out.

export interface SseEvent {
  /** `message` when the stream names none. */
  readonly event: string;
  readonly data: string;
  /** The last id that the stream gave, here or earlier. */
  readonly lastId: string;
}

/** The events of a byte stream; its end drops an event that is not complete. Throws what the source throws. */
export async function* sseEvents(source: AsyncIterable<Uint8Array>): AsyncGenerator<SseEvent> {
  const decoder = new TextDecoder();
  const parser = makeSseParser();
  for await (const chunk of source) yield* parser(decoder.decode(chunk, { stream: true }));
}

/** Takes the text in pieces of any size and gives the events that each piece completes. */
export function makeSseParser(): (piece: string) => SseEvent[] {
  let rest = "";
  let event = "";
  let data: string[] = [];
  let lastId = "";

  const field = (line: string) => {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") event = value;
    if (name === "data") data.push(value);
    if (name === "id" && !value.includes("\0")) lastId = value;
  };

  const dispatch = (): SseEvent[] => {
    const ready = data.length === 0 ? [] : [{ event: event || "message", data: data.join("\n"), lastId }];
    event = "";
    data = [];
    return ready;
  };

  return (piece) => {
    rest += piece;
    const ready: SseEvent[] = [];
    // A CR at the very end may be half of a CRLF: it waits for the next piece.
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") ready.push(...dispatch());
      else field(line);
    }
    return ready;
  };
}
