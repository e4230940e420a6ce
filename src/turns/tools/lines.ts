// Owns: reading a span of lines from an open file with bounded memory. Knows nothing of paths and opens nothing.
import type { FileHandle } from "node:fs/promises";

export interface Span {
  /** The lines as text; bytes that are not UTF-8, and NUL, are shown as U+FFFD. */
  readonly text: string;
  /** How many lines `text` holds, the last one perhaps cut. */
  readonly lines: number;
  /** How many lines were passed over before the span: all the file has, when it ended first. */
  readonly passed: number;
  /** `end`: nothing follows. `lines`, `bytes`: that limit was reached and more follows. `cut`: so long a line that it alone filled the span. */
  readonly stopped: "end" | "lines" | "bytes" | "cut";
}

export interface SpanWish {
  /** Lines to pass over first. */
  readonly skip: number;
  readonly maxLines: number;
  /** The most bytes of the file that the span holds. */
  readonly maxBytes: number;
}

/** Git's rule: a file with a NUL byte among its first 8000 bytes is not text. */
const SNIFF_BYTES = 8000;
const CHUNK_BYTES = 64 * 1024;
const LINE_FEED = 0x0a;

/** True when the file does not look like text. */
export async function isBinary(handle: FileHandle): Promise<boolean> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(SNIFF_BYTES), 0, SNIFF_BYTES, 0);
  return buffer.subarray(0, bytesRead).includes(0);
}

/**
 * Reads the lines after `skip`. Reads no further than the span's end and a chunk, and holds no more than the span and a chunk.
 * @throws what `signal` carries when it aborts.
 */
export async function readSpan(handle: FileHandle, wish: SpanWish, signal: AbortSignal): Promise<Span> {
  const span: Taking = { parts: [], bytes: 0, lines: 0, passed: 0, passedOpen: false };
  for await (const chunk of chunks(handle, signal)) {
    const start = passOver(chunk, span, wish.skip);
    const full = start < chunk.length && take(chunk.subarray(start), span, wish);
    if (full) return finish(span, full);
  }
  return finish(span, "end");
}

interface Taking {
  readonly parts: Buffer[];
  bytes: number;
  /** Line feeds taken. */
  lines: number;
  /** Line feeds passed over. */
  passed: number;
  /** Whether bytes were passed over since the last line feed. */
  passedOpen: boolean;
}

async function* chunks(handle: FileHandle, signal: AbortSignal): AsyncGenerator<Buffer> {
  for (let position = 0; ; ) {
    signal.throwIfAborted();
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/** Where in the chunk the wanted lines begin; its length when they do not begin in it. */
function passOver(chunk: Buffer, span: Taking, skip: number): number {
  let at = 0;
  while (span.passed < skip) {
    const feed = chunk.indexOf(LINE_FEED, at);
    span.passedOpen = feed === -1 && (span.passedOpen || at < chunk.length);
    if (feed === -1) return chunk.length;
    span.passed++;
    at = feed + 1;
  }
  return at;
}

/** Takes what fits and says which limit was reached, if one was. A limit counts only once something follows it. */
function take(rest: Buffer, span: Taking, wish: SpanWish): "lines" | "bytes" | undefined {
  let at = 0;
  let full: "lines" | "bytes" | undefined;
  while (at < rest.length && full === undefined) {
    if (span.lines === wish.maxLines) full = "lines";
    else if (span.bytes + at >= wish.maxBytes) full = "bytes";
    else at = nextEnd(rest, at, span, wish.maxBytes - span.bytes);
  }
  span.parts.push(rest.subarray(0, at));
  span.bytes += at;
  return full;
}

/** The end of the line that begins or goes on at `at`, or of the chunk, or of what fits. */
function nextEnd(rest: Buffer, at: number, span: Taking, room: number): number {
  const feed = rest.indexOf(LINE_FEED, at);
  if (feed === -1 || feed >= room) return Math.min(rest.length, room);
  span.lines++;
  return feed + 1;
}

function finish(span: Taking, stopped: "end" | "lines" | "bytes"): Span {
  const bytes = Buffer.concat(span.parts);
  const passed = span.passed + (span.passedOpen ? 1 : 0);
  const whole = bytes.lastIndexOf(LINE_FEED) + 1;
  const openLine = whole < bytes.length;
  // An unfinished line is left for the next span, unless there is no other.
  if (stopped === "bytes" && openLine && whole > 0) {
    return { text: decoded(bytes.subarray(0, whole), false), lines: span.lines, passed, stopped };
  }
  const cut = stopped === "bytes" && openLine;
  const lines = span.lines + (openLine ? 1 : 0);
  return { text: decoded(bytes, cut), lines, passed, stopped: cut ? "cut" : stopped };
}

/** @param cut whether the last character may be a part of one, which is then left out. */
function decoded(bytes: Buffer, cut: boolean): string {
  return new TextDecoder().decode(bytes, { stream: cut }).replaceAll("\0", "\u{fffd}");
}
