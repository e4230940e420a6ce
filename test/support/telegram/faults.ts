// Owns: what a test makes go wrong with the next calls. It decides nothing by itself.
import { type RefusalParameters, Refused } from "./wire.ts";

export type Fault =
  | { readonly kind: "fail"; readonly refused: Refused }
  /** No answer: the socket is destroyed, after the call took effect or before. */
  | { readonly kind: "drop"; readonly accepted: boolean }
  /** No answer and an open connection, until the client gives up. */
  | { readonly kind: "hang"; readonly accepted: boolean }
  /** An answer that is none of the Bot API's. */
  | { readonly kind: "spoil"; readonly accepted: boolean; readonly status: number; readonly body: string };

export interface Failure {
  readonly status: number;
  readonly description: string;
  readonly parameters?: RefusalParameters;
}

/** `method`: a method's name, or "*" for any. `times`: how many calls; 1 unless said otherwise. */
export interface FaultVerbs {
  /** A refusal. A 429 with `retry_after` opens its window: calls inside it are refused and recorded. */
  failNext(method: string, failure: Failure, times?: number): void;
  dropAfterAccept(method: string, times?: number): void;
  dropBefore(method: string, times?: number): void;
  hang(method: string, options?: { accepted?: boolean; times?: number }): void;
  /** What a proxy in front answers: 502 and a page. */
  badGateway(method: string, options?: { accepted?: boolean; times?: number }): void;
  /** Status 200 and JSON that breaks off. */
  garbage(method: string, options?: { accepted?: boolean; times?: number }): void;
  /** Each answer, not the effect, is held back so long; an answer to getUpdates is not. */
  latencyMs(ms: number): void;
  /** The same for each call anew. What has arrived takes effect in the end, whether its client waits for it or not. */
  latency(of: (method: string) => Latency): void;
  /** Takes back what has not been used. */
  healthy(): void;
}

/** In ms: before a call takes effect, and then before it is answered. */
export interface Latency {
  readonly beforeMs: number;
  readonly afterMs: number;
}

export interface Faults {
  readonly verbs: FaultVerbs;
  /** The fault for this call, which is used up by it. */
  take(method: string): Fault | undefined;
  latency(method: string): Latency;
}

const BAD_GATEWAY = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>502 Bad Gateway</body>\r\n</html>";

const NO_LATENCY: Latency = { beforeMs: 0, afterMs: 0 };

export function makeFaults(): Faults {
  let planned: { method: string; fault: Fault }[] = [];
  let latency: (method: string) => Latency = () => NO_LATENCY;
  const plan = (method: string, fault: Fault, times = 1) => {
    for (let count = 0; count < times; count++) planned.push({ method, fault });
  };
  return {
    latency: (method) => (method === "getUpdates" ? NO_LATENCY : latency(method)),
    take(method) {
      const at = planned.findIndex((entry) => entry.method === "*" || entry.method === method);
      return at < 0 ? undefined : planned.splice(at, 1)[0]?.fault;
    },
    verbs: {
      failNext(method, { status, description, parameters }, times) {
        const refused = new Refused(status, description, parameters === undefined ? {} : { parameters });
        plan(method, { kind: "fail", refused }, times);
      },
      dropAfterAccept: (method, times) => plan(method, { kind: "drop", accepted: true }, times),
      dropBefore: (method, times) => plan(method, { kind: "drop", accepted: false }, times),
      hang: (method, { accepted = false, times } = {}) => plan(method, { kind: "hang", accepted }, times),
      badGateway: (method, { accepted = false, times } = {}) =>
        plan(method, { kind: "spoil", accepted, status: 502, body: BAD_GATEWAY }, times),
      garbage: (method, { accepted = false, times } = {}) =>
        plan(method, { kind: "spoil", accepted, status: 200, body: '{"ok":true,"result":{"mess' }, times),
      latencyMs: (ms) => {
        latency = () => ({ beforeMs: 0, afterMs: ms });
      },
      latency: (of) => {
        latency = of;
      },
      healthy: () => {
        planned = [];
        latency = () => NO_LATENCY;
      },
    },
  };
}
