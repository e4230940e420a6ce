// A message that kills its host whenever it is worked off is given up after three deaths; what stands beside it is answered.
import { expect, test } from "vitest";
import { plantedPoison } from "../support/crash-run.ts";
import { temporaryFolder } from "../support/files.ts";

test("a message that kills the host three times is dead and told once, and its bystanders are answered (G8)", async () => {
  await using home = await temporaryFolder();
  const report = await plantedPoison(home.path);
  expect(report).toEqual({ deaths: 3, poison: { state: "dead", told: 1 }, unanswered: [] });
});
