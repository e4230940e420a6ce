// Owns: the OpenAI door: a request becomes a command like any other, its answer the response. Stateless unless a session is
// named; a repeat by key, or a client library's own retry, joins the earlier command and is not run again.
import { z } from "zod";
import { sessionKey } from "../agents/session.ts";
import type { Clock } from "../kernel/clock.ts";
import { Forbidden, InvalidInput, LanewayError, NotFound } from "../kernel/errors.ts";
import type { Events } from "../kernel/events.ts";
import type { CommandId, Ids } from "../kernel/ids.ts";
import type { Background } from "../kernel/log.ts";
import { isFinal } from "../queue/command.ts";
import { OWNER } from "../queue/lane.ts";
import type { Queue } from "../queue/queue.ts";
import { type Command, chatKey, type Route } from "../store/commands.ts";
import type { Store } from "../store/store.ts";
import { type Accept, hashOf, type Inbound } from "./accept.ts";
import { openAiError } from "./openai-error.ts";
import { type ParsedRequest, parseRequest } from "./openai-request.ts";
import { sseResponse } from "./sse.ts";
import { chatName } from "./verbs.ts";
import { whenFinal } from "./when-final.ts";

/** A client library repeats within seconds to minutes; later the same text is meant as a new request (contract). */
const RETRY_WINDOW_MS = 600_000;
const CHANNEL = "api";

type Header = (name: string) => string | undefined;

export interface OpenAiDoor {
  models(): unknown;
  /** Throws NotFound for a name that is none of ours. */
  model(id: string): unknown;
  complete(raw: string, header: Header, signal: AbortSignal): Promise<Response>;
}

interface DoorDeps {
  readonly store: Store;
  readonly queue: Queue;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly events: Events;
  readonly background: Background;
  readonly accept: Accept;
  readonly agents: readonly string[];
  readonly startedAt: number;
}

/** The turn ended without an answer. 502 lets a client library try again, which joins this command and costs nothing. */
class NoAnswer extends LanewayError {
  readonly code = "no_answer";
}

export function makeOpenAiDoor(deps: DoorDeps): OpenAiDoor {
  const names = ["laneway", ...deps.agents.map((agent) => `laneway/${agent}`)];
  const entry = (id: string) => ({
    id,
    object: "model",
    created: Math.floor(deps.startedAt / 1_000),
    owned_by: "laneway",
  });
  const agentOf = (model: string) => {
    if (!names.includes(model)) {
      throw new NotFound(`there is no model ${JSON.stringify(model)}`, { hint: `Models here: ${names.join(", ")}.` });
    }
    return model === "laneway" ? "main" : model.slice("laneway/".length);
  };
  return {
    models: () => ({ object: "list", data: names.map(entry) }),
    model(id) {
      agentOf(id);
      return entry(id);
    },
    async complete(raw, header, signal) {
      const parsed = parseRequest(raw);
      const inbound = inboundOf(parsed, raw, header, agentOf(parsed.model), deps);
      const earlier = earlierRetry(inbound, header, deps);
      const accepted = earlier === undefined ? await deps.accept(inbound) : { command: earlier, duplicate: true };
      const call: Call = {
        ...deps,
        id: accepted.command,
        joined: accepted.duplicate,
        parsed,
        stateless: inbound.kind === "completion",
      };
      return parsed.stream ? streamed(call) : await whole(call, signal);
    },
  };
}

function inboundOf(parsed: ParsedRequest, raw: string, header: Header, agent: string, { ids }: DoorDeps): Inbound {
  const named = header("x-laneway-session");
  if (named !== undefined && !chatName.safeParse(named).success) {
    throw new InvalidInput(`x-laneway-session must be letters, digits, . _ and -, got ${JSON.stringify(named)}`);
  }
  const idempotency = header("idempotency-key");
  const route: Route = {
    channel: CHANNEL,
    account: "default",
    chat: named ?? `once-${ids.random()}`,
    thread: undefined,
  };
  return {
    event: {
      channel: CHANNEL,
      account: agent,
      key: idempotency === undefined ? `once:${ids.random()}` : `idem:${idempotency}`,
    },
    rawHash: hashOf(`${named ?? ""}\n${raw}`),
    ...{ route, agent, sender: OWNER, actor: OWNER, role: "owner", source: CHANNEL },
    ...(named === undefined ? statelessPart(parsed, agent, route) : sessionPart(parsed)),
  };
}

function statelessPart(
  parsed: ParsedRequest,
  agent: string,
  route: Route,
): Pick<Inbound, "kind" | "text" | "extra" | "session"> {
  const extra = JSON.stringify(parsed.completion);
  return { kind: "completion", text: parsed.lastText.slice(0, 200), extra, session: sessionKey(agent, route) };
}

