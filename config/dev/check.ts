// Owns: `npm run check`: every static check by name, all of them run, so that one report names all that fail.
// `npm run check -- types imports` runs only those. Never changes a file (`npx biome check --write` does).
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";

const ROOT = path.resolve(import.meta.dirname, "../..");
const TREES = ["src", "test", "scripts", "config", "vitest.config.ts"].filter((tree) =>
  existsSync(path.join(ROOT, tree)),
);

/** Name, then the JavaScript file that the check's package installs as its command, then its arguments. */
const CHECKS: readonly (readonly [name: string, command: string, ...args: string[]])[] = [
  ["lint", "@biomejs/biome/bin/biome", "check", "--error-on-warnings"],
  ["types", "typescript/bin/tsc"],
  ["types-page", "typescript/bin/tsc", "-p", "src/dashboard"],
  [
    "imports",
    "dependency-cruiser/bin/dependency-cruiser.mjs",
    "--config",
    "config/dev/dependency-cruiser.mjs",
    ...TREES,
  ],
  ["unused", "knip/bin/knip.js"],
];

async function run(command: string, args: readonly string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [path.join(ROOT, "node_modules", command), ...args], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const [code, out, err] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  return { code, output: (out + err).trim() };
}

async function main(wanted: readonly string[]): Promise<number> {
  const unknown = wanted.filter((name) => !CHECKS.some(([known]) => known === name));
  if (unknown.length > 0) {
    console.error(`No check is called ${unknown.join(", ")}. Checks: ${CHECKS.map(([name]) => name).join(", ")}.`);
    return 2;
  }
  const failed: string[] = [];
  for (const [name, command, ...args] of CHECKS) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const { code, output } = await run(command, args);
    console.log(`${code === 0 ? "ok  " : "FAIL"} ${name}`);
    if (code === 0) continue;
    failed.push(name);
    console.log(`${output}\n`);
  }
  if (failed.length > 0) console.error(`Failed: ${failed.join(", ")}`);
  return failed.length > 0 ? 1 : 0;
}

process.exitCode = await main(process.argv.slice(2));
