// Owns: the campaign of named crash points (R2): each point three times.
import { CRASH_POINTS } from "../../test/support/crash-points.ts";
import { crashAtPoint } from "../../test/support/crash-run.ts";
import { temporaryFolder } from "../../test/support/files.ts";
import type { Area } from "./area.ts";

const ROUNDS = 3;

export const pointsArea: Area = {
  name: "points",
  about: `a death before and after each kind of commit (${CRASH_POINTS.length} points, ${ROUNDS} times)`,
  units: CRASH_POINTS.length * ROUNDS,
  async run({ unit, seed }) {
    const point = CRASH_POINTS[unit % CRASH_POINTS.length] ?? "";
    await using home = await temporaryFolder();
    const { died, violations } = await crashAtPoint({ home: home.path, point, seed });
    return {
      summary: { points: 1, died: died ? 1 : 0 },
      violations: died ? violations : [...violations, `never reached ${point}`],
    };
  },
};
