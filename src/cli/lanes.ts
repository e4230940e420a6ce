// Owns: `laneway lanes`: how much runs and waits in each lane.
import type { ExitCode } from "../kernel/errors.ts";
import { ask } from "./host/ask.ts";
import { type Lane, lanes as reply } from "./host/replies.ts";
import { writeListing } from "./print/listing.ts";
import type { Column } from "./print/table.ts";
import { lengthText } from "./print/words.ts";
import type { JsonOption, Shell } from "./shell.ts";

export const LANE_COLUMNS: readonly Column<Lane>[] = [
  { title: "LANE", cell: ({ lane }) => lane },
  {
    title: "RUNNING",
    right: true,
    cell: ({ running }) => running,
    paint: ({ running }) => (running > 0 ? "cyan" : "dim"),
  },
  { title: "SIZE", right: true, cell: ({ size }) => size },
  {
    title: "QUEUED",
    right: true,
    cell: ({ queued }) => queued,
    paint: ({ queued }) => (queued > 0 ? "yellow" : "dim"),
  },
  {
    title: "OLDEST WAITS",
    right: true,
    cell: ({ oldestWaitMs }) => (oldestWaitMs !== undefined && lengthText(oldestWaitMs)) || "",
  },
];

export async function lanes(shell: Shell, { json }: JsonOption): Promise<ExitCode> {
  const { lanes: found } = await ask(shell, "lanes", {}, reply);
  const rows = found.map((lane) => ({ id: lane.lane, ...lane }));
  return writeListing(shell, { rows, columns: LANE_COLUMNS, none: "no lanes", json });
}
