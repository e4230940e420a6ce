// Owns: what a problem of the settings is and how it is worded: what was expected, what came, what was meant.
// Never puts a secret, or what came from the environment, into a message.
import type { z } from "zod";
import { entry, isRecord, isSecret, keysAt, nearest, type Path } from "./known-keys.ts";

export interface Problem {
  /** Such as `agents.main.backends[1]`; empty for the file as a whole. */
  readonly path: string;
  /** From 1. */
  readonly line?: number;
  /** From 1. */
  readonly column?: number;
  readonly message: string;
}

/** A problem whose place in the file is still to be looked up. */
export interface Finding {
  readonly path: Path;
  readonly message: string;
  /** Look at the key rather than at its value. */
  readonly atKey?: true;
  /** The start must be refused even when a last good copy exists (SEC-2, NET-8). */
  readonly refusesStart?: true;
}

/** What the wording needs to know about the settings as written. */
export interface Written {
  readonly root: unknown;
  /** Whether the value at this place came from the environment. */
  readonly fromEnv: (path: Path) => boolean;
}

/** `agents.main.backends[1]`; an unusual key is quoted. */
export function pathText(path: Path): string {
  return path
    .map((key, index) => {
      if (typeof key === "number") return `[${key}]`;
      return (index === 0 ? "" : ".") + keyText(key);
    })
    .join("");
}

function keyText(key: string): string {
  return /^[\w-]{1,80}$/.test(key) ? key : JSON.stringify(clip(key, 80));
}

function clip(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

/** All findings in one issue of the schema: an issue about unknown keys can hold several. */
export function issueFindings(issue: z.core.$ZodIssue, written: Written): Finding[] {
  const path = issue.path.map((key) => (typeof key === "symbol" ? String(key) : key));
  if (issue.code === "unrecognized_keys") return issue.keys.map((key) => unknownKey(path, key, written.root));
  if (issue.code === "invalid_key") {
    return [{ path, atKey: true, message: issue.issues[0]?.message ?? "expected another name" }];
  }
  const value = path.reduce(entry, written.root);
  const expected = expectation(issue);
  if (value === undefined) return [{ path, message: `${expected}, but nothing came` }];
  return [{ path, message: `${expected}, but got ${cameText(path, value, written)}${advice(issue, value)}` }];
}

function unknownKey(path: Path, key: string, root: unknown): Finding {
  const known = keysAt(path, root);
  const guess = nearest(key, known);
  const advice = guess === undefined ? `known here: ${known.join(", ")}` : `did you mean "${guess}"?`;
  return { path: [...path, key], atKey: true, message: `unknown key; ${advice}` };
}

function expectation(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return `expected ${typeText(issue.expected)}`;
    case "too_small":
      return `expected ${amountText(issue.origin, "at least", Number(issue.minimum))}`;
    case "too_big":
      return `expected ${amountText(issue.origin, "at most", Number(issue.maximum))}`;
    case "invalid_value":
      return `expected one of ${issue.values.map(String).join(", ")}`;
    case "invalid_union":
      return `expected one of ${kinds(issue).join(", ")}`;
    default:
      return issue.message;
  }
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a mapping",
  record: "a mapping",
};

function typeText(type: string): string {
  return TYPE_WORDS[type] ?? type;
}

function amountText(origin: string, bound: string, amount: number): string {
  if (origin === "string") return `${bound} ${amount} ${amount === 1 ? "character" : "characters"}`;
  if (origin === "array") return `${bound} ${amount} ${amount === 1 ? "entry" : "entries"}`;
  return `${bound} ${amount}`;
}

function kinds(issue: z.core.$ZodIssue): string[] {
  return "options" in issue && Array.isArray(issue.options) ? issue.options.map(String) : [];
}

/** What came, short. A secret is described by its length alone. */
export function cameText(path: Path, value: unknown, written: Written): string {
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (isRecord(value)) return "a mapping";
  if (isSecret(path, written.root)) return `${String(value).length} characters (not shown)`;
  if (written.fromEnv(path)) return "another value from the environment (not shown)";
  return JSON.stringify(typeof value === "string" ? clip(value, 60) : value);
}

function advice(issue: z.core.$ZodIssue, value: unknown): string {
  const isBare = typeof value === "number" || typeof value === "boolean";
  if (isBare && issue.code === "invalid_type" && issue.expected === "string") return "; put it in quotes";
  if (typeof value !== "string") return "";
  const known = issue.code === "invalid_value" ? issue.values.map(String) : kinds(issue);
  const guess = nearest(value, known);
  return guess === undefined ? "" : `; did you mean "${guess}"?`;
}
