// Owns: a backend over any server that speaks OpenAI's chat completions. Loaded only when the settings name one.
import { mendHistory } from "./history.ts";
import type { Backend } from "./port.ts";
import { type EndpointSettings, makeV4Backend } from "./v4-backend.ts";
import { v4Options } from "./v4-prompt.ts";
import type { EndMark } from "./wire.ts";

export interface OpenAiSettings extends EndpointSettings {
  /** For requests that state no limit of their own. */
  readonly maxOutputTokens?: number | undefined;
}

/** The provider reads its own options under this name; a backend's name may hold dots, which it cannot. */
const PROVIDER = "laneway";

/** The line that ends every stream. */
const DONE_LINE: EndMark = { pattern: /[\r\n]data: ?\[DONE\]/, maxChars: 13 };

export async function makeOpenAiBackend(settings: OpenAiSettings): Promise<Backend> {
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const { model, baseUrl, apiKey, headers, maxOutputTokens } = settings;
  return makeV4Backend(settings, {
    kind: "openai",
    end: DONE_LINE,
    connect: (fetch) =>
      createOpenAICompatible({
        name: PROVIDER,
        baseURL: baseUrl,
        includeUsage: true,
        supportsStructuredOutputs: true,
        fetch,
        ...(apiKey !== undefined && { apiKey }),
        ...(headers !== undefined && { headers: { ...headers } }),
        ...(isOpenAi(baseUrl) && { transformRequestBody: renameMaxTokens }),
      }).chatModel(model),
    arrange: mendHistory,
    options: (request, messages) => ({
      ...v4Options(request, messages, maxOutputTokens),
      // A client's schema need not be one of those that the strict mode takes.
      providerOptions: { [PROVIDER]: { strictJsonSchema: false } },
    }),
  });
}

function isOpenAi(baseUrl: string): boolean {
  return URL.canParse(baseUrl) && new URL(baseUrl).hostname === "api.openai.com";
}

/** OpenAI's newer models refuse the old name, which every other server still expects. */
function renameMaxTokens({ max_tokens, ...body }: Record<string, unknown>): Record<string, unknown> {
  return max_tokens === undefined ? body : { ...body, max_completion_tokens: max_tokens };
}
