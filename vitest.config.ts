// Owns: which tests exist and how they run. Time limits here are hang guards, never assertions.
import { defineConfig } from "vitest/config";

/** Starts of processes with different worker counts must lie in different groups; they run in this order. */
const GROUP = { unit: 0, scenario: 1, peers: 2, crash: 3 } as const;

function project(name: keyof typeof GROUP, timeoutMs: number) {
  return {
    name,
    include: [`test/${name}/**/*.test.ts`],
    pool: "forks" as const,
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    sequence: { groupOrder: GROUP[name], shuffle: name === "unit" },
  };
}

export default defineConfig({
  test: {
    projects: [
      { test: project("unit", 60_000) },
      { test: project("scenario", 180_000) },
      { test: project("peers", 180_000) },
      // One file at a time: these tests kill processes and measure recovery, and disturb each other.
      { test: { ...project("crash", 600_000), fileParallelism: false } },
    ],
  },
});
