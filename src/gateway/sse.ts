// Owns: Server-Sent Events as a response body (html.spec.whatwg.org, section 9.2). A reader that does not keep up is dropped
// instead of being buffered for: it resumes by its last id.
import type { Clock, Stop } from "../kernel/clock.ts";

export interface SseWriter {
  /** One event; `data` is sent as one JSON line. */
  event(name: string | undefined, data: unknown, id?: number): void;
  /** A raw data line, for protocols with their own words. */
  raw(data: string): void;
  comment(text: string): void;
  /** False while the reader has much to read: whoever has a choice sends no more until `onRoom`. */
  hasRoom(): boolean;
  /** Called whenever the reader asks for more than there is. */
  onRoom(fill: () => void): void;
  close(): void;
}

/** A megabyte of unread events beside the largest single one means that nobody reads. */
const MAX_PENDING_BYTES = 1_048_576;
/** Enough to keep a connection busy, and little beside the megabyte, which what passes live needs for itself. */
const ROOM_BYTES = 65_536;
/** Proxies and browsers give up on silence after 30 to 60 s. */
const KEEP_ALIVE_MS = 25_000;

/** `start` is given the writer and answers what to stop when the reader is gone. */
export function sseResponse(clock: Clock, start: (writer: SseWriter) => Stop): Response {
  let release: Stop = () => {};
  let fillRoom: () => void = () => {};
  let closed = false;
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const end = () => {
          if (closed) return;
          closed = true;
          release();
        };
        // An answer may be larger than what may be unread: whoever is being sent it is not slow yet, and dropped for it would
        // come back, be sent it anew and never get past it.
        let largest = 0;
        const write = (text: string) => {
          if (closed) return;
          if ((controller.desiredSize ?? 0) < -(MAX_PENDING_BYTES + largest)) {
            controller.error(new Error("the reader does not keep up"));
            return end();
          }
          const bytes = encoder.encode(text);
          largest = Math.max(largest, bytes.byteLength);
          controller.enqueue(bytes);
        };
        const stopBeat = beat(clock, () => write(":\n\n"));
        const stopSource = start({
          event: (name, data, id) => {
            const head = `${id === undefined ? "" : `id: ${id}\n`}${name === undefined ? "" : `event: ${name}\n`}`;
            write(`${head}data: ${JSON.stringify(data)}\n\n`);
          },
          raw: (data) => write(`data: ${data}\n\n`),
          comment: (text) => write(`: ${text}\n\n`),
          hasRoom: () => !closed && (controller.desiredSize ?? 0) > -ROOM_BYTES,
          onRoom: (fill) => {
            fillRoom = fill;
          },
          close() {
            if (!closed) controller.close();
            end();
          },
        });
        release = () => {
          stopBeat();
          stopSource();
        };
        if (closed) release();
      },
      pull() {
        if (!closed) fillRoom();
      },
      cancel() {
        closed = true;
        release();
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: 0 }),
  );
  return new Response(body, { headers: { "content-type": "text/event-stream", "cache-control": "no-store" } });
}

function beat(clock: Clock, fire: () => void): Stop {
  let stop = clock.after(KEEP_ALIVE_MS, function again() {
    fire();
    stop = clock.after(KEEP_ALIVE_MS, again);
  });
  return () => stop();
}
