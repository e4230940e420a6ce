// Owns: the table of commands: names, options, help. Each command's code is imported only when it runs.
import { Command, CommanderError, InvalidArgumentError, Option, type OutputConfiguration } from "commander";
import { EXIT } from "../kernel/errors.ts";
import { reportError } from "./report.ts";
import type { Output, Shell } from "./shell.ts";
import { packageVersion } from "./version.ts";

/** What a command's action does with the exit code that its promise brings. */
type Run = (work: Promise<number>) => Promise<void>;

/** Runs one command line and answers the exit code. Never rejects: what goes wrong is on stderr. */
export async function run(argv: readonly string[], shell: Shell): Promise<number> {
  let code: number = EXIT.ok;
  const said: Promise<void>[] = [];
  const program = makeProgram(shell, async (work) => {
    code = await work;
  });
  const say = (output: Output) => (text: string) => void said.push(output.write(text));
  configure(program, {
    writeOut: say(shell.out),
    writeErr: say(shell.err),
    outputError: (text, write) => write(text.replace(/^error: /, "laneway: ")),
    getOutHelpWidth: () => shell.out.columns() ?? 100,
    getErrHelpWidth: () => shell.err.columns() ?? 100,
    getOutHasColors: () => shell.out.colour,
    getErrHasColors: () => shell.err.colour,
  });
  try {
    await program.parseAsync(argv, { from: "user" });
    await Promise.all(said);
    return code;
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) return reportError(thrown, shell);
    await Promise.allSettled(said);
    return thrown.exitCode === 0 ? EXIT.ok : EXIT.usage;
  }
}

/** Commander hands its settings on only to commands that are made afterwards. */
function configure(command: Command, output: OutputConfiguration): void {
  command.exitOverride().configureOutput(output).configureHelp({ showGlobalOptions: false });
  for (const child of command.commands) configure(child, output);
}

function makeProgram(shell: Shell, run: Run): Command {
  const program = new Command("laneway")
    .description("A gateway for a personal agent host: durable commands on lanes, nothing lost, nothing said twice.")
    .version(packageVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "show this help")
    .helpCommand("help [command]", "show the help of a command")
    .addHelpText("after", HELP_TAIL);
  addHost(program, shell, run);
  addTalk(program, shell, run);
  addWork(program, shell, run);
  addConfig(program, shell, run);
  return program;
}

const HELP_TAIL = `
The home is $LANEWAY_HOME, by default ~/.laneway. Listings take --json: one object a line.
Exit codes: 0 ok, 1 the work failed, 2 usage, 65 data corrupt or of a newer version, 69 no host runs, 70 internal,
75 another host holds the data, 78 settings refused.`;

function addHost(program: Command, shell: Shell, run: Run): void {
  program.commandsGroup("Host:");
  program
    .command("start")
    .description("run the host in the foreground; prints the link to the web page")
    .addOption(configFile())
    .option("--json", "print what was started as one JSON object")
    .action(async (options) => run((await import("./start.ts")).start(shell, options)));
  program
    .command("status")
    .description("what the host does: lanes, channels, backends")
    .addOption(jsonObject())
    .action(async (options) => run((await import("./status.ts")).status(shell, options)));
  program
    .command("doctor")
    .description("look for what is wrong, with or without a host")
    .addOption(configFile())
    .addOption(jsonLines())
    .action(async (options) => run((await import("./doctor.ts")).doctor(shell, options)));
  program
    .command("link")
    .description("print a fresh link to the web page")
    .addOption(jsonObject())
    .action(async (options) => run((await import("./link.ts")).link(shell, options)));
}

function addTalk(program: Command, shell: Shell, run: Run): void {
  program.commandsGroup("Talk:");
  program
    .command("chat")
    .description("talk to the assistant; by pipe each line of stdin is one message")
    .addOption(sessionName())
    .action(async (options) => run((await import("./chat/command.ts")).chat(shell, options)));
  program
    .command("agent")
    .description("send one message, for scripts; prints its number, or with --wait the answer")
    .requiredOption("-m, --message <text>", "the message; - reads it from stdin")
    .addOption(sessionName())
    .option("-w, --wait", "wait for the answer and print it; exit 1 when it failed")
    .addOption(jsonObject())
    .action(async (options) => run((await import("./agent.ts")).agent(shell, options)));
}

function addWork(program: Command, shell: Shell, run: Run): void {
  program.commandsGroup("Work:");
  program
    .command("lanes")
    .description("how much runs and waits in each lane")
    .addOption(jsonLines())
    .action(async (options) => run((await import("./lanes.ts")).lanes(shell, options)));
  addQueue(program, shell, run);
  addOutbox(program, shell, run);
  addSessions(program, shell, run);
  addPairing(program, shell, run);
}

