// Owns: the checks that only make sense while no host runs: whether one could start.
import { once } from "node:events";
import { createServer } from "node:net";
import { messageOf, systemCode } from "../../kernel/errors.ts";
import { isThere } from "../../settings/files.ts";
import type { Settings } from "../../settings/schema.ts";
import { readHostFile } from "../host/find.ts";
import type { Shell } from "../shell.ts";
import { type Check, fail, failedBy, ok } from "./check.ts";

export async function stoppedChecks(shell: Shell, { gateway }: Settings): Promise<Check[]> {
  return [ok("host", "not running"), await portCheck(gateway), await lockCheck(shell)];
}

async function portCheck({ host, port }: Settings["gateway"]): Promise<Check> {
  if (port === 0) return ok("port", "any free one");
  const server = createServer();
  try {
    server.listen(port, host.replace(/^\[|\]$/g, ""));
    await once(server, "listening");
    return ok("port", `${port} is free`);
  } catch (thrown) {
    if (systemCode(thrown) === "EADDRINUSE") {
      const hint = "Stop it, or set gateway.port in the settings file to a free one.";
      return fail("port", `another program listens on ${host}:${port}`, hint);
    }
    return fail(
      "port",
      `cannot listen on ${host}:${port}: ${messageOf(thrown)}`,
      "Correct gateway.host and gateway.port.",
    );
  } finally {
    server.close();
  }
}

/** Takes the lock for a moment. Without a lock file nobody can hold it. */
async function lockCheck({ paths }: Shell): Promise<Check> {
  if (!isThere(paths.lockDb)) return ok("lock", "free");
  try {
    const { takeLock } = await import("../../store/lock.ts");
    const release = takeLock(paths.lockDb, () => holder(paths.hostFile));
    release();
    return ok("lock", "free");
  } catch (thrown) {
    return failedBy("lock", thrown);
  }
}

function holder(hostFile: string): string | undefined {
  try {
    const pid = readHostFile(hostFile)?.pid;
    return pid === undefined ? undefined : `process ${pid}`;
  } catch {
    return undefined;
  }
}
