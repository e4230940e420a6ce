// A real host is killed at random while people write to it by web, terminal and API. 500 kills by `npm run campaign -- crash`.
import { expect, test } from "vitest";
import { randomKills } from "../support/crash-run.ts";
import { temporaryFolder } from "../support/files.ts";

const KILLS_IN_CI = 30;

test("no accepted message is lost or answered twice whenever the host is killed (G1, G2, G5, G6, R1)", async () => {
  await using home = await temporaryFolder();
  const report = await randomKills({ home: home.path, seed: 20_261_130, kills: KILLS_IN_CI });
  expect(report.violations).toEqual([]);
  // A run in which no answer was being streamed at a kill would prove nothing.
  expect(report.inFlight).toBeGreaterThanOrEqual(KILLS_IN_CI / 10);
  expect(report.messages).toBeGreaterThan(KILLS_IN_CI);
}, 600_000);
