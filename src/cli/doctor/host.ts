// Owns: the checks of a running host: whether it answers, and what it says about itself.
import { messageOf } from "../../kernel/errors.ts";
import { ask } from "../host/ask.ts";
import { checks as reply } from "../host/replies.ts";
import type { Shell } from "../shell.ts";
import { type Check, fail, ok } from "./check.ts";

/** Longer than for other verbs: the host reads its whole database. */
const LIMIT_MS = 120_000;

export async function hostChecks(shell: Shell, { pid, address }: { pid: number; address: string }): Promise<Check[]> {
  try {
    const { checks } = await ask(shell, "doctor", {}, reply, { limitMs: LIMIT_MS });
    const inside = checks.map(
      ({ name, ok: isGood, detail }): Check => (isGood ? ok(name, detail) : fail(name, detail)),
    );
    return [ok("host", `process ${pid} answers at ${address}`), ...inside];
  } catch (thrown) {
    const advice = `End process ${pid}, then \`laneway start\`; nothing accepted is lost by that.`;
    return [fail("host", `process ${pid} does not answer as it should: ${messageOf(thrown)}`, advice)];
  }
}
