// Owns: the events of a chat as data. Pure. An event that this side does not know is passed over: a newer host sends more.
import { z } from "zod";
import { type Item, item } from "../host/replies.ts";
import type { SseEvent } from "../host/sse.ts";

export type ChatEvent =
  | { readonly type: "item"; readonly item: Item }
  | { readonly type: "state"; readonly command: number; readonly state: string }
  /** `stream` is the whole text so far, `delta` more of it. */
  | { readonly type: "stream" | "delta"; readonly command: number; readonly text: string }
  | { readonly type: "note"; readonly command: number; readonly note: string }
  /** A stream has begun; what is known of running commands is told anew. */
  | { readonly type: "host"; readonly latest: number | undefined };

const stateData = z.object({ command: z.int(), state: z.string() });
const textData = z.object({ command: z.int(), text: z.string() });
const noteData = z.object({ command: z.int(), note: z.string() });
const hostData = z.object({ latest: z.number().optional() });

export function readEvent({ event, data }: SseEvent): ChatEvent | undefined {
  const json = jsonOr(data);
  switch (event) {
    case "item": {
      const found = item.safeParse(json).data;
      return found && { type: "item", item: found };
    }
    case "state": {
      const found = stateData.safeParse(json).data;
      return found && { type: "state", ...found };
    }
    case "stream":
    case "delta": {
      const found = textData.safeParse(json).data;
      return found && { type: event, ...found };
    }
    case "note": {
      const found = noteData.safeParse(json).data;
      return found && { type: "note", ...found };
    }
    case "host":
      return { type: "host", latest: hostData.safeParse(json).data?.latest };
    default:
      return undefined;
  }
}

function jsonOr(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}
