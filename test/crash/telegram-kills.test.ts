// A real host is killed at random while people write to it on Telegram and by web, often in the middle of a send. 500 kills by
// `npm run campaign -- telegram`.
import { expect, test } from "vitest";
import { telegramKills } from "../support/crash-telegram.ts";
import { temporaryFolder } from "../support/files.ts";

/** 30 in all. */
const KILLS_IN_CI = 15;

test.each([
  { policy: "resend", seed: 20_261_201 },
  { policy: "hold", seed: 20_261_202 },
] as const)(
  "under `$policy` nothing is lost on Telegram, and nothing in doubt is sent again unmarked or kept from the owner (G1, G2, G4, G5, G6, R1)",
  async ({ policy, seed }) => {
    await using home = await temporaryFolder();
    const report = await telegramKills({ home: home.path, seed, kills: KILLS_IN_CI, policy });
    expect(report.violations).toEqual([]);
    // Otherwise it would prove nothing.
    expect(report.inFlight).toBeGreaterThanOrEqual(KILLS_IN_CI / 5);
    expect(report.messages).toBeGreaterThan(KILLS_IN_CI);
  },
  600_000,
);

test("control: a host that forgets what it was sending, and what it accepted last, is found out", async () => {
  await using home = await temporaryFolder();
  const report = await telegramKills({ home: home.path, seed: 20_261_203, kills: 6, policy: "hold", forget: true });
  expect(report.violations).toContainEqual(expect.stringMatching(/has 0 commands/));
  expect(report.violations).toContainEqual(expect.stringMatching(/shown 2 times without the mark/));
}, 600_000);
