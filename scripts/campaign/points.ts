// Owns: the campaign of named crash points (R2): each point three times.
import { crashAtPoint } from "../../test/support/crash-at-point.ts";
import { CRASH_POINTS } from "../../test/support/crash-points.ts";
import { temporaryFolder } from "../../test/support/files.ts";
import type { Area } from "./area.ts";

const ROUNDS = 3;

export const pointsArea: Area = {
  name: "points",
  about: `a death before and after each kind of commit (${CRASH_POINTS.length} points, ${ROUNDS} times)`,
  units: CRASH_POINTS.length * ROUNDS,
  async run({ unit, seed, control }) {
    const point = CRASH_POINTS[unit % CRASH_POINTS.length] ?? "";
    await using home = await temporaryFolder();
    const { violations } = await crashAtPoint({ home: home.path, point, seed, unreachable: control });
    return { summary: { points: 1 }, violations };
  },
};
