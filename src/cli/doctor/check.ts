// Owns: what a check of `doctor` says.
import { LanewayError, messageOf } from "../../kernel/errors.ts";

export interface Check {
  readonly name: string;
  readonly state: "ok" | "warn" | "fail";
  /** What was found, in a few words. */
  readonly detail: string;
  /** What to do about it. */
  readonly hint?: string | undefined;
}

export function ok(name: string, detail: string): Check {
  return { name, state: "ok", detail };
}

export function warn(name: string, detail: string, hint: string): Check {
  return { name, state: "warn", detail, hint };
}

export function fail(name: string, detail: string, hint?: string): Check {
  return hint === undefined ? { name, state: "fail", detail } : { name, state: "fail", detail, hint };
}

/** A check that failed by an error: its sentence and its hint. */
export function failedBy(name: string, thrown: unknown): Check {
  return fail(name, messageOf(thrown), thrown instanceof LanewayError ? thrown.hint : undefined);
}
