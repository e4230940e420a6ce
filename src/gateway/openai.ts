// Owns: the OpenAI door: a request becomes a command like any other, its answer the response. Stateless unless a session is
// named; a repeat by key, or a client library's own retry, joins the earlier command and is not run again.
import { sessionKey } from "../agents/session.ts";
import type { Clock } from "../kernel/clock.ts";
import { InvalidInput, NotFound } from "../kernel/errors.ts";
import type { Events } from "../kernel/events.ts";
import type { CommandId, Ids } from "../kernel/ids.ts";
import type { Background } from "../kernel/log.ts";
import { OWNER } from "../queue/lane.ts";
import type { Queue } from "../queue/queue.ts";
import type { Route } from "../store/commands.ts";
import type { Store } from "../store/store.ts";
import { type Accept, hashOf, type Inbound } from "./accept.ts";
import { streamed, whole } from "./openai-reply.ts";
import { type ParsedRequest, parseRequest } from "./openai-request.ts";
import { chatName } from "./verbs.ts";

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
  const waiting = makeWaiting();
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
      const { command: id, duplicate: joined } = accepted;
      const call = { ...deps, id, joined, parsed, stateless: inbound.kind === "completion", leave: waiting.join(id) };
      return parsed.stream ? streamed(call) : await whole(call, signal).finally(call.leave);
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
  const found = store.read.inbox.findByHash(inbound.rawHash, clock.now() - RETRY_WINDOW_MS);
  return found !== undefined && store.read.commands.get(found)?.state !== "cancelled" ? found : undefined;
}

/** How many requests wait for each command: repeats join it, and it is for all of them. */
function makeWaiting() {
  const counts = new Map<CommandId, number>();
  return {
    /** Counts one more; what it answers takes it away again, once, and tells whether it was the last. */
    join(id: CommandId): () => boolean {
      counts.set(id, (counts.get(id) ?? 0) + 1);
      let here = true;
      return () => {
        if (!here) return false;
        here = false;
        const left = (counts.get(id) ?? 1) - 1;
        if (left === 0) counts.delete(id);
        else counts.set(id, left);
        return left === 0;
      };
    },
  };
}
