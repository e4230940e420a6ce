// Owns: the bytes of one model call: a bound on those that mean nothing, a look at the first ones, and where the stream ends.
// Never reads a clock and never decides what a failure means.

/** Bytes that may pass without one meaningful part of an answer: far more than any sane server sends, far less than hurts. */
const MAX_SILENT_BYTES = 10_000_000;
/** Enough to read an error body, or to see that a body is no event stream. */
const HEAD_BYTES = 64 * 1024;

/** What ends a stream in the other side's protocol. It begins with a line break, so that no text inside an event is one. */
export interface EndMark {
  readonly pattern: RegExp;
  /** Longest piece of it that can end a chunk; a longer mark that is cut in pieces is missed. */
  readonly maxChars: number;
}

export interface Wire {
  /**
   * Passes the body on as it comes, up to the mark that ends every stream of the protocol: what follows is
   * ignored, and a server that then keeps the connection open does not hold up the answer. A successful body that
   * brings too many bytes without `heard` being called breaks off; of an error body only the head is passed.
   */
  watch(body: ReadableStream<Uint8Array>, ok: boolean): ReadableStream<Uint8Array>;
  /** A meaningful part came: the silence is over. */
  heard(): void;
  /** The first bytes of a body that has brought nothing meaningful yet. */
  head(): string;
  /** True when the body broke off because it was all noise. */
  flooded(): boolean;
}

export function makeWire(end: EndMark): Wire {
  let silent = 0;
  let heardAny = false;
  let flooded = false;
  const first: Uint8Array[] = [];

  function count(bytes: Uint8Array, ok: boolean): void {
    if (!heardAny && silent < HEAD_BYTES) first.push(bytes.slice(0, HEAD_BYTES - silent));
    silent += bytes.byteLength;
    flooded = ok && silent > MAX_SILENT_BYTES;
  }

  function watch(body: ReadableStream<Uint8Array>, ok: boolean): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    const findEnd = ok
      ? makeEndFinder(end)
      : (chunk: Uint8Array) => (silent < HEAD_BYTES ? undefined : chunk.byteLength);
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        count(value, ok);
        if (flooded) {
          await reader.cancel();
          throw new Error(`the server sent ${MAX_SILENT_BYTES} bytes without an answer`);
        }
        const stop = findEnd(value);
        if (stop === undefined) return controller.enqueue(value);
        controller.enqueue(withBlankLine(value.subarray(0, stop)));
        controller.close();
        // Not awaited, because the answer is complete; it never rejects.
        void readToEnd(reader);
      },
      cancel: (reason) => reader.cancel(reason),
    });
  }

  return {
    watch,
    heard() {
      silent = 0;
      heardAny = true;
      first.length = 0;
    },
    head: () => Buffer.concat(first).toString("utf8"),
    flooded: () => flooded,
  };
}

/** Gives the offset behind the end mark once a chunk completes one, also when chunks cut it in pieces. */
function makeEndFinder({ pattern, maxChars }: EndMark): (chunk: Uint8Array) => number | undefined {
  let tail = "\n";
  return (chunk) => {
    const text = tail + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString("latin1");
    const match = pattern.exec(text);
    if (match !== null) return match.index + match[0].length - tail.length;
    tail = text.slice(-maxChars);
    return undefined;
  };
}

/** The blank line that makes the parser deliver what came before it. */
function withBlankLine(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([bytes, Buffer.from("\n\n")]);
}

/** Takes the last bytes of a body, so that the connection can serve the next call. A body that goes on is cut off. */
async function readToEnd(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  try {
    for (let left = HEAD_BYTES; left > 0; ) {
      const { done, value } = await reader.read();
      if (done) return;
      left -= value.byteLength;
    }
    await reader.cancel();
  } catch {
    // The connection broke after the answer: nothing depends on it any more.
  }
}
