// Owns: a model endpoint in the hand of a test, for what a well-behaved server does not do: it is told by the words of the last
// message of a person how to treat the request.
import type { ServerResponse } from "node:http";
import {
  chunk,
  DONE,
  type ModelEndpoint,
  type SeenRequest,
  sendStream,
  startModelEndpoint,
} from "../support/model-endpoint.ts";
import type { WireMessage } from "./world.ts";

export type Behaviour = (response: ServerResponse, messages: readonly WireMessage[]) => void | Promise<void>;

export interface Puppet extends ModelEndpoint {
  /** From now on requests whose last message of a person is this are treated so. */
  on(words: string, behaviour: Behaviour): void;
  /** The requests to these words so far. */
  asked(words: string): WireMessage[][];
}

/** Words without a behaviour get the answer `re: <words>`. */
export async function startPuppet(): Promise<Puppet> {
  const behaviours = new Map<string, Behaviour>();
  const endpoint = await startModelEndpoint(async (response, request) => {
    const messages = messagesOf(request);
    const words = wordsOf(messages);
    await (behaviours.get(words) ?? says(`re: ${words}`))(response, messages);
  });
  return {
    ...endpoint,
    on: (words, behaviour) => {
      behaviours.set(words, behaviour);
    },
    asked: (words) => endpoint.seen.map(messagesOf).filter((messages) => wordsOf(messages) === words),
  };
}

function messagesOf(request: SeenRequest): WireMessage[] {
  return request.body["messages"] as WireMessage[];
}

function wordsOf(messages: readonly WireMessage[]): string {
  return messages.findLast((message) => message.role === "user")?.content ?? "";
}

/** A whole answer of text. */
export function says(text: string): Behaviour {
  return (response) => {
    sendStream(response, chunk({ role: "assistant", content: text }), chunk({}, "stop"), DONE);
    response.end();
  };
}

type Wanted = readonly [name: string, input: object];

/** A whole answer that calls tools; the ids are the names with their place. */
export function calls(...wanted: Wanted[]): Behaviour {
  const toolCalls = wanted.map(([name, input], index) => {
    return {
      index,
      id: `call_${name}_${index}`,
      type: "function",
      function: { name, arguments: JSON.stringify(input) },
    };
  });
  return (response) => {
    sendStream(response, chunk({ role: "assistant", tool_calls: toolCalls }), chunk({}, "tool_calls"), DONE);
    response.end();
  };
}

/** Calls tools first and speaks once it has results. */
export function callsThenSays(wanted: Wanted[], text: string): Behaviour {
  return (response, messages) => {
    const after = messages.slice(messages.findLastIndex((message) => message.role === "user"));
    return (after.some((message) => message.role === "tool") ? says(text) : calls(...wanted))(response, messages);
  };
}

/** Sends nothing, not even headers. */
export const hangs: Behaviour = () => {};
