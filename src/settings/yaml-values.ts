// Owns: from the library's nodes to plain values, with the place of each. Follows aliases, replaces ${NAME}, refuses
// keys that come twice. Knows no setting.
import { isAlias, isMap, isScalar, isSeq, type Pair, type Scalar } from "yaml";
import type { Env } from "./env.ts";
import { expand, revealBraces } from "./expand.ts";
import type { Path } from "./known-keys.ts";
import type { Finding } from "./problems.ts";

/** The library's parser is recursive: without this limit a deep text ends the whole process. */
export const MAX_DEPTH = 64;
/** Counted after aliases are followed, so that they cannot multiply. */
const MAX_VALUES = 20_000;

export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Where a value stands and where it came from. */
export interface Spot {
  /** Where its key stands; the value itself when it has none. */
  readonly key: Position;
  readonly value: Position;
  readonly fromEnv: boolean;
  /** Written without quotes and wholly from the environment: it may stand for a number. */
  readonly unquotedEnv: boolean;
}

interface Surroundings {
  readonly env: Env;
  readonly position: (offset: number) => Position;
}

interface Walk extends Surroundings {
  readonly findings: Finding[];
  readonly spots: Map<string, Spot>;
  readonly anchors: Map<string, unknown>;
  values: number;
  full: boolean;
}

export interface Values {
  readonly root: unknown;
  readonly findings: readonly Finding[];
  /** The spot of a place, or of the nearest place around it. */
  readonly spot: (path: Path) => Spot | undefined;
}

/** Reads a document in one pass. An empty value becomes `undefined`. Never throws. */
export function valuesOf(contents: unknown, { env, position }: Surroundings): Values {
  const walk: Walk = { env, position, findings: [], spots: new Map(), anchors: new Map(), values: 0, full: false };
  const root = read(contents, [], undefined, walk);
  const spot = (path: Path): Spot | undefined => {
    for (let length = path.length; length >= 0; length--) {
      const found = walk.spots.get(spotKey(path.slice(0, length)));
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return { root, findings: walk.findings, spot };
}

function spotKey(path: Path): string {
  return JSON.stringify(path);
}

function read(node: unknown, path: Path, key: Position | undefined, walk: Walk): unknown {
  walk.values += 1;
  if (walk.full || walk.values > MAX_VALUES || path.length > MAX_DEPTH) return stop(path, walk);
  if (isAlias(node)) return followed(node.source, path, key, walk);
  if (!isScalar(node) && !isMap(node) && !isSeq(node)) return undefined;
  if (node.anchor !== undefined) walk.anchors.set(node.anchor, node);
  const value = place(node, walk);
  walk.spots.set(spotKey(path), { key: key ?? value, value, fromEnv: false, unquotedEnv: false });
  if (isMap(node)) return mapping(node.items, path, walk);
  if (isSeq(node)) return node.items.map((item, index) => read(item, [...path, index], undefined, walk));
  return scalar(node, path, walk);
}

function place(node: { range?: readonly number[] | null }, walk: Walk): Position {
  return walk.position(node.range?.[0] ?? 0);
}

/** Everything after the limit is left out; one finding says so. */
function stop(path: Path, walk: Walk): undefined {
  if (!walk.full) walk.findings.push({ path, message: "too many values or levels; is an alias used too often?" });
  walk.full = true;
}

function followed(name: string, path: Path, key: Position | undefined, walk: Walk): unknown {
  const target = walk.anchors.get(name);
  if (target === undefined) walk.findings.push({ path, message: "a text that begins with * needs quotes" });
  return read(target, path, key, walk);
}

function mapping(pairs: readonly Pair[], path: Path, walk: Walk): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const pair of pairs) {
    const name = isScalar(pair.key) ? revealBraces(String(pair.key.value ?? "")) : "";
    const inner = [...path, name];
    const at = isScalar(pair.key) ? place(pair.key, walk) : undefined;
    const before = Object.hasOwn(result, name) ? walk.spots.get(spotKey(inner)) : undefined;
    if (at !== undefined) walk.spots.set(spotKey(inner), { key: at, value: at, fromEnv: false, unquotedEnv: false });
    const fault = keyFault(name, before);
    if (fault !== undefined) walk.findings.push({ path: inner, atKey: true, message: fault });
    // Setting __proto__ would change what the object inherits instead of adding a key.
    if (name !== "__proto__") result[name] = read(pair.value, inner, at, walk);
  }
  return result;
}

function keyFault(name: string, before: Spot | undefined): string | undefined {
  if (name === "" || name === "__proto__") return "this cannot be a key";
  return before === undefined ? undefined : `the key is written twice, first on line ${before.key.line}`;
}

function scalar(node: Scalar, path: Path, walk: Walk): unknown {
  if (typeof node.value !== "string") return node.value ?? undefined;
  const written = revealBraces(node.value);
  const { text, fromEnv, faults } = expand(written, walk.env);
  walk.findings.push(...faults.map((message) => ({ path, message })));
  const spot = walk.spots.get(spotKey(path));
  const unquotedEnv = node.type === "PLAIN" && /^\$\{\w+\}$/.test(written);
  if (spot !== undefined) walk.spots.set(spotKey(path), { ...spot, fromEnv, unquotedEnv });
  return text;
}
