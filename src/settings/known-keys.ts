// Owns: what the schema says about a place in the settings: its form, the keys known there, whether it is a secret.
import { distance } from "fastest-levenshtein";
import { z } from "zod";
import { settingsSchema } from "./schema.ts";

/** The keys and positions that lead from the root to a value. */
export type Path = readonly (string | number)[];
type Schema = z.core.$ZodType;

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An own entry of an unknown value: `undefined` when it has none, and for what every object inherits. */
export function entry(value: unknown, key: string | number): unknown {
  if (Array.isArray(value)) return typeof key === "number" ? value[key] : undefined;
  return isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/**
 * The schema of a place, with what is written there still around it (default, description).
 * @param root the settings as written: they tell which kind of backend a place belongs to
 */
export function schemaAt(path: Path, root: unknown): Schema | undefined {
  let schema: Schema | undefined = settingsSchema;
  let value: unknown = root;
  for (const key of path) {
    if (schema === undefined) return undefined;
    schema = childOf(bare(schema, value), key);
    value = entry(value, key);
  }
  return schema;
}

function childOf(schema: Schema | undefined, key: string | number): Schema | undefined {
  if (schema instanceof z.ZodObject) return Object.hasOwn(schema.shape, key) ? schema.shape[key] : undefined;
  if (schema instanceof z.ZodRecord) return schema.valueType;
  return schema instanceof z.ZodArray ? schema.element : undefined;
}

/** The schema without its default, and of several kinds the one that the value names. */
export function bare(schema: Schema, value: unknown): Schema | undefined {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault || schema instanceof z.ZodOptional) {
    return bare(schema.unwrap(), value);
  }
  if (!(schema instanceof z.ZodDiscriminatedUnion)) return schema;
  const kindKey = schema.def.discriminator;
  const kind = entry(value, kindKey);
  return schema.options.find((option: Schema) => {
    const literal = childOf(option, kindKey);
    return literal instanceof z.ZodLiteral && typeof kind === "string" && literal.values.has(kind);
  });
}

/** Whether the value at this place must never be shown (SEC-3). */
export function isSecret(path: Path, root: unknown): boolean {
  const schema = schemaAt(path, root);
  return schema !== undefined && z.globalRegistry.get(schema)?.["writeOnly"] === true;
}

/** The keys that a mapping at this place may have; none where names are free. */
export function keysAt(path: Path, root: unknown): string[] {
  const schema = schemaAt(path, root);
  const value = path.reduce(entry, root);
  const inner = schema === undefined ? undefined : bare(schema, value);
  return inner instanceof z.ZodObject ? Object.keys(inner.shape) : [];
}

/**
 * The known word that was probably meant. Case, `-` and `_` do not count; a third of the letters may differ,
 * and two in short words, since swapping two letters counts as two.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const plain = (text: string) => text.toLowerCase().replace(/[-_]/g, "");
  const wanted = plain(word.slice(0, 100));
  const bound = wanted.length < 4 ? 1 : Math.max(2, Math.floor(wanted.length / 3));
  let best: { word: string; far: number } | undefined;
  for (const candidate of known) {
    const far = distance(wanted, plain(candidate));
    if (far <= bound && (best === undefined || far < best.far)) best = { word: candidate, far };
  }
  return best?.word;
}
