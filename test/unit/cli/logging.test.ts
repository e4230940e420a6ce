// The log file lives through a disk that was full.
import { existsSync, readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { startLogging } from "../../../src/cli/logging.ts";
import { fakeClock } from "../../support/clock.ts";
import { temporaryFolder } from "../../support/files.ts";
import { mountSmallDisk } from "../../support/small-disk.ts";

test("logging goes on by itself after a full disk has space again (G14)", async (context) => {
  await using folder = await temporaryFolder();
  const small = mountSmallDisk(folder.path, 1_048_576);
  if (typeof small === "string") {
    console.log(`skipped: needs a mount (${small})`);
    return context.skip();
  }
  using disk = small;
  const clock = fakeClock();
  const logging = startLogging({ level: "info", folder: folder.path, toStderr: false, clock });
  const inFile = () => (existsSync(folder.at("laneway.log")) ? readFileSync(folder.at("laneway.log"), "utf8") : "");
  logging.log.info("before");
  await vi.waitFor(() => expect(inFile()).toContain("before"), { timeout: 10_000 });
  disk.fill(0);
  // More than what is left of the last page.
  for (let n = 0; n < 50; n += 1) logging.log.info("lost", { filler: "x".repeat(200) });
  await vi.waitFor(() => expect(inFile().length).toBeLessThanOrEqual(50 * 300), { timeout: 10_000 });
  disk.free();
  await vi.waitFor(
    async () => {
      await clock.advance(10_000);
      logging.log.info("after");
      expect(inFile()).toContain('"after"');
    },
    { timeout: 10_000 },
  );
  await logging.close();
});
