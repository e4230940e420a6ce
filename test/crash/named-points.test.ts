// The host kills itself before or after a named commit; the next host makes it good. All points by `npm run campaign -- points`.
import { expect, test } from "vitest";
import { crashAtPoint } from "../support/crash-run.ts";
import { temporaryFolder } from "../support/files.ts";

const POINTS_IN_CI = ["accept#2", "claim#1", "step#1", "finish#2", "recover#1", "ack#1"];

test.each(POINTS_IN_CI.flatMap((at) => [`commit.before:${at}`, `commit.after:${at}`]))(
  "a host that dies at %s loses and doubles nothing (G1, R2)",
  async (point) => {
    await using home = await temporaryFolder();
    const report = await crashAtPoint({ home: home.path, point, seed: 1 });
    expect(report).toEqual({ point, died: true, violations: [] });
  },
);
