// Owns: `laneway config …`: the settings without a host. Shows no secret.
import { EXIT, type ExitCode, InvalidInput, NotFound } from "../kernel/errors.ts";
import { visible } from "../kernel/visible.ts";
import { isThere } from "../settings/files.ts";
import { checkSettings, formatProblems, maskSecrets, readSettings } from "../settings/load.ts";
import { pathText } from "../settings/problems.ts";
import { settingsJsonSchema } from "../settings/schema.ts";
import { jsonLine } from "./print/json.ts";
import { paint } from "./print/paint.ts";
import { countText } from "./print/words.ts";
import type { JsonOption, Shell } from "./shell.ts";

interface ConfigOptions extends JsonOption {
  readonly config?: string | undefined;
}
type Path = readonly (string | number)[];

/** All problems of the settings file at once; 78 when there is one (Q8). */
export async function configCheck(shell: Shell, { config, json }: ConfigOptions): Promise<ExitCode> {
  const { paths, env, out, err } = shell;
  const file = config ?? paths.settings;
  if (config === undefined && !isThere(file)) {
    await out.write(json ? "" : `${paint(out, "green", "ok")}  no settings file (${visible(file)}), so the defaults\n`);
    return EXIT.ok;
  }
  const problems = checkSettings({ file: config, paths, env });
  if (json) await out.write(problems.map((problem) => jsonLine({ state: "wrong", file, ...problem })).join(""));
  if (problems.length > 0) {
    if (!json) {
      const head = `${paint(err, "red", "laneway:")} ${countText(problems.length, "problem")} in ${visible(file)}`;
      await err.write(`${head}\n${visible(formatProblems(problems), "\n")}\n`);
    }
    return EXIT.settingsRefused;
  }
  if (!json) await out.write(`${paint(out, "green", "ok")}  ${visible(file)}\n`);
  return EXIT.ok;
}

/** The JSON Schema, for editors. */
export async function configSchema({ out }: Shell): Promise<ExitCode> {
  await out.write(`${JSON.stringify(settingsJsonSchema(), undefined, 2)}\n`);
  return EXIT.ok;
}

/**
 * The settings in force, defaults included, or the part of them at `path`. For people one `path: value` line each;
 * one value alone is written bare, so that a script can take it.
 */
export async function configGet(shell: Shell, path: string | undefined, options: ConfigOptions): Promise<ExitCode> {
  const { paths, env, out, err } = shell;
  const loaded = readSettings({ file: options.config, paths, env });
  if (loaded.state === "last-good") {
    await err.write(
      `${visible(loaded.path)} has problems (see \`laneway config check\`); these are the last good settings.\n`,
    );
  }
  const keys = parsePath(path ?? "");
  const value = keys.reduce(step, maskSecrets(loaded.settings));
  if (value === undefined) throw noSuch(path ?? "", keys, maskSecrets(loaded.settings));
  await out.write(options.json ? jsonLine(value) : plainText(value, keys));
  return EXIT.ok;
}

function noSuch(path: string, keys: Path, settings: unknown): NotFound {
  for (let length = keys.length - 1; length >= 0; length--) {
    const around = keys.slice(0, length).reduce(step, settings);
    if (typeof around !== "object" || around === null) continue;
    const where = length === 0 ? "" : ` in ${pathText(keys.slice(0, length))}`;
    return new NotFound(`nothing is set at ${JSON.stringify(path)}`, {
      hint: `There is${where}: ${Object.keys(around).join(", ")}`,
    });
  }
  return new NotFound(`nothing is set at ${JSON.stringify(path)}`);
}

function step(value: unknown, key: string | number): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
  return Object.entries(value).find(([name]) => name === String(key))?.[1];
}

function plainText(value: unknown, path: Path): string {
  if (typeof value !== "object" || value === null) return `${visible(String(value), "\n\t")}\n`;
  return leaves(value, path)
    .map(([at, leaf]) => `${visible(pathText(at))}: ${JSON.stringify(leaf)}\n`)
    .join("");
}

/** The single values, and empty lists and mappings, below a place. */
function leaves(value: unknown, path: Path): [Path, unknown][] {
  if (typeof value !== "object" || value === null || Object.keys(value).length === 0) {
    return value === undefined ? [] : [[path, value]];
  }
  if (Array.isArray(value)) return value.flatMap((item: unknown, index) => leaves(item, [...path, index]));
  return Object.entries(value).flatMap(([key, item]) => leaves(item, [...path, key]));
}

const PATH_PART = /\.?([\w-]+)|\[(\d+)\]|\.?("(?:[^"\\]|\\.)*")/y;

/** The form that problems are shown in: `agents.main.backends[1]`, unusual keys quoted. Throws InvalidInput. */
export function parsePath(text: string): (string | number)[] {
  const keys: (string | number)[] = [];
  PATH_PART.lastIndex = 0;
  let end = 0;
  for (let found = PATH_PART.exec(text); found !== null; found = PATH_PART.exec(text)) {
    const [, plain, index, quoted] = found;
    if (plain !== undefined) keys.push(plain);
    if (index !== undefined) keys.push(Number(index));
    if (quoted !== undefined) keys.push(unquote(quoted, text));
    end = PATH_PART.lastIndex;
  }
  if (end !== text.length) throw badPath(text);
  return keys;
}

function unquote(quoted: string, text: string): string {
  try {
    return String(JSON.parse(quoted));
  } catch {
    throw badPath(text);
  }
}

function badPath(text: string): InvalidInput {
  return new InvalidInput(
    `expected a place in the settings such as agents.main.backends[0], but got ${JSON.stringify(text)}`,
  );
}
