import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OWNERS, ROOMS } from "../../../config/dev/dependency-cruiser.mjs";

// The import rules are worth something only if they fire: a small tree holds one violation of each, and good imports too.

const DEV_PACKAGE = "some-dev-tool";
const UNDECLARED = "brought-by-another";

interface Planted {
  readonly rule: string;
  readonly from: string;
  readonly code: string;
}

const VIOLATIONS: readonly Planted[] = [
  ...ROOMS.slice(0, -1).map((room, level) => ({
    rule: `up-from-${room}`,
    from: `src/${room}/up.ts`,
    code: `import type { face } from "../${ROOMS[level + 1]}/face.ts";\nexport type T = typeof face;`,
  })),
  { rule: "up-from-gateway", from: "src/gateway/up.ts", code: `import "../cli/face.ts";` },
  { rule: "channels-are-leaves", from: "src/channels/up.ts", code: `import "../agents/face.ts";` },
  { rule: "channels-only-from-gateway", from: "src/agents/down.ts", code: `import "../channels/face.ts";` },
  { rule: "dashboard-is-browser-code", from: "src/dashboard/up.js", code: `import "../kernel/face.ts";` },
  { rule: "dashboard-is-served", from: "src/gateway/page.ts", code: `import "../dashboard/face.js";` },
  { rule: "nobody-imports-the-top", from: "src/cli/again.ts", code: `import "../main.ts";` },
  { rule: "log-knows-pino-by-type", from: "src/kernel/log.ts", code: `import pino from "pino";\nexport { pino };` },
  { rule: "src-stands-alone", from: "src/queue/test.ts", code: `import "../../test/support/face.ts";` },
  { rule: "no-dev-packages-in-src", from: "src/queue/dev.ts", code: `import "${DEV_PACKAGE}";` },
  { rule: "no-undeclared-packages", from: "test/undeclared.ts", code: `import "${UNDECLARED}";` },
  { rule: "no-unresolved-imports", from: "src/queue/lost.ts", code: `import "./nowhere.ts";` },
  {
    rule: "no-cycles",
    from: "src/queue/one.ts",
    code: `import type { two } from "./two.ts";\nexport type One = typeof two;`,
  },
  ...restricted().map((name) => ({ rule: `only-${name}`, from: "src/queue/foreign.ts", code: `import "${name}";` })),
];

const ALLOWED: readonly Omit<Planted, "rule">[] = [
  { from: "src/queue/two.ts", code: `import type { One } from "./one.ts";\nexport const two: One | 2 = 2;` },
  { from: "src/kernel/types.ts", code: `import type { face } from "./face.ts";\nexport type F = typeof face;` },
  { from: "src/channels/good.ts", code: `import "../kernel/face.ts";` },
  { from: "src/gateway/good.ts", code: `import "../channels/face.ts";\nimport "../kernel/face.ts";\nimport "hono";` },
  { from: "src/store/good.ts", code: `import "better-sqlite3";\nimport "../kernel/face.ts";\nimport "zod";` },
  { from: "src/cli/good.ts", code: `import "../gateway/face.ts";\nimport "pino";\nimport "commander";` },
  { from: "src/turns/backends/good.ts", code: `import "@ai-sdk/provider";` },
  { from: "test/good.ts", code: `import "../src/queue/face.ts";\nimport "${DEV_PACKAGE}";\nimport "better-sqlite3";` },
];

let root: string;
let reported: { rule: string; from: string }[];

beforeAll(async () => {
  root = mkdtempSync(path.join(tmpdir(), "laneway-imports-"));
  plantTree();
  reported = await cruise();
}, 60_000);
afterAll(() => rmSync(root, { recursive: true, force: true }));

function restricted(): string[] {
  return Object.keys(OWNERS).filter((name) => !OWNERS[name]!.includes("*"));
}

function write(file: string, content: string): void {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
  writeFileSync(path.join(root, file), content);
}

function append(file: string, code: string): void {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
  writeFileSync(path.join(root, file), `${code}\n`, { flag: "a" });
}

function plantTree(): void {
  const declared = Object.fromEntries(Object.keys(OWNERS).map((name) => [name, "1.0.0"]));
  const manifest = { type: "module", dependencies: declared, devDependencies: { [DEV_PACKAGE]: "1.0.0" } };
  write("package.json", JSON.stringify(manifest));
  write("tsconfig.json", JSON.stringify({ compilerOptions: { module: "nodenext", allowJs: true } }));
  for (const name of [...Object.keys(OWNERS), DEV_PACKAGE, UNDECLARED]) {
    write(`node_modules/${name}/package.json`, JSON.stringify({ name, version: "1.0.0", main: "index.js" }));
    write(`node_modules/${name}/index.js`, "module.exports = {};");
  }
  for (const place of [...ROOMS, "channels", "cli"]) write(`src/${place}/face.ts`, "export const face = 1;");
  write("src/dashboard/face.js", "export const face = 1;");
  write("src/main.ts", `import "./cli/face.ts";`);
  write("test/support/face.ts", "export const face = 1;");
  for (const { from, code } of [...VIOLATIONS, ...ALLOWED]) append(from, code);
}

/** Runs the real command with the real settings on the planted tree. */
async function cruise(): Promise<{ rule: string; from: string }[]> {
  const command = path.resolve("node_modules/dependency-cruiser/bin/dependency-cruiser.mjs");
  const config = path.resolve("config/dev/dependency-cruiser.mjs");
  const args = [command, "--config", config, "--output-type", "json", "src", "test"];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, maxBuffer: 1 << 26 });
  const result: { summary: { violations: { from: string; rule: { name: string } }[] } } = JSON.parse(stdout);
  return result.summary.violations.map(({ from, rule }) => ({ rule: rule.name, from }));
}

test.each(VIOLATIONS)("the rule $rule fires", ({ rule, from }) => {
  expect(reported).toContainEqual({ rule, from });
});

test("imports that point down are not reported", () => {
  const good = new Set(ALLOWED.map(({ from }) => from));
  good.delete("src/queue/two.ts");
  expect(reported.filter(({ from }) => good.has(from))).toEqual([]);
});

test("every dependency has an owner here and a line in the decision about libraries", () => {
  const { dependencies }: { dependencies: Record<string, string> } = JSON.parse(readFileSync("package.json", "utf8"));
  expect(Object.keys(OWNERS).sort()).toEqual(Object.keys(dependencies).sort());
  const decision = readFileSync("docs/decisions/0001-libraries.md", "utf8");
  expect(Object.keys(dependencies).filter((name) => !decision.includes(`\`${name}\``))).toEqual([]);
});
