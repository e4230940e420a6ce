// Owns: `laneway start`: settings, detection, logging, the host, signals. It prints what it took, the link and the next step.
import { type Host, startHost } from "../gateway/build.ts";
import { crashAt, noCrashPoint } from "../kernel/crashpoint.ts";
import { EXIT, type ExitCode, FencedOff, type LanewayError } from "../kernel/errors.ts";
import { errorFields, type Log } from "../kernel/log.ts";
import { type Detection, detectBackends, pathFinder, withDetected } from "../settings/detect.ts";
import { envText } from "../settings/env.ts";
import { type HomePaths, prepareHome } from "../settings/home.ts";
import { formatProblems, type LoadedSettings, loadSettings } from "../settings/load.ts";
import type { Settings } from "../settings/schema.ts";
import { readToken } from "../settings/token.ts";
import { type Logging, startLogging } from "./logging.ts";
import { reportError } from "./report.ts";
import type { Shell } from "./shell.ts";
import { packageVersion } from "./version.ts";

/** Longest drain after SIGTERM; supervisors wait 30 s and more before they kill (G17). */
const DRAIN_MS = 25_000;

interface StartOptions {
  readonly config?: string | undefined;
  readonly json?: boolean | undefined;
}

/** Runs the host until it is told to stop; then resolves with the exit code. */
export async function start(shell: Shell, options: StartOptions): Promise<ExitCode> {
  const { env, paths, ids } = shell;
  prepareHome(paths);
  const loaded = loadSettings({ file: options.config, paths, env });
  const { settings, detection } = await withBackends(loaded, shell);
  const token = readToken({ settings, paths, env, ids });
  const logging = startLogging({
    level: settings.log.level,
    folder: paths.logs,
    toStderr: !shell.err.isTerminal,
    clock: shell.clock,
  });
  const asked = stopSignal(logging.log);
  const host = await launch(shell, { settings, loaded, token, logging });
  await shell.out.write(announcement(host, { loaded, detection, paths, json: options.json === true }));
  const signal = await asked;
  logging.log.info("host.stopping", { signal });
  await host.stop(DRAIN_MS);
  logging.log.info("host.stopped");
  await logging.close();
  return EXIT.ok;
}

/** Without any backend in the settings the first start looks for what is there. */
async function withBackends(
  loaded: LoadedSettings,
  { env, clock }: Shell,
): Promise<{ settings: Settings; detection: Detection | undefined }> {
  const { settings } = loaded;
  if (Object.keys(settings.backends).length > 0) return { settings, detection: undefined };
  const detection = await detectBackends({
    env,
    fetch: globalThis.fetch,
    findOnPath: pathFinder(env),
    signal: new AbortController().signal,
    clock,
  });
  return { settings: withDetected(settings, detection.taken), detection };
}

interface Launch {
  readonly settings: Settings;
  readonly loaded: LoadedSettings;
  readonly token: string;
  readonly logging: Logging;
}

function launch(shell: Shell, { settings, loaded, token, logging }: Launch): Promise<Host> {
  const { env, paths, clock, ids } = shell;
  const { state, path, problems } = loaded;
  const { log } = logging;
  const spec = envText(env, "LANEWAY_CRASH_AT");
  const problem = problems.length === 0 ? undefined : formatProblems(problems);
  if (problem !== undefined) log.warn("settings.refused", { path, state, problems: problems.length });
  return startHost({
    ...{ settings, paths, token, clock, ids, log, version: packageVersion() },
    settingsFacts: { state, path, problem },
    crashPoint: spec === undefined ? noCrashPoint : crashAt(spec, () => process.kill(process.pid, "SIGKILL")),
    onFatal: fatalEnd(shell, logging),
  });
}

/** How long the last log lines may take: the disk may be what is broken. */
const LAST_WORDS_MS = 5_000;

/** Ends the process when it can never write again: nothing is kept any more, so nothing is lost by it. */
function fatalEnd(shell: Shell, logging: Logging): (error: LanewayError) => void {
  let ending = false;
  return (error) => {
    if (ending) return;
    ending = true;
    const end = () => process.exit(error.exitCode);
    shell.clock.after(LAST_WORDS_MS, end);
    logging.log.error(error instanceof FencedOff ? "host.fenced" : "host.data-unusable", errorFields(error));
    Promise.all([reportError(error, shell), logging.close()]).then(end, end);
  };
}

interface Told {
  readonly loaded: LoadedSettings;
  readonly detection: Detection | undefined;
  readonly paths: HomePaths;
  readonly json: boolean;
}

function announcement(host: Host, told: Told): string {
  const link = host.link();
  if (told.json) {
    return `${JSON.stringify({ address: host.address, link, settings: told.loaded.state, ...host.recovered })}\n`;
  }
  const open = [
    "",
    `  Open   ${link}`,
    "",
    "  The link works once, for ten minutes; `laneway link` prints a new one. In a terminal: `laneway chat`.",
  ];
  return `${[...settingsLines(told), ...backendLines(told), ...recoveredLines(host), ...open, ...nextStep(told)].join("\n")}\n`;
}

function settingsLines({ loaded }: Told): string[] {
  switch (loaded.state) {
    case "file":
      return [`Laneway runs with the settings in ${loaded.path}.`];
    case "last-good":
      return [
        `The settings in ${loaded.path} are refused, the last good ones are used:`,
        formatProblems(loaded.problems),
      ];
    case "defaults":
      return [`Laneway runs. There is no settings file (${loaded.path}), so it took what it found.`];
  }
}

function backendLines({ detection }: Told): string[] {
  if (detection === undefined) return [];
  const { taken, seen } = detection;
  const model = taken.settings.kind !== "offline" ? ` (model ${taken.settings.model})` : "";
  return [
    `Backend: ${taken.name}${model}, because ${taken.why}.`,
    ...seen.map((line) => `Also seen, not used: ${line}.`),
  ];
}

function recoveredLines({ recovered }: Host): string[] {
  const { requeued, dead } = recovered;
  if (requeued + dead === 0) return [];
  return [
    `From before: ${requeued} interrupted ${requeued === 1 ? "message goes" : "messages go"} on, ${dead} given up.`,
  ];
}

function nextStep({ detection, paths }: Told): string[] {
  if (detection?.taken.settings.kind !== "offline") return ["  Stop it with Ctrl-C; nothing is lost."];
  return [
    "  No model is connected yet, so answers come from a built-in stand-in. Next step, one of:",
    "    export OPENAI_API_KEY=…   (or ANTHROPIC_API_KEY, OPENROUTER_API_KEY, GEMINI_API_KEY …) and start again",
    "    run Ollama, LM Studio or llama.cpp on this machine and start again",
    `    name a backend in ${paths.settings} (see config/laneway.example.yaml)`,
  ];
}

/** Resolves with the name of the signal that asks the host to stop. Stray errors are logged and do not end it (Q8.4). */
function stopSignal(log: Log): Promise<string> {
  const asked = Promise.withResolvers<string>();
  let times = 0;
  const onSignal = (signal: string) => {
    asked.resolve(signal);
    times += 1;
    // Whoever presses Ctrl-C a third time does not want to wait; a hard end is as safe as a crash.
    if (times === 3) process.exit(EXIT.ok);
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  process.on("uncaughtException", (thrown) => log.error("process.uncaught", errorFields(thrown)));
  process.on("unhandledRejection", (thrown) => log.error("process.unhandled", errorFields(thrown)));
  return asked.promise;
}
