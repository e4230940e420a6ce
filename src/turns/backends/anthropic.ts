// Owns: a backend over Anthropic's Messages API, or a server that speaks it. Loaded only when the settings name one.
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { arrangeForAnthropic } from "./anthropic-history.ts";
import type { ShownMessage } from "./images.ts";
import type { Backend, ModelRequest, ToolSpec } from "./port.ts";
import { type EndpointSettings, makeV4Backend } from "./v4-backend.ts";
import { v4Options } from "./v4-prompt.ts";
import type { EndMark } from "./wire.ts";

export interface AnthropicSettings extends EndpointSettings {
  /** For requests that state no limit of their own: the API demands one. */
  readonly maxOutputTokens: number;
}

/** The event that ends every stream, with its data line. Servers that send no event lines are merely not cut short. */
const MESSAGE_STOP: EndMark = {
  pattern: /[\r\n]event: ?message_stop(?:\r\n|\r|\n)data:[^\r\n]*[\r\n]/,
  maxChars: 512,
};

const KEY_HEADER = "x-api-key";

export async function makeAnthropicBackend(settings: AnthropicSettings): Promise<Backend> {
  const { createAnthropic } = await import("@ai-sdk/anthropic");
  const { model, baseUrl, apiKey, headers, maxOutputTokens } = settings;
  return makeV4Backend(settings, {
    kind: "anthropic",
    end: MESSAGE_STOP,
    connect: (fetch) =>
      createAnthropic({
        baseURL: baseUrl,
        // Never left out: the provider would then take ANTHROPIC_API_KEY from the environment, whatever the address.
        apiKey: apiKey ?? "",
        fetch: withoutEmptyKey(fetch),
        ...(headers !== undefined && { headers: { ...headers } }),
      }).languageModel(model),
    arrange: arrangeForAnthropic,
    options: (request, messages) => callOptions(request, messages, maxOutputTokens),
  });
}

function withoutEmptyKey(plain: typeof fetch): typeof fetch {
  return async (input, init) => {
    const headers = new Headers(init?.headers);
    if (headers.get(KEY_HEADER) === "") headers.delete(KEY_HEADER);
    return await plain(input, { ...init, headers });
  };
}

function callOptions(
  request: ModelRequest,
  messages: readonly ShownMessage[],
  maxOutputTokens: number,
): LanguageModelV4CallOptions {
  if (request.tools.length > 0) return v4Options(request, messages, maxOutputTokens);
  const tools = calledTools(messages);
  if (tools.length === 0) return v4Options(request, messages, maxOutputTokens);
  const sampling = { ...request.sampling, toolChoice: "none" as const };
  return v4Options({ tools, sampling }, messages, maxOutputTokens);
}

/** A history with tool calls needs tools beside it, also in a request that allows none, such as a turn's last. */
function calledTools(messages: readonly ShownMessage[]): ToolSpec[] {
  const calls = messages.flatMap((message) => (message.role === "assistant" ? message.calls : []));
  const names = new Set(calls.map((call) => call.name));
  return Array.from(names, (name) => ({ name, description: "Not available now.", schema: { type: "object" } }));
}
