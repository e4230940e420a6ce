// Owns: the form of transcript rows and how they become a model's messages. Pairs of tool call and result are kept whole
// whatever is missing, since every model endpoint refuses a call without its result.
import { z } from "zod";
import type { NewTranscriptRow, TranscriptRow } from "../store/messages.ts";
import type { ImageRef, ModelMessage, ToolCall } from "./backends/port.ts";

const call = z.object({ id: z.string(), name: z.string(), input: z.string() });
const image = z.object({ file: z.string(), mediaType: z.string() });
const userBody = z.object({ text: z.string(), images: z.array(image).exactOptional() });
const assistantBody = z.object({ text: z.string(), calls: z.array(call).default([]) });
const toolBody = z.object({ callId: z.string(), name: z.string(), text: z.string(), isError: z.boolean() });

/** A transcript row before it has its place. */
export type NewRow = Omit<NewTranscriptRow, "n">;

/** @param images references only: the bytes stay in their files */
export function userRow(text: string, images: readonly ImageRef[] = []): NewRow {
  const refs = images.map(({ file, mediaType }) => ({ file, mediaType }));
  const body: z.infer<typeof userBody> = refs.length === 0 ? { text } : { text, images: refs };
  return { role: "user", body: JSON.stringify(body) };
}

export function assistantRow(text: string, calls: readonly ToolCall[]): NewRow {
  return { role: "assistant", body: JSON.stringify(calls.length === 0 ? { text } : { text, calls }) };
}

export function toolRow(result: { callId: string; name: string; text: string; isError: boolean }): NewRow {
  const { callId, name, text, isError } = result;
  return { role: "tool", body: JSON.stringify({ callId, name, text, isError } satisfies z.infer<typeof toolBody>) };
}

/** What the host has to say about a turn: that it failed or was stopped. The model sees it as a bracketed line. */
export function noteRow(text: string): NewRow {
  return { role: "note", body: JSON.stringify({ text }) };
}

export const OUTCOME_UNKNOWN =
  "The host stopped while this tool ran: its outcome is unknown. It was not repeated. Check what happened before you try again.";

export function messageOfRow(row: Pick<TranscriptRow, "role" | "body">): ModelMessage {
  const raw: unknown = JSON.parse(row.body);
  switch (row.role) {
    case "user":
      return { role: "user", ...userBody.parse(raw) };
    case "assistant":
      return { role: "assistant", ...assistantBody.parse(raw) };
    case "tool":
      return { role: "tool", ...toolBody.parse(raw) };
    case "note":
      return { role: "assistant", text: `[${userBody.parse(raw).text}]`, calls: [] };
  }
}

/**
 * The messages of a transcript, oldest first. It begins with a person's message (a window may have cut the beginning off),
 * and a call whose result is missing gets the result "outcome unknown".
 */
export function messagesOf(rows: readonly Pick<TranscriptRow, "role" | "body">[]): ModelMessage[] {
  const from = rows.findIndex((row) => row.role === "user");
  return from === -1 ? [] : closeCalls(rows.slice(from).map(messageOfRow));
}

function closeCalls(messages: readonly ModelMessage[]): ModelMessage[] {
  const closed: ModelMessage[] = [];
  let missing: ToolCall[] = [];
  const close = () => {
    for (const one of missing) {
      closed.push({ role: "tool", callId: one.id, name: one.name, text: OUTCOME_UNKNOWN, isError: true });
    }
    missing = [];
  };
  for (const message of messages) {
    if (message.role === "tool") missing = missing.filter((one) => one.id !== message.callId);
    else close();
    closed.push(message);
    if (message.role === "assistant") missing = [...message.calls];
  }
  close();
  return closed;
}

/** The calls of a command's last assistant row that have no result row yet. */
export function callsWithoutResult(rows: readonly TranscriptRow[]): ToolCall[] {
  const messages = rows.map(messageOfRow);
  const at = messages.findLastIndex((message) => message.role === "assistant");
  const last = messages[at];
  if (last?.role !== "assistant") return [];
  const answered = new Set(messages.slice(at + 1).map((message) => (message.role === "tool" ? message.callId : "")));
  return last.calls.filter((one) => !answered.has(one.id));
}
