// The log file lives through a disk that was full.
import { existsSync, readFileSync } from "node:fs";
import { stat } from "node:fs/promises";
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
  await vi.waitFor(() => expect(inFile().length).toBeGreaterThan(3_900), { timeout: 10_000 });
  // The write that found no space answers after the one that filled the page: some turns of the file system's threads.
  for (let turn = 0; turn < 50; turn += 1) await stat(folder.path);
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
  // Otherwise the disk was never full and nothing was proved.
  expect(inFile().split('"lost"').length - 1).toBeLessThan(50);
});
