// Owns: from a settings file to settings: all problems at once, the last good copy, what may be shown.
// Writes nothing but the last good copy; never changes the settings file itself.
import { dirname, resolve } from "node:path";
import { z } from "zod";
import { ConfigError, messageOf } from "../kernel/errors.ts";
import { crossFindings } from "./checks.ts";
import type { Env } from "./env.ts";
import { isOpenToOthers, isThere, readTextFile, type TextFile, writePrivate } from "./files.ts";
import type { HomePaths } from "./home.ts";
import { bare, entry, isRecord, isSecret, type Path, schemaAt } from "./known-keys.ts";
import { fillFromFiles, literalSecretFindings } from "./named-files.ts";
import { type Finding, issueFindings, type Problem, pathText } from "./problems.ts";
import { type Settings, settingsSchema } from "./schema.ts";
import { readYaml, type YamlText } from "./yaml.ts";

/** A settings file is some hundred lines; long prompts have files of their own. */
const SETTINGS_LIMIT = 1024 * 1024;

export interface LoadRequest {
  /** The file named by `--config`; `undefined` means the one in the home, which may be absent. */
  readonly file: string | undefined;
  readonly paths: HomePaths;
  readonly env: Env;
}

export interface LoadedSettings {
  /** Without `backends` in the file they are empty here, and detection fills them (detect.ts). */
  readonly settings: Settings;
  /** `last-good`: the file has the listed problems, and the copy of the last good one is used. */
  readonly state: "file" | "last-good" | "defaults";
  /** The settings file, whether it could be used or not. */
  readonly path: string;
  readonly problems: readonly Problem[];
}

interface Checked {
  readonly settings: Settings | undefined;
  readonly problems: readonly Problem[];
  readonly refusesStart: boolean;
  readonly text: string;
}

/**
 * Loads the settings and keeps a copy of them as the last good ones (Q8.1): for the host.
 * @throws ConfigError listing every problem, when there is no usable copy either or a secret is exposed (SEC-2, NET-8)
 */
export function loadSettings(request: LoadRequest): LoadedSettings {
  return load(request, (text) => keepLastGood(request.paths, text));
}

/** The same without writing anything: for commands that only look. */
export function readSettings(request: LoadRequest): LoadedSettings {
  return load(request, () => []);
}

function load(request: LoadRequest, keep: (text: string) => Problem[]): LoadedSettings {
  const { paths } = request;
  const path = settingsPath(request);
  if (request.file === undefined && !isThere(path)) {
    return { settings: settingsSchema.parse({}), state: "defaults", path, problems: [] };
  }
  if (!isThere(path)) throw new ConfigError(`expected a settings file at ${path}, but there is none`);
  const checked = checkFile(path, path, request);
  if (checked.settings !== undefined) {
    return { settings: checked.settings, state: "file", path, problems: keep(checked.text) };
  }
  if (!checked.refusesStart && isThere(paths.lastGood)) {
    const copy = checkFile(paths.lastGood, path, request);
    if (copy.settings !== undefined)
      return { settings: copy.settings, state: "last-good", path, problems: checked.problems };
  }
  throw new ConfigError(`the settings in ${path} are refused:\n${formatProblems(checked.problems)}`, {
    hint: "correct what is listed and start again",
  });
}

/** Everything that is wrong with a settings file, an empty list when nothing is. Changes nothing. */
export function checkSettings(request: LoadRequest): readonly Problem[] {
  const path = settingsPath(request);
  return checkFile(path, path, request).problems;
}

function settingsPath({ file, paths }: LoadRequest): string {
  return file === undefined ? paths.settings : resolve(file);
}

/** @param original the file whose folder relative paths refer to: a copy elsewhere means the same files */
function checkFile(path: string, original: string, { env, paths }: LoadRequest): Checked {
  const file = readOrProblem(path);
  if ("message" in file) return { settings: undefined, problems: [file], refusesStart: false, text: "" };
  const yaml = readYaml(file.text, env);
  const findings: Finding[] = [...yaml.findings];
  const source = { path, mode: file.mode, original, env, paths };
  const settings = yaml.syntax.length > 0 ? undefined : interpret(yaml, findings, source);
  const problems = [...yaml.syntax, ...findings.map((finding) => locate(finding, yaml))].sort(byPlace);
  const refusesStart = findings.some((finding) => finding.refusesStart === true);
  return { settings: problems.length === 0 ? settings : undefined, problems, refusesStart, text: file.text };
}

function readOrProblem(path: string): TextFile | Problem {
  try {
    return readTextFile(path, SETTINGS_LIMIT);
  } catch (thrown) {
    return { path: "", message: messageOf(thrown) };
  }
}

interface Source {
  readonly path: string;
  readonly mode: number;
  readonly original: string;
  readonly env: Env;
  readonly paths: HomePaths;
}

