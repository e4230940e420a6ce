// The host kills itself before or after a named commit; the next host makes it good. All points by `npm run campaign -- points`.
import { expect, test } from "vitest";
import { crashAtPoint } from "../support/crash-at-point.ts";
import { temporaryFolder } from "../support/files.ts";

/** One side of each commit, the one at which more can go wrong; the drain of `hand-back#1` alone lasts 25 s. */
const POINTS_IN_CI = [
  "commit.after:accept#2",
  "commit.after:claim#1",
  "commit.before:step#1",
  "commit.after:finish#2",
  "commit.before:ack#1",
  "commit.before:recover#1",
  "commit.after:accept-control#3",
  "commit.before:audit#3",
  "commit.after:cancel#2",
  "commit.after:plan-stop#1",
  "commit.before:hand-back#1",
  "commit.after:outbox-drop#1",
];

test.each(POINTS_IN_CI)("a host that dies at %s loses, doubles and halves nothing (G1, R2)", async (point) => {
  await using home = await temporaryFolder();
  expect(await crashAtPoint({ home: home.path, point, seed: 1 })).toEqual({ point, violations: [] });
});

test("control: a point that the host does not reach is a violation", async () => {
  await using home = await temporaryFolder();
  const point = "commit.before:accept#1";
  const report = await crashAtPoint({ home: home.path, point, seed: 1, unreachable: true });
  expect(report.violations).toEqual([`never reached ${point}`]);
});
