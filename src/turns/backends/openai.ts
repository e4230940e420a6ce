// Owns: a backend over any server that speaks OpenAI's chat completions. Loaded only when the settings name one.
// The request goes out once: retry and failover belong to the turn.

import type { Endpoint } from "./classify.ts";
import type { Backend } from "./port.ts";
import { secretsOf } from "./scrub.ts";
import { v4Options } from "./v4-prompt.ts";
import { streamCall } from "./v4-stream.ts";
import { makeWire, type Wire } from "./wire.ts";

export interface OpenAiSettings {
  readonly name: string;
  readonly model: string;
  /** Up to and including the version, as in `http://127.0.0.1:11434/v1`. */
  readonly baseUrl: string;
  readonly apiKey?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** For requests that state no limit of their own. */
  readonly maxOutputTokens?: number | undefined;
  /** The platform's fetch when absent. */
  readonly fetch?: typeof fetch | undefined;
}

/** The provider reads its own options under this name; a backend's name may hold dots, which it cannot. */
const PROVIDER = "laneway";

export async function makeOpenAiBackend(settings: OpenAiSettings): Promise<Backend> {
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const { name, model: modelId, baseUrl, apiKey, maxOutputTokens } = settings;
  const wires = new WeakMap<AbortSignal, Wire>();
  const provider = createOpenAICompatible({
    name: PROVIDER,
    baseURL: baseUrl,
    includeUsage: true,
    supportsStructuredOutputs: true,
    fetch: watchedFetch(settings.fetch ?? fetch, wires),
    ...(apiKey !== undefined && { apiKey }),
    ...(settings.headers !== undefined && { headers: { ...settings.headers } }),
    ...(isOpenAi(baseUrl) && { transformRequestBody: renameMaxTokens }),
  });
  const model = provider.chatModel(modelId);
  const endpoint: Endpoint = {
    baseUrl,
    model: modelId,
    hasKey: apiKey !== undefined && apiKey !== "",
    secrets: secretsOf(apiKey, settings.headers),
  };
  const wireOf = (signal: AbortSignal) => {
    const wire = makeWire();
    wires.set(signal, wire);
    return wire;
  };
  return {
    name,
    kind: "openai",
    model: modelId,
    journal: "steps",
    complete(request, signal) {
      // A client's schema need not be one of those that the strict mode takes.
      const providerOptions = { [PROVIDER]: { strictJsonSchema: false } };
      const options = () => ({ ...v4Options(request, maxOutputTokens), providerOptions });
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

function isOpenAi(baseUrl: string): boolean {
  return URL.canParse(baseUrl) && new URL(baseUrl).hostname === "api.openai.com";
}

/** OpenAI's newer models refuse the old name, which every other server still expects. */
function renameMaxTokens({ max_tokens, ...body }: Record<string, unknown>): Record<string, unknown> {
  return max_tokens === undefined ? body : { ...body, max_completion_tokens: max_tokens };
}
