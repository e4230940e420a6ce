// Owns: the campaign of random kills (R1): 500 in units of 25.
import { randomKills } from "../../test/support/crash-run.ts";
import { temporaryFolder } from "../../test/support/files.ts";
import type { Area } from "./area.ts";

const KILLS_A_UNIT = 25;

export const crashArea: Area = {
  name: "crash",
  about: "random SIGKILLs while people write by web, terminal and API (500 kills)",
  units: 20,
  async run({ seed, control }) {
    await using home = await temporaryFolder();
    const { violations, ...summary } = await randomKills({
      home: home.path,
      seed,
      kills: KILLS_A_UNIT,
      loseInbox: control,
    });
    return { summary, violations };
  },
};
