// Owns: from a backend's settings to the backend. Loads the file of a kind only when one of that kind is built.
import type { BackendSettings } from "../../settings/schema.ts";
import type { Backend } from "./port.ts";

/** Builds the backend called `name`. Makes no call: whether its server answers shows at the first turn. */
export async function makeBackend(name: string, settings: BackendSettings): Promise<Backend> {
  switch (settings.kind) {
    case "openai": {
      const { makeOpenAiBackend } = await import("./openai.ts");
      const { model, baseUrl, apiKey, headers, maxOutputTokens, vision } = settings;
      return await makeOpenAiBackend({ name, model, baseUrl, apiKey, headers, maxOutputTokens, vision });
    }
    case "anthropic": {
      const { makeAnthropicBackend } = await import("./anthropic.ts");
      const { model, baseUrl, apiKey, headers, maxOutputTokens, vision } = settings;
      return await makeAnthropicBackend({ name, model, baseUrl, apiKey, headers, maxOutputTokens, vision });
    }
    case "offline": {
      const { makeOfflineBackend } = await import("./offline.ts");
      return makeOfflineBackend({ name });
    }
    default:
      return settings satisfies never;
  }
}
