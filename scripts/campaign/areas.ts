// Owns: the list of campaign areas. A later area registers here with a unit of one to a few minutes.
import type { Area } from "./area.ts";
import { crashArea } from "./crash.ts";
import { pointsArea } from "./points.ts";
import { suiteArea } from "./suite.ts";
import { telegramArea } from "./telegram.ts";

const storeArea = suiteArea({
  name: "store",
  about: "100 kills of a writer, 50 of a migration, 50 start races",
  files: ["test/crash/store-kill.test.ts", "test/crash/store-migration.test.ts", "test/crash/store-lock.test.ts"],
  env: { LANEWAY_CAMPAIGN: "1" },
  timeoutMs: 1_800_000,
});

const lanesArea = suiteArea({
  name: "lanes",
  about: "properties and the model of the lane queue, 2,000 runs each",
  files: ["test/unit/queue"],
  env: { LANEWAY_FUZZ_RUNS: "2000" },
  timeoutMs: 1_800_000,
});

const fuzzArea = suiteArea({
  name: "fuzz",
  about: "rubbish as settings, 20,000 texts",
  files: ["test/unit/settings/yaml.test.ts"],
  env: { LANEWAY_FUZZ_RUNS: "20000" },
  timeoutMs: 1_800_000,
});

export const areas: readonly Area[] = [crashArea, pointsArea, telegramArea, storeArea, lanesArea, fuzzArea];
