// Owns: reading the files that settings name (`*File` keys) and that secrets in files are private (SEC-2).
// Never keeps a secret anywhere but in the settings it fills in.
import type { Env } from "./env.ts";
import { isOpenToOthers, modeText, readTextFile } from "./files.ts";
import { resolvePath } from "./home.ts";
import { entry, isRecord, isSecret, keysAt, type Path } from "./known-keys.ts";
import { type Finding, pathText } from "./problems.ts";

/** A token or key is a line; a prompt is pages. */
const SECRET_LIMIT = 64 * 1024;
const TEXT_LIMIT = 1024 * 1024;

/**
 * Reads every file that the settings name into the key beside it: `apiKeyFile` fills `apiKey`.
 * @param root the settings as written; filled in place, where the key itself is absent
 * @param base folder to which relative paths refer: that of the settings file
 */
export function fillFromFiles(
  root: unknown,
  from: { base: string; env: Env },
): { filled: Path[]; findings: Finding[] } {
  const filled: Path[] = [];
  const findings: Finding[] = [];
  for (const path of fileKeys(root, [])) {
    const holder = path.slice(0, -1).reduce(entry, root);
    const target = String(path.at(-1)).replace(/File$/, "");
    const written = path.reduce(entry, root);
    if (!isRecord(holder) || typeof written !== "string" || written === "") continue;
    if (entry(holder, target) !== undefined) continue;
    const targetPath = [...path.slice(0, -1), target];
    const file = resolvePath(from.base, written, from.env);
    const read = readNamed(file, isSecret(targetPath, root));
    if ("text" in read) {
      holder[target] = read.text;
      filled.push(targetPath);
    } else {
      findings.push({ path, ...read });
    }
  }
  return { filled, findings };
}

/** The places of all `*File` keys that the schema knows. */
function fileKeys(value: unknown, path: Path, root: unknown = value): Path[] {
  if (!isRecord(value)) return [];
  const known = keysAt(path, root).filter((key) => key.endsWith("File") && entry(value, key) !== undefined);
  const inner = Object.entries(value).flatMap(([key, child]) => fileKeys(child, [...path, key], root));
  return [...known.map((key) => [...path, key]), ...inner];
}

type Read = { text: string } | { message: string; refusesStart?: true };

function readNamed(file: string, secret: boolean): Read {
  try {
    const { text, mode } = readTextFile(file, secret ? SECRET_LIMIT : TEXT_LIMIT);
    if (secret && isOpenToOthers(mode)) return { message: openSecret(file, mode), refusesStart: true };
    const content = secret ? text.trim() : text.trimEnd();
    return content === "" ? { message: `expected text in ${file}, but it is empty` } : { text: content };
  } catch (thrown) {
    return { message: `${file}: ${thrown instanceof Error ? thrown.message : String(thrown)}` };
  }
}

function openSecret(file: string, mode: number): string {
  return `expected a file that only its owner can read, but ${file} has mode ${modeText(mode)}; run: chmod 600 ${file}`;
}

/**
 * A settings file with a secret written out must be private too (SEC-2).
 * @param isLiteral whether the value at a place stands in the file itself
 */
export function literalSecretFindings(
  root: unknown,
  file: { path: string; mode: number },
  isLiteral: (path: Path) => boolean,
): Finding[] {
  if (!isOpenToOthers(file.mode)) return [];
  const found = secretsIn(root, [], root).find(isLiteral);
  if (found === undefined) return [];
  return [
    { path: found, message: `a secret is written here, and ${openSecret(file.path, file.mode)}`, refusesStart: true },
  ];
}

/** A header such as `x-title` is no secret; one of these words in its name makes it one. */
const SECRET_HEADER = /auth|key|token|secret|cookie|password/i;

function secretsIn(value: unknown, path: Path, root: unknown): Path[] {
  if (isRecord(value)) return Object.entries(value).flatMap(([key, child]) => secretsIn(child, [...path, key], root));
  if (value === undefined || !isSecret(path, root)) return [];
  const inHeaders = path.at(-2) === "headers";
  return inHeaders && !SECRET_HEADER.test(pathText(path.slice(-1))) ? [] : [path];
}
