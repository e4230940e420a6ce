// Owns: the full amounts of the tests that CI runs a share of: `npm run campaign -- <area> [--units N] [--seed S] [--from 0]`.
// It goes on where it was cut off: finished units stand in a file under .campaign, which is not committed.
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { Area } from "./campaign/area.ts";
import { areas } from "./campaign/areas.ts";

interface UnitDone {
  readonly unit: number;
  readonly summary: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    units: { type: "string" },
    seed: { type: "string", default: "1" },
    control: { type: "boolean", default: false },
  },
});

const area = areas.find((one) => one.name === positionals[0]);
if (area === undefined) {
  console.error(`expected an area, one of:\n${areas.map((one) => `  ${one.name.padEnd(10)} ${one.about}`).join("\n")}`);
  process.exitCode = 2;
} else {
  process.exitCode = await run(area, Number(values.units ?? area.units), Number(values.seed), values.control);
}

async function run(one: Area, units: number, seed: number, control: boolean): Promise<number> {
  const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
  mkdirSync(".campaign", { recursive: true });
  const file = `.campaign/${one.name}-${seed}-${commit}${control ? "-control" : ""}.jsonl`;
  const done = readDone(file);
  for (let unit = done.length; unit < units; unit += 1) {
    const started = performance.now();
    const result = await one.run({ unit, seed: seed * 100_000 + unit, control });
    done.push({ unit, ...result });
    appendFileSync(file, `${JSON.stringify({ unit, ...result })}\n`);
    console.log(
      `${one.name} ${unit + 1}/${units} ${JSON.stringify(result.summary)} ${Math.round((performance.now() - started) / 1_000)} s`,
    );
    for (const violation of result.violations) console.log(`  VIOLATION ${violation}`);
  }
  const total = done.reduce<Record<string, number>>((sum, { summary }) => add(sum, summary), {});
  const violations = done.flatMap((unit) => unit.violations);
  console.log(
    `${one.name}: ${done.length} units, seeds ${seed * 100_000}…${seed * 100_000 + done.length - 1}, commit ${commit}, ${JSON.stringify(total)}, ${violations.length} violations`,
  );
  return violations.length === 0 ? 0 : 1;
}

function readDone(file: string): UnitDone[] {
  try {
    return readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as UnitDone);
  } catch {
    return [];
  }
}

function add(sum: Record<string, number>, more: Readonly<Record<string, number>>): Record<string, number> {
  for (const [name, value] of Object.entries(more)) sum[name] = (sum[name] ?? 0) + value;
  return sum;
}
