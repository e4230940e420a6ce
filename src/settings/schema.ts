// Owns: the one list of settings: names, forms, defaults, descriptions. What involves two keys is in checks.ts.
// A key is here only when something in this version reads it.
import { z } from "zod";
import { channels } from "./channels.ts";

/** A plain object answers to these names without having them. */
const isFreeName = (written: string) => !(written in Object.prototype);
const NAME_TAKEN = "expected another name: this one is reserved by JavaScript";

/** Part of session keys, so no colon; part of file names, so no slash, and no two that differ only in case. */
const agentName = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,63}$/, "expected a name of small letters, digits, - and _ that begins with a letter")
  .refine(isFreeName, NAME_TAKEN);

const backendName = z
  .string()
  .regex(/^[A-Za-z][\w.-]{0,63}$/, "expected a name of letters, digits, ., - and _ that begins with a letter")
  .refine(isFreeName, NAME_TAKEN);

const text = z.string().min(1);
/** 0 means no limit where the description says so. */
const durationMs = z.int().min(0);
const slots = z.int().min(1).max(1000);

/** Marks a value that is never shown (SEC-3); JSON Schema has the same word for it. */
const secret = (description: string) => ({ description, writeOnly: true });

/** A visible ASCII text: it must fit into an HTTP header. */
const HEADER_SAFE = /^[\x21-\x7e]+$/;
/** 16 characters of base64url are 96 bits, more than guessing over a network can reach. */
export const TOKEN_MIN_LENGTH = 16;
export const tokenText = z
  .string()
  .min(TOKEN_MIN_LENGTH)
  .max(512)
  .regex(HEADER_SAFE, "expected visible ASCII characters without blanks");

const origin = z
  .string()
  .refine(isWebOrigin, 'expected an exact origin such as "https://assistant.example", without a path');

function isWebOrigin(written: string): boolean {
  const url = URL.parse(written);
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === written;
}

