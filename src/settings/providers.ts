// Owns: what the first start knows about the world outside: addresses, names of variables, a usable model of each provider.
// Data only, in the order of preference.
import { ANTHROPIC_URL } from "./schema.ts";

export interface KeyProvider {
  readonly name: string;
  /** Environment variables that hold its key. */
  readonly keys: readonly string[];
  /** The protocol of its API. */
  readonly kind: "openai" | "anthropic";
  readonly baseUrl: string;
  /** The variable by which its users set another address. */
  readonly baseUrlVariable?: string;
  /** Taken unless LANEWAY_MODEL names another: a model that can call tools, of middle price. */
  readonly model: string;
  /** Whether that model can see images. */
  readonly vision: boolean;
}

export const KEY_PROVIDERS: readonly KeyProvider[] = [
  {
    name: "openai",
    keys: ["OPENAI_API_KEY"],
    kind: "openai",
    baseUrl: "https://api.openai.com/v1",
    baseUrlVariable: "OPENAI_BASE_URL",
    model: "gpt-5-mini",
    vision: true,
  },
  {
    name: "anthropic",
    keys: ["ANTHROPIC_API_KEY"],
    kind: "anthropic",
    baseUrl: ANTHROPIC_URL,
    baseUrlVariable: "ANTHROPIC_BASE_URL",
    model: "claude-sonnet-4-5",
    vision: true,
  },
  {
    name: "openrouter",
    keys: ["OPENROUTER_API_KEY"],
    kind: "openai",
    baseUrl: "https://openrouter.ai/api/v1",
    model: "openrouter/auto",
    vision: false,
  },
  {
    name: "gemini",
    keys: ["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    kind: "openai",
    baseUrl: "https://generativelanguage.googleapis.com/v1beta/openai",
    model: "gemini-2.5-flash",
    vision: true,
  },
  {
    name: "mistral",
    keys: ["MISTRAL_API_KEY"],
    kind: "openai",
    baseUrl: "https://api.mistral.ai/v1",
    model: "mistral-medium-latest",
    vision: true,
  },
  {
    name: "groq",
    keys: ["GROQ_API_KEY"],
    kind: "openai",
    baseUrl: "https://api.groq.com/openai/v1",
    model: "openai/gpt-oss-120b",
    vision: false,
  },
  {
    name: "deepseek",
    keys: ["DEEPSEEK_API_KEY"],
    kind: "openai",
    baseUrl: "https://api.deepseek.com/v1",
    model: "deepseek-chat",
    vision: false,
  },
];

export interface LocalServer {
  readonly name: string;
  readonly title: string;
  readonly baseUrl: string;
}

export const LOCAL_SERVERS: readonly LocalServer[] = [
  { name: "ollama", title: "Ollama", baseUrl: "http://127.0.0.1:11434/v1" },
  { name: "lm-studio", title: "LM Studio", baseUrl: "http://127.0.0.1:1234/v1" },
  { name: "llama-cpp", title: "llama.cpp", baseUrl: "http://127.0.0.1:8080/v1" },
];

export const AGENT_COMMANDS = ["claude", "codex", "opencode", "gemini"] as const;
