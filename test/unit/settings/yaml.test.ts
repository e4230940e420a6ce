import fc from "fast-check";
import { expect, test } from "vitest";
import { ConfigError } from "../../../src/kernel/errors.ts";
import { readYaml } from "../../../src/settings/yaml.ts";
import { testHome } from "./home-fixture.ts";

const MIB = 1024 * 1024;
/** A hang guard: the worst text takes a tenth of it on a slow machine (SUP-2 asks for one second). */
const HANG_MS = 5_000;

function faults(text: string): string[] {
  const startedMs = performance.now();
  const { syntax, findings } = readYaml(text, {});
  expect(performance.now() - startedMs).toBeLessThan(HANG_MS);
  return [...syntax, ...findings].map(({ message }) => message);
}

const HOSTILE = ["[", "{a: ", "- ", "]\n", "---\n", "k: 1\n"];

test.each(HOSTILE)("a text of nothing but %j is refused in bounded time (SUP-R3, SUP-2)", (unit) => {
  expect(faults(unit.repeat(MIB / unit.length))).not.toEqual([]);
});

test("a text that goes ever deeper is refused before it ends the process (SUP-R3)", () => {
  const stairs = Array.from({ length: 1400 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n");
  expect(faults(stairs)).toEqual(["expected at most 64 levels"]);
});

test("large but plain texts are read", () => {
  expect(faults(`a: |\n${"  hello hello\n".repeat(MIB / 14)}`)).toEqual([]);
  expect(faults(`a: "${"x".repeat(MIB - 10)}"`)).toEqual([]);
  expect(faults(Array.from({ length: 5_000 }, (_, index) => `k${index}: 1`).join("\n"))).toEqual([]);
});

test("aliases are followed, but cannot multiply or run in circles (SUP-2)", () => {
  expect(readYaml("a: &x [ 1, 2 ]\nb: *x", {}).root).toEqual({ a: [1, 2], b: [1, 2] });
  const bomb = ["a0: &a0 [ x, x, x, x, x, x, x, x, x, x ]"];
  for (let level = 1; level < 12; level++) bomb.push(`a${level}: &a${level} [ ${`*a${level - 1}, `.repeat(10)} ]`);
  expect(faults(bomb.join("\n"))).toEqual(["too many values or levels; is an alias used too often?"]);
  expect(faults("a: &a { b: *a }")).toEqual(["too many values or levels; is an alias used too often?"]);
  expect(faults("a: *none")).toEqual(["a text that begins with * needs quotes"]);
});

test("a key that would change what an object inherits is refused and changes nothing (SUP-2)", () => {
  const read = readYaml("a: { __proto__: { polluted: true } }\n__proto__: { polluted: true }", {});
  expect(read.findings.map(({ path }) => path)).toEqual([["a", "__proto__"], ["__proto__"]]);
  expect(Object.getPrototypeOf(read.root)).toBe(Object.prototype);
  expect({}).not.toHaveProperty("polluted");
});

test("tags, several documents and keys that are no texts are refused", () => {
  expect(faults("a: !!js/function 'x'")).toEqual([expect.stringContaining("tags are not allowed")]);
  expect(faults("a: 1\n---\nb: 2")).toEqual(["expected one YAML document, but there are several"]);
  expect(faults("[ a ]: 1")).toEqual(["this cannot be a key"]);
  expect(faults("? { a: 1 }\n: 2")).toEqual(["this cannot be a key"]);
});

test("faults of the YAML carry their line", () => {
  const { syntax } = readYaml("a: 1\nb:\n\t- c\nd: @x\n", {});
  expect(syntax.map(({ line }) => line)).toEqual(expect.arrayContaining([3, 4]));
});

const word = fc.constantFrom(
  ...["gateway", "port", "token", "agents", "main", "backends", "kind", "openai", "offline", "lanes", "total", "owner"],
  ...[
    "__proto__",
    "constructor",
    `\${X}`,
    "$${",
    "${",
    "&a",
    "*a",
    "!t",
    "|",
    ">",
    "'",
    '"',
    "#",
    "%",
    "---",
    "...",
    "<<",
  ],
  ...[
    "1",
    "-1",
    "1e9",
    ".nan",
    "null",
    "true",
    "~",
    "0.0.0.0",
    "apiKeyFile",
    "/dev/zero",
    "/",
    "..",
    "\u0000",
    "\uFDD0",
  ],
);
const space = fc.constantFrom(
  ": ",
  ":\n  ",
  "\n",
  "\n  ",
  "\n- ",
  " ",
  ", ",
  "{ ",
  " }",
  "[ ",
  " ]",
  ": { ",
  "\t",
  "\r\n",
  "",
);
const yamlish = fc.array(fc.tuple(word, space), { maxLength: 60 }).map((parts) => parts.flat().join(""));
const anyText = fc.oneof(
  yamlish,
  yamlish,
  fc.string({ maxLength: 300 }),
  fc.string({ unit: "binary", maxLength: 300 }),
);

test("whatever the text, loading gives settings or a ConfigError, and never hangs (R11)", {
  timeout: 600_000,
}, async () => {
  await using home = await testHome({ X: "7500" });
  await fc.assert(
    fc.asyncProperty(anyText, async (text) => {
      const startedMs = performance.now();
      const outcome = await home.load(text).then(
        ({ state }) => state,
        (thrown: unknown) => thrown,
      );
      expect(performance.now() - startedMs).toBeLessThan(HANG_MS);
      if (outcome instanceof ConfigError) expect(outcome.exitCode).toBe(78);
      else expect(["file", "last-good"]).toContain(outcome);
    }),
    { numRuns: Number(process.env["LANEWAY_FUZZ_RUNS"] ?? 500) },
  );
});
