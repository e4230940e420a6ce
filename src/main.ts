// Owns: the start of the process: compile cache first, then the command line. Sets the exit code and never cuts output off.
import { statSync } from "node:fs";
import module from "node:module";
import { processShell } from "./cli/shell.ts";
import { readEnv } from "./settings/env.ts";
import { isOpenToOthers } from "./settings/files.ts";

/**
 * Compiled code is kept in the home, but only in one that is there and private: looking something up must not make a
 * home, and code that others can write must not run.
 */
function isPrivateFolder(path: string): boolean {
  try {
    const stat = statSync(path);
    return stat.isDirectory() && !isOpenToOthers(stat.mode) && stat.uid === (process.getuid?.() ?? stat.uid);
  } catch {
    return false;
  }
}

const shell = processShell(readEnv());
if (isPrivateFolder(shell.paths.home)) module.enableCompileCache(shell.paths.cache);
const { run } = await import("./cli/program.ts");
process.exitCode = await run(process.argv.slice(2), shell);
