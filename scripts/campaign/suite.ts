// Owns: campaign areas that are test files with their full amounts set by environment.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "../../src/kernel/errors.ts";
import type { Area, UnitResult } from "./area.ts";

interface SuiteOptions {
  readonly name: string;
  readonly about: string;
  readonly files: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Longest run of one test. */
  readonly timeoutMs: number;
}

/** One unit: the files as a whole. Their own controls are tests of the same files. */
export function suiteArea({ name, about, files, env, timeoutMs }: SuiteOptions): Area {
  return { name, about, units: 1, run: async () => runSuite(files, env, timeoutMs) };
}

function runSuite(files: readonly string[], env: Readonly<Record<string, string>>, timeoutMs: number): UnitResult {
  const folder = mkdtempSync(join(tmpdir(), "laneway-campaign-"));
  const report = join(folder, "report.json");
  const args = [
    "node_modules/vitest/vitest.mjs",
    "run",
    `--testTimeout=${timeoutMs}`,
    "--reporter=json",
    `--outputFile=${report}`,
  ];
  try {
    execFileSync(process.execPath, [...args, ...files], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "ignore", "inherit"],
    });
  } catch (thrown) {
    // A failed test fails the run; the report says which. Without a report the run itself broke.
    console.error(messageOf(thrown));
  }
  const result = JSON.parse(readFileSync(report, "utf8")) as SuiteReport;
  rmSync(folder, { recursive: true });
  const tests = result.testResults.flatMap((file) => file.assertionResults);
  const failed = tests.filter((test) => test.status === "failed").map((test) => test.fullName);
  return {
    summary: { tests: tests.length, passed: tests.filter((test) => test.status === "passed").length },
    violations: failed,
  };
}

/** Of vitest's JSON report what is used here. */
interface SuiteReport {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}
