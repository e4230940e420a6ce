import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import ts from "typescript";
import { expect, test } from "vitest";
import { ROOMS } from "../../../config/dev/dependency-cruiser.mjs";

// The rules about sources that no other check can say. Each is a rule of the design, not of taste.

const MAX_LINES = 400;

/** What only one place may use: time, randomness, environment and database each have one owner, so that tests can stand in. */
const OWNED: Readonly<Record<string, readonly string[]>> = {
  "process.env": ["src/settings/"],
  "Date.now": ["src/kernel/clock.ts"],
  "new Date()": ["src/kernel/clock.ts"],
  performance: ["src/kernel/clock.ts"],
  "process.hrtime": ["src/kernel/clock.ts"],
  setTimeout: ["src/kernel/clock.ts"],
  setInterval: ["src/kernel/clock.ts"],
  setImmediate: ["src/kernel/clock.ts", "src/store/"],
  "AbortSignal.timeout": ["src/kernel/clock.ts"],
  "import node:timers": [],
  "import node:timers/promises": [],
  "import node:perf_hooks": ["src/kernel/clock.ts"],
  "Math.random": ["src/kernel/ids.ts"],
  randomUUID: ["src/kernel/ids.ts"],
  randomBytes: ["src/kernel/ids.ts"],
  getRandomValues: ["src/kernel/ids.ts"],
  "import better-sqlite3": ["src/store/"],
  "import node:sqlite": [],
};

function walk(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries
    .filter((entry) => entry.name !== "node_modules")
    .flatMap((entry) => (entry.isDirectory() ? walk(`${folder}/${entry.name}`) : [`${folder}/${entry.name}`]));
}

const sources = walk("src").filter((file) => /\.(ts|js)$/.test(file));
const hostSources = sources.filter((file) => file.endsWith(".ts"));

function parse(file: string, code = readFileSync(file, "utf8")): ts.SourceFile {
  return ts.createSourceFile(file, code, ts.ScriptTarget.Latest, true);
}

function nodesOf(root: ts.Node): ts.Node[] {
  const found: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    found.push(node);
    node.forEachChild(visit);
  };
  visit(root);
  return found;
}

/** The name under which a node stands in OWNED, if it uses anything: `Date.now`, `setTimeout`, `import node:timers`. */
function useOf(node: ts.Node): string | undefined {
  if (ts.isStringLiteral(node) && isModuleName(node)) return `import ${node.text}`;
  if (ts.isPropertyAccessExpression(node)) return node.getText().replace(/^globalThis\./, "");
  if (ts.isNewExpression(node) && node.arguments?.length === 0) return node.getText();
  if (ts.isIdentifier(node) && !isOnlyAName(node)) return node.text;
  return undefined;
}

function isModuleName(node: ts.StringLiteral): boolean {
  const { parent } = node;
  if (ts.isCallExpression(parent)) return parent.expression.kind === ts.SyntaxKind.ImportKeyword;
  return ts.isImportDeclaration(parent) || ts.isExportDeclaration(parent);
}

/** `x.setTimeout` and `{ performance: … }` are names of someone's members, not the global. */
function isOnlyAName(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.name === node && parent.expression.getText() !== "crypto";
  return (ts.isPropertyAssignment(parent) || ts.isPropertySignature(parent)) && parent.name === node;
}

function misuses(file: string, code?: string): string[] {
  return nodesOf(parse(file, code))
    .map(useOf)
    .filter((use) => use !== undefined && Object.hasOwn(OWNED, use))
    .filter((use) => !OWNED[use!]!.some((place) => file.startsWith(place)))
    .map((use) => `${file}: ${use}`);
}

function exportedNames(source: ts.SourceFile): string[] {
  return nodesOf(source)
    .filter((node) => ts.isFunctionDeclaration(node) || ts.isVariableDeclaration(node) || ts.isClassDeclaration(node))
    .filter((node) => ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Export)
    .map((node) => node.name?.getText() ?? "");
}

test("time, randomness, the environment and the database are used only by their owners", () => {
  expect(hostSources.flatMap((file) => misuses(file))).toEqual([]);
});

test("the search for misuse finds each form", () => {
  const code = `
    import { setTimeout as wait } from "node:timers/promises";
    const token = process.env["TOKEN"];
    const at = [Date.now(), new Date(), performance.now(), globalThis.setInterval(f, 1)];
    setImmediate(() => crypto.randomUUID());
    const db = await import("better-sqlite3");
    const fine = [new Date(5), clock.setTimeout(1), { performance: 1 }]; // Date.now() in a comment
  `;
  const uses = misuses("src/queue/x.ts", code).map((line) => line.replace("src/queue/x.ts: ", ""));
  expect(new Set(uses)).toEqual(
    new Set([
      "import node:timers/promises",
      "setTimeout",
      "process.env",
      "Date.now",
      "new Date()",
      "performance",
      "setInterval",
      "setImmediate",
      "randomUUID",
      "import better-sqlite3",
    ]),
  );
  expect(misuses("src/store/x.ts", `import "better-sqlite3"; setImmediate(f);`)).toEqual([]);
});

test(`no source file is longer than ${MAX_LINES} lines`, () => {
  const lines = (file: string) => readFileSync(file, "utf8").trimEnd().split("\n").length;
  const long = sources.map((file) => ({ file, lines: lines(file) })).filter((one) => one.lines > MAX_LINES);
  expect(long).toEqual([]);
});

test("nothing is exported only for tests", () => {
  const doors = hostSources.flatMap((file) => exportedNames(parse(file)).map((name) => `${file}: ${name}`));
  expect(doors.filter((door) => /(ForTests?|ForTesting)$/.test(door))).toEqual([]);
});

test("every folder of src is a room that the import rules know", () => {
  const known = new Set([...ROOMS, "channels", "cli", "dashboard", "main.ts"]);
  expect(readdirSync("src").filter((name) => !known.has(name))).toEqual([]);
});

test("nothing names a folder outside the project", () => {
  const folders = ["src", "test", "scripts", "config", "docs", "bin", ".ci"].filter((folder) => existsSync(folder));
  const rootFiles = readdirSync(".").filter((name) => statSync(name).isFile() && !name.endsWith(".log"));
  const outside = [["", "work", ""].join("/"), ["..", "shared"].join("/")];
  const names = [...folders.flatMap(walk), ...rootFiles].filter((file) => {
    const content = readFileSync(file, "utf8");
    return outside.some((name) => content.includes(name));
  });
  expect(names).toEqual([]);
});
