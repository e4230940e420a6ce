// Owns: what a backend is for the turn, whatever stands behind it. No backend knows of sessions, lanes or rows.
import type { Grants } from "../grants.ts";

/** One call of a tool by the model. `input` is the JSON text as the model wrote it, parsed only when the tool runs. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly input: string;
}

/** An image by reference: rows and requests hold no bytes; they are read just before a call. */
export interface ImageRef {
  /** What `ReadImage` knows it by: a path below the home's media folder. Its last part is the name that a model is told. */
  readonly file: string;
  /** As in `image/jpeg`. */
  readonly mediaType: string;
}

/** Gives the bytes of an image, `undefined` when it is gone. Belongs to the caller, who knows where the files are. */
export type ReadImage = (image: ImageRef, signal: AbortSignal) => Promise<Uint8Array | undefined>;

export type ModelMessage =
  | { readonly role: "system"; readonly text: string }
  | { readonly role: "user"; readonly text: string; readonly images?: readonly ImageRef[] | undefined }
  | { readonly role: "assistant"; readonly text: string; readonly calls: readonly ToolCall[] }
  | {
      readonly role: "tool";
      readonly callId: string;
      readonly name: string;
      readonly text: string;
      readonly isError: boolean;
    };

/** A tool as the model sees it. `schema` is a JSON Schema of an object. */
export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

/** Sampling wishes that a client of the OpenAI door may state; absent means the backend's own default. */
export interface Sampling {
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly maxOutputTokens?: number | undefined;
  readonly stop?: readonly string[] | undefined;
  readonly seed?: number | undefined;
  readonly presencePenalty?: number | undefined;
  readonly frequencyPenalty?: number | undefined;
  readonly toolChoice?: "auto" | "none" | "required" | { readonly tool: string } | undefined;
  /** `json` asks for a JSON object; with a schema, for one that fits it. */
  readonly responseFormat?:
    | {
        readonly type: "json";
        readonly schema?: Readonly<Record<string, unknown>>;
        readonly name?: string;
      }
    | undefined;
}

export interface ModelRequest {
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly ToolSpec[];
  readonly sampling: Sampling;
  /** Without it no image is shown; a line in the text says so. */
  readonly readImage?: ReadImage | undefined;
}

/** Why a call failed. What follows from each class stands in one table, `turns/failover.ts`. */
export type ErrorClass =
  | "rate-limit"
  | "overloaded"
  | "network"
  | "timeout"
  | "server"
  | "auth"
  | "billing"
  | "quota"
  | "context-overflow"
  | "refusal"
  | "invalid"
  | "aborted";

export interface BackendFailure {
  readonly class: ErrorClass;
  /** One line for people. Never holds a key or a token. */
  readonly message: string;
  readonly status?: number | undefined;
  /** The wait that the other side asked for. */
  readonly retryAfterMs?: number | undefined;
}

export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export type BackendEvent =
  | { readonly type: "text"; readonly delta: string }
  | { readonly type: "reasoning"; readonly delta: string }
  | { readonly type: "tool-call"; readonly call: ToolCall }
  /** The model finished by itself: a finish part was seen. Only after this may tool calls of the stream be run. */
  | { readonly type: "finish"; readonly reason: "stop" | "length" | "tool-calls"; readonly usage: Usage }
  /** The call failed, was cut or was aborted; what was streamed before is partial. */
  | { readonly type: "failure"; readonly failure: BackendFailure };

/**
 * A model endpoint or agent. The contract of `complete`:
 * - it never throws and never rejects; every stream ends with exactly one `finish` or `failure`, then closes;
 * - a stream that closes without the other side's finish part is a `failure` of class `network` (a cut is never an end);
 * - when `signal` aborts it ends within 200 ms with a `failure` of class `aborted`, never with `finish`;
 * - it retries nothing by itself: retry and failover belong to the turn.
 * The caller guards all of it all the same.
 */
export interface Backend {
  readonly name: string;
  readonly kind: string;
  readonly model: string;
  /** `steps`: the turn journals each model and tool call. */
  readonly journal: "steps";
  /** How many calls it takes at once, over all turns. Absent: any number. The caller takes and gives back; `complete` does not look. */
  readonly grants?: Grants | undefined;
  complete(request: ModelRequest, signal: AbortSignal): AsyncIterable<BackendEvent>;
}