const HOST_NAME = /^([0-9A-Za-z]([0-9A-Za-z.-]*[0-9A-Za-z])?|\[[0-9A-Fa-f:.]+\])$/;
const HOST_AND_PORT = /^([0-9A-Za-z]([0-9A-Za-z.-]*[0-9A-Za-z])?|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?$/;
const BARE_IPV6 = /^[0-9A-Fa-f]*:[0-9A-Fa-f:.]*$/;

const gateway = z.strictObject({
  host: z
    .string()
    .refine(
      (host) => HOST_NAME.test(host) || BARE_IPV6.test(host),
      "expected a host name or an IP address, without a port",
    )
    .default("127.0.0.1")
    .describe("Address to listen on. Anything but a loopback address needs an explicit token."),
  port: z.int().min(0).max(65535).default(7411).describe("Port to listen on; 0 takes any free one."),
  token: tokenText
    .optional()
    .meta(secret("The owner's token. Absent: LANEWAY_TOKEN, or a token made at the first start and kept in the home.")),
  tokenFile: text.optional().describe("File (mode 0600) that holds the token, instead of `token`."),
  allowedOrigins: z
    .array(origin)
    .default([])
    .describe("Origins of web pages, besides the gateway's own, that may connect."),
  allowedHosts: z
    .array(z.string().regex(HOST_AND_PORT, 'expected a host name such as "assistant.example", with or without a port'))
    .default([])
    .describe("Host names, besides the loopback ones, under which the gateway is reached."),
});

const ownerId = z
  .string()
  .regex(
    /^[a-z][a-z0-9-]*:-?\d{1,20}$/,
    'expected "channel:numeric id" such as "telegram:123456789" (names change hands, so they grant nothing)',
  );

/** Every tool of this version; the tools themselves are in turns/tools. */
const TOOL_NAMES = ["read", "list"] as const;

const agent = z.strictObject({
  backends: z
    .array(backendName)
    .min(1)
    .describe("Names of backends: the first is used, the others follow when it fails."),
  systemPrompt: text.optional().describe("What the agent is told before every conversation."),
  systemPromptFile: text.optional().describe("File that holds the system prompt, instead of `systemPrompt`."),
  workspace: text.default("workspace").describe("Folder in which the agent's tools work, relative to the home."),
  tools: z.array(z.enum(TOOL_NAMES)).optional().describe("Names of the tools it may use. Absent: all of them."),
});

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** @param example an address of the right form, for whoever wrote another */
const apiAddress = (example: string) =>
  z
    .url({ protocol: /^https?$/, error: `expected an http or https address such as "${example}"` })
    .refine(isPlainAddress, "expected an address without user, password, query and fragment; use apiKey or headers");

/** What all kinds with an endpoint share. */
const endpointAccess = {
  apiKey: z
    .string()
    .min(1)
    .regex(HEADER_SAFE, "expected visible ASCII characters without blanks")
    .optional()
    .meta(secret("Key sent with every call.")),
  apiKeyFile: text.optional().describe("File (mode 0600) that holds the key, instead of `apiKey`."),
  headers: z
    .record(
      z.string().regex(HEADER_NAME, "expected the name of an HTTP header"),
      z
        .string()
        .regex(/^[\x20-\x7e]*$/, "expected ASCII characters on one line")
        .meta(secret("Value of the header.")),
    )
    .optional()
    .describe("Further HTTP headers of every call."),
  maxConcurrent: z
    .int()
    .min(1)
    .max(1000)
    .optional()
    .describe("Calls that run at once, over all agents; further ones wait for their turn. Absent: no limit."),
};

const openaiBackend = z.strictObject({
  kind: z.literal("openai").describe("Any server that speaks OpenAI's chat completions."),
  model: text.describe("The model's name at that server."),
  baseUrl: apiAddress("http://127.0.0.1:11434/v1").describe("Address of the API, up to and including its version."),
  ...endpointAccess,
  contextTokens: z.int().min(1).optional().describe("Size of the model's context in tokens, when known."),
  maxOutputTokens: z.int().min(1).optional().describe("Largest answer in tokens. Absent: the server decides."),
  vision: z.boolean().default(false).describe("Whether the model can see images. If not, it is told of them."),
});

export const ANTHROPIC_URL = "https://api.anthropic.com/v1";
/** The standard context of all Claude models since Claude 2.1. */
const CLAUDE_CONTEXT_TOKENS = 200_000;
/** The API demands a limit. This one fits a long file, and every model since Claude 3.7 takes it. */
const CLAUDE_OUTPUT_TOKENS = 16_384;

const anthropicBackend = z.strictObject({
  kind: z.literal("anthropic").describe("Anthropic's Messages API, or a server that speaks it."),
  model: text.describe("The model's name there."),
  baseUrl: apiAddress(ANTHROPIC_URL)
    .default(ANTHROPIC_URL)
    .describe("Address of the API, up to and including its version."),
  ...endpointAccess,
  contextTokens: z.int().min(1).default(CLAUDE_CONTEXT_TOKENS).describe("Size of the model's context in tokens."),
  maxOutputTokens: z
    .int()
    .min(1)
    .default(CLAUDE_OUTPUT_TOKENS)
    .describe("Largest answer in tokens. Lowered for known models that take less."),
  vision: z.boolean().default(true).describe("Whether the model can see images. If not, it is told of them."),
});

function isPlainAddress(written: string): boolean {
  const url = URL.parse(written);
  return url === null || url.username + url.password + url.search + url.hash === "";
}

const offlineBackend = z.strictObject({
  kind: z.literal("offline").describe("Built in: answers without a model, to try the host out."),
});

export const backendSchema = z.discriminatedUnion("kind", [openaiBackend, anthropicBackend, offlineBackend]);

const lanes = z.strictObject({
  main: slots.default(8).describe("Turns for people that run at once."),
  subagent: slots.default(8).describe("Turns of spawned agents that run at once."),
  cron: slots.default(4).describe("Scheduled turns that run at once."),
  "cron-nested": slots.default(4).describe("Turns caused by scheduled ones that run at once."),
  background: slots.default(1).describe("Reviews and other work nobody waits for that runs at once."),
  nestedTotal: slots
    .default(8)
    .describe("Turns of all nested lanes together that run at once; each such lane runs one."),
  total: slots.default(24).describe("Turns of all lanes together that run at once."),
  mainReserved: z.int().min(0).max(1000).default(1).describe("Of the total, what the other lanes leave free for main."),
  agingMs: durationMs
    .default(60_000)
    .describe("Head start of one step of priority; nobody waits longer because of priority."),
});

const busyMode = z.enum(["steer", "followup", "collect", "interrupt"]);
const busy = {
  mode: busyMode
    .default("steer")
    .describe(
      "What a message does while its conversation is busy: steer joins the running turn at its next step, followup waits for a turn of its own, collect waits to be answered together with the others, interrupt stops the running turn.",
    ),
  debounceMs: durationMs
    .default(500)
    .describe("How long a message to a busy conversation waits for more of its kind, with collect; 0 = not at all."),
};

const queue = z.strictObject({
  ...busy,
  perChannel: z
    .partialRecord(
      z.enum(["telegram", "web", "terminal"]),
      z.strictObject({ mode: busyMode.describe("As `mode`, for this channel.") }),
    )
    .default({})
    .describe("Other busy modes by channel."),
  cap: z.int().min(1).default(20).describe("Messages that may wait in one session; the next is refused visibly."),
  maxAgeMs: durationMs
    .default(7_200_000)
    .describe("After downtime an older message is not run, and its sender is told; 0 = no limit."),
  hostCap: z
    .int()
    .min(1)
    .default(10_000)
    .describe("Commands that may wait in the whole host; the next is refused visibly."),
});

const turns = z.strictObject({
  attemptTimeoutMs: durationMs.default(300_000).describe("Longest call of one backend; 0 = no limit."),
  firstTokenMs: durationMs.default(120_000).describe("Longest wait for the first token of a call; 0 = no limit."),
  idleMs: durationMs.default(120_000).describe("Longest silence between two tokens; 0 = no limit."),
  turnTimeoutMs: durationMs
    .default(1_800_000)
    .describe("Longest turn, all its calls and tools included; 0 = no limit."),
  graceMs: durationMs.default(15_000).describe("Extra time to end well after a limit was reached."),
  attempts: z.int().min(1).max(5).default(2).describe("Tries of one backend before the next one is used."),
});

const budget = z.strictObject({
  iterations: z.int().min(1).default(90).describe("Model calls that one turn may make."),
});

const transcribe = z.strictObject({
  baseUrl: z
    .url({ protocol: /^https?$/ })
    .default("https://api.openai.com/v1")
    .describe("Address of an endpoint of OpenAI's form, up to and including its version."),
  model: text.default("whisper-1").describe("The model's name there."),
  apiKey: z
    .string()
    .min(1)
    .regex(HEADER_SAFE, "expected visible ASCII characters without blanks")
    .optional()
    .meta(secret("Key sent as bearer token.")),
  apiKeyFile: text.optional().describe("File (mode 0600) that holds the key, instead of `apiKey`."),
  command: z
    .array(text)
    .min(1)
    .optional()
    .describe(
      "Instead of an endpoint: a program and its arguments; audio comes on its input, text is taken from its output.",
    ),
});

const media = z.strictObject({
  transcribe: transcribe
    .optional()
    .describe("How voice notes become text. Absent: the sender is told that they cannot be heard."),
});

export const settingsSchema = z.strictObject({
  gateway: gateway.prefault({}).describe("Where the host listens and who may connect."),
  owner: z.array(ownerId).default([]).describe('Who owns the host, besides the token\'s holder: "channel:numeric id".'),
  agents: z
    .record(agentName, agent)
    .default({ main: { backends: [], workspace: "workspace" } })
    .describe("The agents by name; `main` must be one. Absent: `main` with all backends in their order."),
  backends: z
    .record(backendName, backendSchema)
    .default({})
    .describe("The model endpoints by name. Absent: the first start looks for what is there."),
  lanes: lanes.prefault({}).describe("How much runs at once."),
  queue: queue.prefault({}).describe("How much may wait, and how long."),
  turns: turns.prefault({}).describe("Time limits of a turn, in milliseconds."),
  budget: budget.prefault({}).describe("What a turn may spend."),
  media: media.prefault({}).describe("What is made of pictures and voice notes."),
  channels: channels.prefault({}).describe("Where people write from."),
  log: z
    .strictObject({
      level: z.enum(["debug", "info", "warn", "error"]).default("info").describe("Least level that is logged."),
    })
    .prefault({})
    .describe("The log."),
});

export type Settings = z.infer<typeof settingsSchema>;
export type BackendSettings = z.infer<typeof backendSchema>;

/** The JSON Schema of a settings file, for editors and `config schema`. */
export function settingsJsonSchema(): z.core.JSONSchema.BaseSchema {
  return z.toJSONSchema(settingsSchema, { io: "input" });
}
