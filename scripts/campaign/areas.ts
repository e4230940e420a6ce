// Owns: the list of campaign areas. A later area registers here with a unit of one to a few minutes.
import type { Area } from "./area.ts";
import { crashArea } from "./crash.ts";
import { pointsArea } from "./points.ts";

export const areas: readonly Area[] = [crashArea, pointsArea];