/** Of the client's history only what is new: its last message, or the results of the tools that it ran. */
function sessionPart({ completion, lastText }: ParsedRequest): Pick<Inbound, "kind" | "text" | "extra"> {
  const from = completion.messages.findLastIndex((message) => message.role === "assistant" || message.role === "user");
  const results =
    lastText === "" ? completion.messages.slice(from + 1).filter((message) => message.role === "tool") : [];
  const system = completion.messages.filter((message) => message.role === "system");
  if (lastText === "" && results.length === 0)
    throw new InvalidInput("expected a user message or tool results at the end");
  return {
    kind: "message",
    text: lastText,
    extra: JSON.stringify({ ...completion, messages: [...system, ...results] }),
  };
}

/** The command that a client library's own retry repeats; one that ended only because its client had gone does not count. */
function earlierRetry(inbound: Inbound, header: Header, { store, clock }: DoorDeps): CommandId | undefined {
  if (!(Number(header("x-stainless-retry-count")) > 0) || inbound.event.key.startsWith("idem:")) return undefined;
  const found = store.read.inbox.findByHash(CHANNEL, inbound.rawHash, clock.now() - RETRY_WINDOW_MS);
  return found !== undefined && store.read.commands.get(found)?.state !== "cancelled" ? found : undefined;
}

interface Call extends DoorDeps {
  readonly id: CommandId;
  readonly joined: boolean;
  readonly parsed: ParsedRequest;
  readonly stateless: boolean;
}

const partExtra = z.object({
  finish: z.enum(["stop", "length", "tool_calls"]),
  usage: z.object({ inputTokens: z.number().default(0), outputTokens: z.number().default(0) }),
  calls: z.array(z.object({ id: z.string(), name: z.string(), input: z.string() })).optional(),
});

interface Answer {
  readonly text: string;
  readonly finish: "stop" | "length" | "tool_calls";
  readonly usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
  readonly toolCalls: readonly { id: string; type: "function"; function: { name: string; arguments: string } }[];
}

/** The answer of a command that has ended. Throws NoAnswer when it has none. */
function answerOf(command: Command, { store, stateless }: Call): Answer {
  const part = store.read.outbox.ofCommand(command.id)[0];
  if (command.state === "cancelled") throw cancelled(stateless);
  if (command.state !== "done" || part === undefined) {
    throw new NoAnswer(part?.text ?? "the message could not be answered", { hint: "`laneway queue show` tells more." });
  }
  // A chat command's reply has no figures.
  const extra = partExtra.parse(part.extra === undefined ? { finish: "stop", usage: {} } : JSON.parse(part.extra));
  const { inputTokens, outputTokens } = extra.usage;
  const usage = {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
  const toolCalls = (extra.calls ?? []).map(({ id, name, input }) => ({
    id,
    type: "function" as const,
    function: { name, arguments: input },
  }));
  return { text: part.text, finish: extra.finish, usage, toolCalls };
}

function cancelled(stateless: boolean): Forbidden {
  const hint = stateless
    ? "Send it again, with a new Idempotency-Key if there was one."
    : "Send it again if it still matters.";
  return new Stopped("the request was stopped before it was answered", { hint });
}

class Stopped extends Forbidden {
  override readonly code = "stopped";
}

async function whole(call: Call, signal: AbortSignal): Promise<Response> {
  const command = await whenFinal(call.id, call, signal);
  if (!isFinal(command.state)) {
    clientGone(call);
    return new Response(null, { status: 499 });
  }
  const answer = answerOf(command, call);
  delivered(command, call);
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

/** Nobody waits for a stateless answer any more; a named session's turn runs on. */
function clientGone({ id, stateless, queue, background }: Call): void {
  if (stateless) background("openai.client-gone", queue.cancel(id, { reason: "client-gone" }));
}

function delivered(command: Command, { store, clock, background }: Call): void {
  const key = chatKey(command.route);
  const part = store.read.outbox.ofCommand(command.id)[0];
  if (part?.state !== "ready") return;
  background(
    "openai.delivered",
    store.write("ack", (tx) => tx.outbox.acknowledge(key, part.id, clock.now())),
  );
}

/** Text that a failed try had streamed cannot be taken back from this protocol, so the new beginning is marked. */
const BEGUN_ANEW = "\n\n[begun anew]\n\n";

function streamed(call: Call): Response {
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
      const answer = answerOf(command, call);
      if (answer.text.startsWith(sent) && answer.text.length > sent.length)
        chunk({ content: answer.text.slice(sent.length) });
      if (answer.toolCalls.length > 0) chunk({ tool_calls: answer.toolCalls.map((one, index) => ({ index, ...one })) });
      chunk({}, answer.finish);
      if (call.parsed.includeUsage) writer.event(undefined, { ...base, choices: [], usage: answer.usage });
      writer.raw("[DONE]");
      delivered(command, call);
    };
    const ended = finish()
      .catch((thrown: unknown) => {
        if (!(thrown instanceof LanewayError)) throw thrown;
        writer.event(undefined, openAiError(thrown));
      })
      .finally(() => {
        stop();
        writer.close();
      });
    call.background("openai.stream", ended);
    return () => gone.abort("client gone");
  });
}
