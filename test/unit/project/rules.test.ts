// docs/rules.md is what a reader looks a cited rule up in: it must be whole, and the tests that it names must exist.
import { existsSync, globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const RULE = /\b(G\d{1,2}|Q\d{1,2}\.\d{1,2}|(?:NET|ID|INJ|FETCH|FILE|EXEC|SEC|SUP|LOAD)-R?\d{1,2})\b/g;

const page = readFileSync("docs/rules.md", "utf8");
const listed = new Set([...page.matchAll(/^\| ([A-Z][\w.-]*) \|/gm)].map((match) => match[1]));

test("every rule that code or a test cites stands in docs/rules.md", () => {
  const files = globSync(["src/**/*.{ts,js}", "test/**/*.ts", "scripts/**/*.ts"]);
  const missing = files.flatMap((file) => {
    const cited = new Set([...readFileSync(file, "utf8").matchAll(RULE)].map((match) => match[0]));
    return [...cited].filter((rule) => !listed.has(rule)).map((rule) => `${file}: ${rule}`);
  });
  expect(files.length).toBeGreaterThan(100);
  expect(missing).toEqual([]);
});

test("every test that docs/rules.md names exists", () => {
  const named = [...page.matchAll(/`((?:unit|scenario|crash|peers)\/[\w./-]+)`/g)].map(
    (match) => `test/${match[1]}.test.ts`,
  );
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((file) => !existsSync(file))).toEqual([]);
});
