// Owns: the two forms of an answer of the OpenAI door, in one piece and as a stream, and what happens when the client goes.
import type { Clock } from "../kernel/clock.ts";
import { LanewayError } from "../kernel/errors.ts";
import type { Events } from "../kernel/events.ts";
import type { CommandId } from "../kernel/ids.ts";
import type { Background } from "../kernel/log.ts";
import { isFinal } from "../queue/command.ts";
import type { Queue } from "../queue/queue.ts";
import type { Command } from "../store/commands.ts";
import type { Store } from "../store/store.ts";
import { type Answer, answerOf } from "./openai-answer.ts";
import { openAiError } from "./openai-error.ts";
import type { ParsedRequest } from "./openai-request.ts";
import { sseResponse } from "./sse.ts";
import { whenFinal } from "./when-final.ts";

/** One request that waits for a command's end. */
export interface Call {
  readonly store: Store;
  readonly queue: Queue;
  readonly clock: Clock;
  readonly events: Events;
  readonly background: Background;
  readonly id: CommandId;
  /** The command is older than this request: what it has streamed so far was for another. */
  readonly joined: boolean;
  readonly parsed: ParsedRequest;
  readonly stateless: boolean;
  /** This request waits no more. True for the last one of its command. */
  readonly leave: () => boolean;
}

/** Waits for the end and answers in one piece. Rejects as `answerOf` throws. */
export async function whole(call: Call, signal: AbortSignal): Promise<Response> {
  const command = await whenFinal(call.id, call, signal);
  if (!isFinal(command.state)) {
    clientGone(call);
    return new Response(null, { status: 499 });
  }
  const answer = take(command, call);
  const toolCalls = answer.toolCalls.length === 0 ? {} : { tool_calls: answer.toolCalls };
  const message = {
    role: "assistant",
    content: answer.text === "" && answer.toolCalls.length > 0 ? null : answer.text,
    refusal: null,
    ...toolCalls,
  };
  const choice = { index: 0, message, logprobs: null, finish_reason: answer.finish };
  return Response.json({ ...head("chat.completion", command, call), choices: [choice], usage: answer.usage });
}

function head(object: string, command: { id: number; acceptedAt: number }, { parsed }: Call) {
  return { id: `chatcmpl-${command.id}`, object, created: Math.floor(command.acceptedAt / 1_000), model: parsed.model };
}

/** A named session's turn runs on; a stateless one only while somebody waits for it, and several may. */
function clientGone({ id, stateless, leave, queue, background }: Call): void {
  if (stateless && leave()) background("openai.client-gone", queue.cancel(id, { reason: "client-gone" }));
}

/** The answer, or its error; either way the client is told now, so the outbox need not keep the part for it. */
function take(command: Command, { store, clock, background }: Call): Answer {
  const part = store.read.outbox.ofCommand(command.id)[0];
  if (part?.state === "ready") {
    const write = store.write("ack", (tx) => tx.outbox.acknowledge(part.chatKey, part.id, clock.now()));
    background("openai.delivered", write);
  }
  return answerOf(command, part);
}

/** Text that a failed try had streamed cannot be taken back from this protocol, so the new beginning is marked. */
const BEGUN_ANEW = "\n\n[begun anew]\n\n";

/** Answers at once and streams what the model says; an error is the last event. */
export function streamed(call: Call): Response {
  const gone = new AbortController();
  return sseResponse(call.clock, (writer) => {
    const accepted = call.store.read.commands.get(call.id);
    const base = head(
      "chat.completion.chunk",
      { id: call.id, acceptedAt: accepted?.acceptedAt ?? call.clock.now() },
      call,
    );
    const usage = call.parsed.includeUsage ? { usage: null } : {};
    const chunk = (delta: unknown, finish: string | null = null) =>
      writer.event(undefined, {
        ...base,
        choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
        ...usage,
      });
    let sent = "";
    const stop = call.events.on((event) => {
      if (!("id" in event) || event.id !== call.id || call.joined) return;
      if (event.type === "stream.start" && sent !== "") {
        chunk({ content: event.again ? BEGUN_ANEW : "\n\n" });
        sent = "";
      }
      if (event.type !== "stream.text") return;
      sent += event.delta;
      chunk({ content: event.delta });
    });
    const position = call.queue.position(call.id);
    if (position !== undefined) writer.comment(`queued, ${position} ahead`);
    chunk({ role: "assistant", content: "" });
    const finish = async () => {
      const command = await whenFinal(call.id, call, gone.signal);
      stop();
      if (!isFinal(command.state)) return clientGone(call);
      const answer = take(command, call);
      if (answer.text.startsWith(sent) && answer.text.length > sent.length)
        chunk({ content: answer.text.slice(sent.length) });
      if (answer.toolCalls.length > 0) chunk({ tool_calls: answer.toolCalls.map((one, index) => ({ index, ...one })) });
      chunk({}, answer.finish);
      if (call.parsed.includeUsage) writer.event(undefined, { ...base, choices: [], usage: answer.usage });
      writer.raw("[DONE]");
    };
    const ended = finish()
      .catch((thrown: unknown) => {
        if (!(thrown instanceof LanewayError)) throw thrown;
        writer.event(undefined, openAiError(thrown));
      })
      .finally(() => {
        stop();
        call.leave();
        writer.close();
      });
    call.background("openai.stream", ended);
    return () => gone.abort("client gone");
  });
}