function addQueue(program: Command, shell: Shell, run: Run): void {
  const queue = program.command("queue").description("commands that wait, run or have ended");
  queue
    .command("list")
    .description("what waits and runs; --all shows what has ended too")
    .option("-l, --lane <lane>", "only this lane")
    .addOption(allRows())
    .addOption(rowLimit())
    .addOption(jsonLines())
    .action(async (options) => run((await import("./queue.ts")).queueList(shell, options)));
  queue
    .command("show")
    .description("one command with its steps and the delivery of its answer")
    .argument("<id>", "number of the command", rowNumber)
    .addOption(jsonObject())
    .action(async (id, options) => run((await import("./queue.ts")).queueShow(shell, id, options)));
  queue
    .command("cancel")
    .description("stop a command, whether it waits or runs")
    .argument("<id>", "number of the command", rowNumber)
    .addOption(jsonObject())
    .action(async (id, options) => run((await import("./queue.ts")).queueCancel(shell, id, options)));
  queue
    .command("retry")
    .description("run the message of a command that has ended again, as a new command")
    .argument("<id>", "number of the command", rowNumber)
    .addOption(jsonObject())
    .action(async (id, options) => run((await import("./queue.ts")).queueRetry(shell, id, options)));
}

function addOutbox(program: Command, shell: Shell, run: Run): void {
  const outbox = program.command("outbox").description("what must reach people, until it has");
  outbox
    .command("list")
    .description("what waits to be delivered; --all shows what was delivered too")
    .addOption(allRows())
    .addOption(rowLimit())
    .addOption(jsonLines())
    .action(async (options) => run((await import("./outbox.ts")).outboxList(shell, options)));
  outbox
    .command("resend")
    .description("send a held or failed part again")
    .argument("<id>", "number of the part", rowNumber)
    .addOption(jsonObject())
    .action(async (id, options) => run((await import("./outbox.ts")).outboxResend(shell, id, options)));
  outbox
    .command("drop")
    .description("give a part up")
    .argument("<id>", "number of the part", rowNumber)
    .addOption(jsonObject())
    .action(async (id, options) => run((await import("./outbox.ts")).outboxDrop(shell, id, options)));
}

function addSessions(program: Command, shell: Shell, run: Run): void {
  const sessions = program.command("sessions").description("conversations and their transcripts");
  sessions
    .command("list")
    .description("all conversations, the latest first")
    .addOption(rowLimit())
    .addOption(jsonLines())
    .action(async (options) => run((await import("./sessions.ts")).sessionsList(shell, options)));
  sessions
    .command("show")
    .description("the newest messages of a conversation")
    .argument("<key>", "key of the session: the first column of `laneway sessions list`")
    .addOption(rowLimit())
    .addOption(jsonLines())
    .action(async (key, options) => run((await import("./sessions.ts")).sessionsShow(shell, key, options)));
  sessions
    .command("export")
    .description("write a transcript to stdout as Markdown, or with --json one message a line")
    .argument("<key>", "key of the session: the first column of `laneway sessions list`")
    .addOption(jsonLines())
    .action(async (key, options) => run((await import("./sessions.ts")).sessionsExport(shell, key, options)));
}

function addPairing(program: Command, shell: Shell, run: Run): void {
  const pairing = program.command("pairing").description("strangers who asked to be let in");
  pairing
    .command("list")
    .description("who asked, and what was decided")
    .addOption(rowLimit())
    .addOption(jsonLines())
    .action(async (options) => run((await import("./pairing.ts")).pairingList(shell, options)));
  pairing
    .command("approve")
    .description("let the sender in to whom this code was shown")
    .argument("<code>", "the code that the sender tells you")
    .addOption(jsonObject())
    .action(async (code, options) => run((await import("./pairing.ts")).pairingApprove(shell, code, options)));
  pairing
    .command("deny")
    .description("shut a sender out")
    .argument("<id>", "first column of `laneway pairing list`")
    .addOption(jsonObject())
    .action(async (id, options) => run((await import("./pairing.ts")).pairingDeny(shell, id, options)));
}

function addConfig(program: Command, shell: Shell, run: Run): void {
  program.commandsGroup("Settings:");
  const config = program.command("config").description("look at the settings; needs no host");
  config
    .command("check")
    .description("list every problem of the settings file; exit 78 when there is one")
    .addOption(configFile())
    .addOption(jsonLines())
    .action(async (options) => run((await import("./config.ts")).configCheck(shell, options)));
  config
    .command("get")
    .description("the settings with their defaults, or a part of them; secrets are masked")
    .argument("[path]", "such as lanes.main or agents.main.backends[0]")
    .addOption(configFile())
    .addOption(jsonObject())
    .action(async (path, options) => run((await import("./config.ts")).configGet(shell, path, options)));
  config
    .command("schema")
    .description("print the JSON Schema of the settings, for editors")
    .action(async () => run((await import("./config.ts")).configSchema(shell)));
}

const jsonLines = () => new Option("--json", "one JSON object a line");
const jsonObject = () => new Option("--json", "one JSON object");
const allRows = () => new Option("-a, --all", "finished ones too");
const configFile = () => new Option("-c, --config <file>", "settings file instead of the one in the home");
const sessionName = () => new Option("-s, --session <name>", "name or key of the session; without it, main");
const rowLimit = () => new Option("-n, --limit <count>", "at most so many, the newest").argParser(count);

function rowNumber(text: string): number {
  if (/^\d{1,15}$/.test(text) && Number(text) > 0) return Number(text);
  throw new InvalidArgumentError("Expected a number as the list shows it.");
}

/** The host gives at most a thousand rows at once. */
function count(text: string): number {
  if (/^\d{1,4}$/.test(text) && Number(text) >= 1 && Number(text) <= 1_000) return Number(text);
  throw new InvalidArgumentError("Expected a number from 1 to 1000.");
}
