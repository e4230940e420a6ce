import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { settingsJsonSchema, settingsSchema } from "../../../src/settings/schema.ts";
import { testHome } from "./home-fixture.ts";

const EXAMPLE = readFileSync(new URL("../../../config/laneway.example.yaml", import.meta.url), "utf8");
/** The example with every "#key: value" line in use. */
const COMPLETE = EXAMPLE.replace(/^(\s*)#( *[\w-]+:( |$))/gm, "$1$2");

interface Node {
  readonly properties?: Record<string, Node>;
  readonly additionalProperties?: Node | boolean;
  readonly items?: Node;
  readonly oneOf?: Node[];
  readonly description?: string;
}

/** Every key of the schema, as the path to it; `*` stands for a free name. */
function keys(node: Node, path: string[] = []): { path: string[]; node: Node }[] {
  const named = Object.entries(node.properties ?? {}).flatMap(([key, inner]) => [
    { path: [...path, key], node: inner },
    ...keys(inner, [...path, key]),
  ]);
  const free = typeof node.additionalProperties === "object" ? keys(node.additionalProperties, [...path, "*"]) : [];
  return [...named, ...free, ...(node.oneOf ?? []).flatMap((option) => keys(option, path))];
}

function holds(value: unknown, [key, ...rest]: string[]): boolean {
  if (key === undefined) return true;
  if (typeof value !== "object" || value === null) return false;
  const inner =
    key === "*"
      ? Object.values(value)
      : Object.entries(value)
          .filter(([name]) => name === key)
          .map(([, v]) => v);
  return inner.some((child) => holds(child, rest));
}

const SCHEMA = settingsJsonSchema() as Node;

test("the example file loads without a problem and says the defaults", async () => {
  await using home = await testHome();
  const { settings, state, problems } = await home.load(EXAMPLE, 0o644);
  expect({ state, problems }).toEqual({ state: "file", problems: [] });
  const { agents: _, backends: __, ...rest } = settings;
  expect(settingsSchema.parse({})).toMatchObject(rest);
});

test("the example file mentions every key of the schema", () => {
  // Further accounts have the keys of the first.
  const all = keys(SCHEMA).filter(({ path }) => !path.slice(0, -1).includes("accounts"));
  expect(all.length).toBeGreaterThan(50);
  const shown: unknown = parse(COMPLETE.replace(/\$\{\w+\}/g, "value"));
  expect(all.filter(({ path }) => !holds(shown, path)).map(({ path }) => path.join("."))).toEqual([]);
});

test("every key that the example shows in a comment can be used as it stands there", async () => {
  await using home = await testHome({
    LANEWAY_TOKEN: "0123456789abcdef",
    OPENAI_API_KEY: "sk-1",
    ANTHROPIC_API_KEY: "sk-2",
    TELEGRAM_BOT_TOKEN: "42:secret",
  });
  await home.write("telegram.token", "42:secret");
  await home.write("token.secret", "0123456789abcdef");
  await home.write("openai.key", "sk-1");
  await home.write("prompts/main.md", "Hello.");
  for (const left of [/^ +(token|apiKey|systemPrompt): .*$/gm, /^ +\w+File: .*$/gm]) {
    expect((await home.load(COMPLETE.replace(left, ""))).state).toBe("file");
  }
});

test("every key of the schema is described", () => {
  expect(
    keys(SCHEMA)
      .filter(({ node }) => node.description === undefined)
      .map(({ path }) => path.join(".")),
  ).toEqual([]);
});

test("the JSON Schema accepts the example and refuses unknown keys and wrong values", () => {
  const schema = z.fromJSONSchema(settingsJsonSchema());
  const example: unknown = parse(EXAMPLE);
  expect(schema.safeParse(example).error).toBeUndefined();
  expect(schema.safeParse({ gatway: {} }).success).toBe(false);
  expect(schema.safeParse({ gateway: { port: "x" } }).success).toBe(false);
  expect(schema.safeParse({ backends: { a: { kind: "nope" } } }).success).toBe(false);
});