/** Adds what it finds to `findings`; the result counts only when they stay empty. */
function interpret(yaml: YamlText, findings: Finding[], source: Source): Settings | undefined {
  const { root } = yaml;
  const fromEnv = (path: Path) => yaml.spot(path)?.fromEnv === true;
  readEnvNumbers(root, [], yaml);
  // A value that YAML could not give is not looked at again: its replacement would be wrong in other ways.
  const missing = new Set(findings.map(({ path }) => pathText(path)));
  const isNews = ({ path }: Finding) => !path.some((_, index) => missing.has(pathText(path.slice(0, index + 1))));
  findings.push(...literalSecretFindings(root, source, (path) => !fromEnv(path)));
  findings.push(...crossFindings({ root, fromEnv }, source).filter(isNews));
  const files = fillFromFiles(root, { base: dirname(source.original), env: source.env });
  findings.push(...files.findings);
  nameAllBackends(root);
  const parsed = settingsSchema.safeParse(root);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.flatMap((issue) => issueFindings(issue, { root, fromEnv }));
  findings.push(...issues.filter(isNews).map((finding) => atFileKey(finding, files.filled)));
  return undefined;
}

/** A fault in what a file held is shown at the key that names the file. */
function atFileKey(finding: Finding, filled: readonly Path[]): Finding {
  const text = pathText(finding.path);
  if (!filled.some((path) => pathText(path) === text)) return finding;
  return { ...finding, path: [...finding.path.slice(0, -1), `${finding.path.at(-1)}File`] };
}

/** The environment holds texts only, so `port: ${PORT}` is read as the schema wants it. */
function readEnvNumbers(holder: unknown, path: Path, yaml: YamlText): void {
  if (!isRecord(holder)) return;
  for (const [key, value] of Object.entries(holder)) {
    const inner = [...path, key];
    if (typeof value !== "string") readEnvNumbers(value, inner, yaml);
    else if (yaml.spot(inner)?.unquotedEnv === true) holder[key] = fromText(value, inner, yaml.root);
  }
}

function fromText(text: string, path: Path, root: unknown): string | number | boolean {
  const schema = schemaAt(path, root);
  const wanted = schema === undefined ? undefined : bare(schema, text);
  if (wanted instanceof z.ZodNumber && /^-?\d{1,15}(\.\d{1,15})?$/.test(text)) return Number(text);
  if (wanted instanceof z.ZodBoolean && /^(true|false)$/.test(text)) return text === "true";
  return text;
}

/** Whoever lists backends but no agents has one assistant that may use them all. */
function nameAllBackends(root: unknown): void {
  const backends = entry(root, "backends");
  if (!isRecord(root) || !isRecord(backends) || entry(root, "agents") !== undefined) return;
  const names = Object.keys(backends);
  if (names.length > 0) root["agents"] = { main: { backends: names } };
}

function locate({ path, message, atKey }: Finding, yaml: YamlText): Problem {
  const spot = yaml.spot(path);
  return { path: pathText(path), ...(atKey ? spot?.key : spot?.value), message };
}

/** From top to bottom; what has no line comes last. */
function byPlace(one: Problem, other: Problem): number {
  const last = Number.MAX_SAFE_INTEGER;
  return (one.line ?? last) - (other.line ?? last) || (one.column ?? last) - (other.column ?? last);
}

function keepLastGood(paths: HomePaths, text: string): Problem[] {
  try {
    if (isThere(paths.lastGood)) {
      const kept = readTextFile(paths.lastGood, SETTINGS_LIMIT);
      if (kept.text === text && !isOpenToOthers(kept.mode)) return [];
    }
    writePrivate(paths.lastGood, text);
    return [];
  } catch (thrown) {
    return [{ path: "", message: `the last good copy ${paths.lastGood} could not be written: ${messageOf(thrown)}` }];
  }
}

/** More than a person reads at once; a file that is no settings file can have thousands. */
const MAX_LISTED = 100;

/** One problem a line: `path (line L): message`. */
export function formatProblems(problems: readonly Problem[]): string {
  const listed = problems.slice(0, MAX_LISTED).map(({ path, line, message }) => {
    return `${path || "the file"}${line === undefined ? "" : ` (line ${line})`}: ${message}`;
  });
  const more = problems.length - listed.length;
  return (more === 0 ? listed : [...listed, `and ${more} more`]).join("\n");
}

/** The settings as they may be shown: every secret replaced (SEC-3). */
export function maskSecrets(settings: Settings): Record<string, unknown> {
  const masked = (value: unknown, path: Path): unknown => {
    if (Array.isArray(value)) return value.map((item, index) => masked(item, [...path, index]));
    if (isRecord(value))
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, masked(item, [...path, key])]));
    return value !== undefined && isSecret(path, settings) ? "***" : value;
  };
  return Object.fromEntries(Object.entries(settings).map(([key, value]) => [key, masked(value, [key])]));
}
