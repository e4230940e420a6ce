// Owns: `laneway start`: settings, detection, logging, the host, signals. It prints what it took, the link and the next step.
import { readFileSync } from "node:fs";
import { systemClock } from "../kernel/clock.ts";
import { crashAt, noCrashPoint } from "../kernel/crashpoint.ts";
import { EXIT, type FencedOff } from "../kernel/errors.ts";
import { systemIds } from "../kernel/ids.ts";
import { errorFields } from "../kernel/log.ts";
import { type Host, startHost } from "../gateway/build.ts";
import { type Detection, detectBackends, pathFinder, withDetected } from "../settings/detect.ts";
import { type Env, envText, readEnv } from "../settings/env.ts";
import { type HomePaths, homePaths, prepareHome } from "../settings/home.ts";
import { formatProblems, type LoadedSettings, loadSettings } from "../settings/load.ts";
import type { Settings } from "../settings/schema.ts";
import { readToken } from "../settings/token.ts";
import { type Logging, startLogging } from "./logging.ts";

/** Longest drain after SIGTERM; supervisors wait 30 s and more before they kill (G17). */
const DRAIN_MS = 25_000;

/** Runs the host until it is told to stop. Resolves with the exit code. */
export async function start(options: { config?: string | undefined; json?: boolean | undefined }): Promise<number> {
  const env = readEnv();
  const paths = homePaths(env);
  prepareHome(paths);
  const loaded = loadSettings({ file: options.config, paths, env });
  const { settings, detection } = await withBackends(loaded, env);
  const token = readToken({ settings, paths, env, ids: systemIds() });
  const logging = startLogging({ level: settings.log.level, folder: paths.logs, toStderr: !process.stderr.isTTY });
  const host = await launch({ settings, loaded, paths, token, env, logging });
  announce(host, { loaded, detection, settings, paths, json: options.json === true });
  const code = await untilStopped(host, logging);
  await logging.close();
  return code;
}

/** Without any backend in the settings the first start looks for what is there. */
async function withBackends(loaded: LoadedSettings, env: Env): Promise<{ settings: Settings; detection: Detection | undefined }> {
  const { settings } = loaded;
  if (Object.keys(settings.backends).length > 0) return { settings, detection: undefined };
  const detection = await detectBackends({
    env,
    fetch: globalThis.fetch,
    findOnPath: pathFinder(env),
    signal: new AbortController().signal,
    clock: systemClock(),
  });
  return { settings: withDetected(settings, detection.taken), detection };
}

interface Launch {
  readonly settings: Settings;
  readonly loaded: LoadedSettings;
  readonly paths: HomePaths;
  readonly token: string;
  readonly env: Env;
  readonly logging: Logging;
}

function launch({ settings, loaded, paths, token, env, logging }: Launch): Promise<Host> {
  const { state, path, problems } = loaded;
  const spec = envText(env, "LANEWAY_CRASH_AT");
  const problem = problems.length === 0 ? undefined : formatProblems(problems);
  if (problem !== undefined) logging.log.warn("settings.refused", { path, state, problems: problems.length });
  return startHost({
    ...{ settings, paths, token, version: version(), clock: systemClock(), ids: systemIds(), log: logging.log },
    settingsFacts: { state, path, problem },
    crashPoint: spec === undefined ? noCrashPoint : crashAt(spec, () => process.kill(process.pid, "SIGKILL")),
    onFenced: (error: FencedOff) => {
      logging.log.error("host.fenced", errorFields(error));
      process.exit(EXIT.internal);
    },
  });
}

/** The version of package.json: the one place where it stands. */
export function version(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const found: unknown = JSON.parse(text);
  return typeof found === "object" && found !== null && "version" in found ? String(found.version) : "unknown";
}

interface Told {
  readonly loaded: LoadedSettings;
  readonly detection: Detection | undefined;
  readonly settings: Settings;
  readonly paths: HomePaths;
  readonly json: boolean;
}

function announce(host: Host, told: Told): void {
  const link = host.link();
  if (told.json) {
    process.stdout.write(`${JSON.stringify({ address: host.address, link, settings: told.loaded.state, ...host.recovered })}\n`);
    return;
  }
  process.stdout.write(`${[...settingsLines(told), ...backendLines(told), ...recoveredLines(host), "", `  Open   ${link}`, ""].join("\n")}\n`);
  process.stdout.write("  The link works once, for ten minutes; `laneway link` prints a new one. In a terminal: `laneway chat`.\n");
  process.stdout.write(`${nextStep(told)}\n`);
}

function settingsLines({ loaded }: Told): string[] {
  switch (loaded.state) {
    case "file":
      return [`Laneway runs with the settings in ${loaded.path}.`];
    case "last-good":
      return [`The settings in ${loaded.path} are refused, the last good ones are used:`, formatProblems(loaded.problems)];
    case "defaults":
      return [`Laneway runs. There is no settings file (${loaded.path}), so it took what it found.`];
  }
}

function backendLines({ detection }: Told): string[] {
  if (detection === undefined) return [];
  const { taken, seen } = detection;
  const model = taken.settings.kind === "openai" ? ` (model ${taken.settings.model})` : "";
  return [`Backend: ${taken.name}${model}, because ${taken.why}.`, ...seen.map((line) => `Also seen, not used: ${line}.`)];
}

function recoveredLines({ recovered }: Host): string[] {
  const { requeued, dead } = recovered;
  if (requeued + dead === 0) return [];
  return [`From before: ${requeued} interrupted ${requeued === 1 ? "message goes" : "messages go"} on, ${dead} given up.`];
}

function nextStep({ detection, paths }: Told): string {
  const offline = detection?.taken.settings.kind === "offline";
  if (!offline) return "  Stop it with Ctrl-C; nothing is lost.";
  return [
    "  No model is connected yet, so answers come from a built-in stand-in. Next step, one of:",
    "    export OPENAI_API_KEY=…   (or ANTHROPIC_API_KEY, OPENROUTER_API_KEY, GEMINI_API_KEY …) and start again",
    "    run Ollama, LM Studio or llama.cpp on this machine and start again",
    `    name a backend in ${paths.settings} (see config/laneway.example.yaml)`,
  ].join("\n");
}

async function untilStopped(host: Host, { log }: Logging): Promise<number> {
  const asked = Promise.withResolvers<string>();
  let again = 0;
  const onSignal = (signal: string) => {
    asked.resolve(signal);
    // Whoever presses Ctrl-C a third time does not want to wait; a hard end is as safe as a crash.
    if (++again === 3) process.exit(EXIT.ok);
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  process.on("uncaughtException", (thrown) => log.error("process.uncaught", errorFields(thrown)));
  process.on("unhandledRejection", (thrown) => log.error("process.unhandled", errorFields(thrown)));
  const signal = await asked.promise;
  log.info("host.stopping", { signal });
  await host.stop(DRAIN_MS);
  log.info("host.stopped");
  return EXIT.ok;
}
