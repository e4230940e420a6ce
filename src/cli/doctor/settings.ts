// Owns: the checks of settings and token.
import { messageOf } from "../../kernel/errors.ts";
import { envText } from "../../settings/env.ts";
import { isThere } from "../../settings/files.ts";
import { checkSettings, formatProblems, readSettings } from "../../settings/load.ts";
import { type Settings, settingsSchema } from "../../settings/schema.ts";
import type { Shell } from "../shell.ts";
import { type Check, fail, ok } from "./check.ts";

interface Found {
  /** As far as they can be used; else the defaults. */
  readonly settings: Settings;
  readonly checks: readonly Check[];
}

export function settingsChecks({ paths, env }: Shell, file: string | undefined): Found {
  const defaults = settingsSchema.parse({});
  if (file === undefined && !isThere(paths.settings)) {
    return { settings: defaults, checks: [ok("settings", "no file, so the defaults")] };
  }
  const request = { file, paths, env };
  const path = file ?? paths.settings;
  const problems = checkSettings(request);
  if (problems.length > 0) {
    const more = problems.length === 1 ? "" : ` (and ${problems.length - 1} more)`;
    const first = formatProblems(problems.slice(0, 1));
    return {
      settings: defaults,
      checks: [fail("settings", `${first}${more}`, "`laneway config check` lists all of them.")],
    };
  }
  try {
    const { settings } = readSettings(request);
    const secret = settings.gateway.token ?? envText(env, "LANEWAY_TOKEN");
    const about = secret === undefined ? path : `${path}, with a token of its own`;
    return { settings, checks: [ok("settings", about)] };
  } catch (thrown) {
    return { settings: defaults, checks: [fail("settings", messageOf(thrown))] };
  }
}
