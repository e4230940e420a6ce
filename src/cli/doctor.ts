// Owns: `laneway doctor`: what can be wrong with an installation, looked at from outside, and from inside when a host runs.
// Changes nothing.
import { EXIT, type ExitCode } from "../kernel/errors.ts";
import type { Check } from "./doctor/check.ts";
import { homeChecks, nodeCheck } from "./doctor/home.ts";
import { hostChecks } from "./doctor/host.ts";
import { settingsChecks } from "./doctor/settings.ts";
import { stoppedChecks } from "./doctor/stopped.ts";
import { findHost } from "./host/find.ts";
import { writeListing } from "./print/listing.ts";
import { paintOfState } from "./print/paint.ts";
import type { Column } from "./print/table.ts";
import type { JsonOption, Shell } from "./shell.ts";

interface DoctorOptions extends JsonOption {
  readonly config?: string | undefined;
}

/** 1 when a check fails; a warning is no failure. */
export async function doctor(shell: Shell, { config, json }: DoctorOptions): Promise<ExitCode> {
  const { settings, checks } = settingsChecks(shell, config);
  const rows: Check[] = [nodeCheck(), ...homeChecks(shell.paths), ...checks];
  const running = runningHost(shell);
  rows.push(...(running === undefined ? await stoppedChecks(shell, settings) : await hostChecks(shell, running)));
  const named = rows.map(({ name, ...rest }) => ({ id: name, name, ...rest }));
  await writeListing(shell, { rows: named, columns: COLUMNS, none: "", json });
  return rows.some(({ state }) => state === "fail") ? EXIT.workFailed : EXIT.ok;
}

function runningHost(shell: Shell): { pid: number; address: string } | undefined {
  try {
    return findHost(shell);
  } catch {
    return undefined;
  }
}

const COLUMNS: readonly Column<Check>[] = [
  { title: "CHECK", cell: ({ name }) => name },
  { title: "STATE", cell: ({ state }) => state, paint: ({ state }) => paintOfState(state) },
  { title: "FOUND", cell: ({ detail }) => detail },
  { title: "WHAT TO DO", cell: ({ hint }) => hint },
];
