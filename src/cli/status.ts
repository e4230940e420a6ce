// Owns: `laneway status`: the host in one look. With --json exactly what the host says, as one object.
import { EXIT, type ExitCode } from "../kernel/errors.ts";
import { ask } from "./host/ask.ts";
import { status as reply, type Status } from "./host/replies.ts";
import { LANE_COLUMNS } from "./lanes.ts";
import { jsonLine } from "./print/json.ts";
import { readersNow } from "./print/listing.ts";
import { paint, paintOfState } from "./print/paint.ts";
import { type Column, facts, table } from "./print/table.ts";
import { instantText, lengthText } from "./print/words.ts";
import type { JsonOption, Output, Shell } from "./shell.ts";

export async function status(shell: Shell, { json }: JsonOption): Promise<ExitCode> {
  const found = await ask(shell, "status", {}, reply);
  await shell.out.write(json ? jsonLine(found) : statusText(found, shell));
  return EXIT.ok;
}

function statusText(found: Status, shell: Shell): string {
  const { out } = shell;
  const { version, generation, pid, uptimeMs, settings, counts } = found;
  const head = facts(out, [
    ["Laneway", version],
    ["up for", lengthText(uptimeMs)],
    ["process", pid],
    ["generation", generation],
    ["settings", [settings.state, settings.path].filter(Boolean).join("  ")],
    ["work", `${counts.running} running, ${counts.queued} waiting`],
    ["outbox", outboxText(counts.outbox ?? {})],
  ]);
  const blocks = [
    head + warnings(found, out),
    table(
      out,
      LANE_COLUMNS,
      found.lanes.filter(({ size, running, queued }) => size + running + queued > 0),
    ),
    table(out, channelColumns(readersNow(shell)), found.channels),
    table(out, BACKEND_COLUMNS, found.backends),
  ];
  return blocks.filter((block) => block !== "").join("\n");
}

function outboxText(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).map(([state, count]) => `${count} ${state}`);
  return parts.length === 0 ? "nothing waits" : parts.join(", ");
}

function warnings({ settings, store }: Status, out: Output): string {
  const lines: string[] = [];
  if (settings.problem !== undefined) lines.push(`The settings file is not used: ${settings.problem}`);
  if (store?.paused) lines.push("The disk cannot be written: nothing new is accepted until it can.");
  return lines.map((line) => `${paint(out, "red", line)}\n`).join("");
}

function channelColumns(nowMs: number | undefined): Column<Status["channels"][number]>[] {
  return [
    { title: "CHANNEL", cell: ({ name }) => name },
    { title: "STATE", cell: ({ state }) => state, paint: ({ state }) => paintOfState(state) },
    { title: "SINCE", cell: ({ since }) => instantText(since, nowMs) },
    { title: "LAST EVENT", cell: ({ lastEventAt }) => instantText(lastEventAt, nowMs) },
    { title: "REASON", cell: ({ reason }) => reason },
  ];
}

const BACKEND_COLUMNS: readonly Column<Status["backends"][number]>[] = [
  { title: "BACKEND", cell: ({ name }) => name },
  { title: "KIND", cell: ({ kind }) => kind },
  { title: "MODEL", cell: ({ model }) => model },
  { title: "STATE", cell: ({ state }) => state, paint: ({ state }) => paintOfState(state) },
  { title: "CLASS", cell: ({ class: kind }) => kind },
];
