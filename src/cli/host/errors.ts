// Owns: what can go wrong between this process and the host, and which of it passes by itself.
import { EXIT, type ExitCode, LanewayError, NotRunning } from "../../kernel/errors.ts";

/** The connection broke after the request had been sent: the host may or may not have acted on it. */
export class AnswerLost extends LanewayError {
  readonly code = "answer_lost";
  override readonly exitCode = EXIT.notRunning;
}

/** The host answered with an error of its own. */
export class HostRefused extends LanewayError {
  readonly code: string;
  readonly status: number;
  override readonly exitCode: ExitCode;

  constructor(status: number, error: { code: string; message: string; hint?: string | undefined }) {
    super(error.message, error.hint === undefined ? {} : { hint: error.hint });
    this.code = error.code;
    this.status = status;
    this.exitCode = error.code === "invalid_input" ? EXIT.usage : EXIT.workFailed;
  }
}

/** Whether the host may answer later, as it is while it restarts or its disk is full. */
export function isPassing(thrown: unknown): boolean {
  if (thrown instanceof NotRunning || thrown instanceof AnswerLost) return true;
  return thrown instanceof HostRefused && [502, 503, 504].includes(thrown.status);
}

/** Whether the host takes no more for now: it answers 429 for a full queue. */
export function isFull(thrown: unknown): boolean {
  return thrown instanceof HostRefused && thrown.status === 429;
}
