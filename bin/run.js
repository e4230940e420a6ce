// Owns: running a file with a Node that can run it: `node bin/run.js FILE [ARGUMENT …]`. Plain JavaScript that Node 18 understands.
// A Node that is new enough runs the file in this process. An older one hands over to the runtime that npm installed
// as an optional dependency, and that process finds the same runtime as `node` on its PATH.
// @ts-check
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const NEEDED_MAJOR = 24;
const FORWARDED = /** @type {const} */ (["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR2"]);

/**
 * The runtime of this checkout, or undefined. Its own folder comes first: npm 9, 10 and early 11 delete the link in
 * `.bin` again when they discard the runtimes of other platforms, which have a `node` of the same name.
 */
function installedRuntime() {
  const modules = fileURLToPath(new URL("../node_modules", import.meta.url));
  const windows = process.platform === "win32";
  const name = `node-${windows ? "win" : process.platform}-${process.arch}`;
  const own = path.join(modules, name, "bin", windows ? "node.exe" : "node");
  return [own, path.join(modules, ".bin", "node")].find((file) => existsSync(file));
}

/**
 * Runs `file` with `runtime`; this process ends as that one ends: same exit code, same signal.
 * @param {string} runtime
 * @param {readonly string[]} command
 */
function handOver(runtime, command) {
  const searched = process.env["PATH"];
  process.env["PATH"] = [path.dirname(runtime), ...(searched ? [searched] : [])].join(path.delimiter);
  const child = spawn(runtime, command, { stdio: "inherit" });
  for (const signal of FORWARDED) {
    process.on(signal, () => {
      // The keys of a terminal reach both processes; passing them on would deliver one Ctrl-C twice.
      const fromTerminal = process.stdin.isTTY && signal !== "SIGTERM" && signal !== "SIGUSR2";
      if (!fromTerminal) child.kill(signal);
    });
  }
  child.on("error", (error) => refuse(`${runtime} could not be started (${error.message})`));
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

/** @param {string} reason */
function refuse(reason) {
  process.stderr.write(
    `Laneway needs Node ${NEEDED_MAJOR} or newer, but ${process.execPath} is ${process.version} and ${reason}: install Node ${NEEDED_MAJOR} (https://nodejs.org) and run this command again.\n`,
  );
  process.exit(1);
}

const [file, ...args] = process.argv.slice(2);
if (file === undefined) {
  process.stderr.write("Usage: node bin/run.js FILE [ARGUMENT …]\n");
  process.exit(2);
} else if (Number(process.versions.node.split(".")[0]) >= NEEDED_MAJOR) {
  const absolute = path.resolve(file);
  process.argv = [process.argv[0] ?? process.execPath, absolute, ...args];
  await import(pathToFileURL(absolute).href);
} else {
  const runtime = installedRuntime();
  if (runtime === undefined) refuse("npm installed no runtime for this machine");
  else handOver(runtime, [path.resolve(file), ...args]);
}
