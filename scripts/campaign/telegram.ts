// Owns: the campaign of random kills on Telegram (R1): 500 in units of 25, under the policies `resend` and `hold` in turn.
import { telegramKills } from "../../test/support/crash-telegram.ts";
import { temporaryFolder } from "../../test/support/files.ts";
import type { Area } from "./area.ts";

const KILLS_A_UNIT = 25;
/** A unit in which fewer kills hit a send in flight is void: over all units that is 100, where R1 asks for 20. */
const LEAST_IN_FLIGHT = 5;

export const telegramArea: Area = {
  name: "telegram",
  about: "random SIGKILLs while people write on Telegram and by web (500 kills)",
  units: 20,
  async run({ unit, seed, control }) {
    await using home = await temporaryFolder();
    const policy = unit % 2 === 0 ? "resend" : "hold";
    const options = { home: home.path, seed, kills: KILLS_A_UNIT, policy, forget: control } as const;
    const { violations, ...summary } = await telegramKills(options);
    const isVoid = summary.inFlight < LEAST_IN_FLIGHT;
    return { summary, violations: isVoid ? [...violations, `void: ${summary.inFlight} kills hit a send`] : violations };
  },
};
