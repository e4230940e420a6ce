// Owns: what the kinds behind the AI SDK's model interface have in common: settings, the watched fetch, the call.
// The request goes out once: retry and failover belong to the turn.
import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { Endpoint } from "./classify.ts";
import { type ShownMessage, showImages } from "./images.ts";
import type { Backend, ModelMessage, ModelRequest } from "./port.ts";
import { secretsOf } from "./scrub.ts";
import { streamCall } from "./v4-stream.ts";
import { type EndMark, makeWire, type Wire } from "./wire.ts";

export interface EndpointSettings {
  readonly name: string;
  readonly model: string;
  /** Up to and including the version, as in `http://127.0.0.1:11434/v1`. */
  readonly baseUrl: string;
  readonly apiKey?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Whether the model can see images; absent, it cannot. */
  readonly vision?: boolean | undefined;
  /** The platform's fetch when absent. */
  readonly fetch?: typeof fetch | undefined;
}

/** What is particular to a protocol. */
export interface V4Kind {
  readonly kind: string;
  readonly end: EndMark;
  readonly connect: (fetch: typeof globalThis.fetch) => LanguageModelV4;
  /** The history in the form that the protocol takes. Pure. */
  readonly arrange: (messages: readonly ModelMessage[]) => readonly ModelMessage[];
  /** Pure. What it throws is a failure of the call. */
  readonly options: (request: ModelRequest, messages: readonly ShownMessage[]) => LanguageModelV4CallOptions;
}

export function makeV4Backend(settings: EndpointSettings, protocol: V4Kind): Backend {
  const { name, model: modelId, baseUrl, apiKey, headers, vision = false } = settings;
  const wires = new WeakMap<AbortSignal, Wire>();
  const model = protocol.connect(watchedFetch(settings.fetch ?? fetch, wires));
  const endpoint: Endpoint = {
    baseUrl,
    model: modelId,
    hasKey: apiKey !== undefined && apiKey !== "",
    secrets: secretsOf(apiKey, headers),
  };
  const wireOf = (signal: AbortSignal) => {
    const wire = makeWire(protocol.end);
    wires.set(signal, wire);
    return wire;
  };
  return {
    name,
    kind: protocol.kind,
    model: modelId,
    journal: "steps",
    complete(request, signal) {
      const options = async (own: AbortSignal) => {
        const messages = await showImages(protocol.arrange(request.messages), request, vision, own);
        return protocol.options(request, messages);
      };
      return streamCall({ model, options, endpoint, wireOf }, signal);
    },
  };
}

/** Puts the body of each answer on the wire of its call. The provider hands its abort signal on unchanged. */
function watchedFetch(plain: typeof fetch, wires: WeakMap<AbortSignal, Wire>): typeof fetch {
  return async (input, init) => {
    const response = await plain(input, init);
    const wire = init?.signal ? wires.get(init.signal) : undefined;
    // A response with a status outside the standard's range cannot be rebuilt; its body is an error text.
    if (wire === undefined || response.body === null || response.status > 599) return response;
    const { status, statusText, headers } = response;
    return new Response(wire.watch(response.body, response.ok), { status, statusText, headers });
  };
}
