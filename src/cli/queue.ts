// Owns: `laneway queue …`: commands that wait, run or have ended.
import { EXIT, type ExitCode } from "../kernel/errors.ts";
import { ask } from "./host/ask.ts";
import { type CommandRow, changed, commands, retried, type StepRow, shownCommand } from "./host/replies.ts";
import { jsonLine } from "./print/json.ts";
import { readersNow, writeListing } from "./print/listing.ts";
import { paintOfState } from "./print/paint.ts";
import { type Column, facts, table } from "./print/table.ts";
import { instantText, lengthText } from "./print/words.ts";
import type { JsonOption, Shell } from "./shell.ts";

interface ListOptions extends JsonOption {
  readonly all?: boolean | undefined;
  readonly lane?: string | undefined;
  readonly limit?: number | undefined;
}

export async function queueList(shell: Shell, { json, all, lane, limit }: ListOptions): Promise<ExitCode> {
  const { commands: rows } = await ask(shell, "queue.list", { all: all === true, lane, limit }, commands);
  const none = all ? "no commands" : "nothing waits and nothing runs; --all shows what has ended";
  return writeListing(shell, { rows, columns: listColumns(readersNow(shell)), none, json });
}

function listColumns(nowMs: number | undefined): Column<CommandRow>[] {
  return [
    { title: "ID", right: true, cell: ({ id }) => id },
    { title: "STATE", cell: ({ state }) => state, paint: ({ state }) => paintOfState(state) },
    { title: "LANE", cell: ({ lane }) => lane },
    { title: "PLACE", right: true, cell: ({ position }) => position },
    { title: "SESSION", cell: ({ session }) => session },
    { title: "SOURCE", cell: ({ source }) => source },
    { title: "ACCEPTED", cell: ({ acceptedAt }) => instantText(acceptedAt, nowMs) },
    { title: "WAITED", right: true, cell: ({ waitedMs }) => (waitedMs === undefined ? "" : lengthText(waitedMs)) },
    { title: "STRIKES", right: true, cell: ({ strikes }) => strikes || "", paint: () => "red" },
    { title: "MESSAGE", cell: ({ preview }) => preview },
  ];
}

export async function queueShow(shell: Shell, id: number, { json }: JsonOption): Promise<ExitCode> {
  const found = await ask(shell, "queue.show", { id }, shownCommand);
  const { out } = shell;
  if (json) {
    await out.write(jsonLine({ ...found.command, steps: found.steps, parts: found.parts }));
    return EXIT.ok;
  }
  const nowMs = readersNow(shell);
  const { command, steps, parts } = found;
  const blocks = [
    facts(out, [
      ["command", command.id],
      ["state", command.state],
      ["outcome", [command.outcome?.reason, command.outcome?.message].filter(Boolean).join(": ").replaceAll("\n", " ")],
      ["lane", command.lane],
      ["priority", command.priority],
      ["place", command.position],
      ["session", command.session],
      ["source", command.source],
      ["accepted", instantText(command.acceptedAt, nowMs)],
      ["started", instantText(command.startedAt, nowMs)],
      ["finished", instantText(command.finishedAt, nowMs)],
      ["waited", command.waitedMs === undefined ? undefined : lengthText(command.waitedMs)],
      ["claims", command.claim],
      ["strikes", command.strikes],
      ["message", command.preview],
    ]),
    table(out, stepColumns(nowMs), steps),
    table(out, PART_COLUMNS, parts),
  ];
  await out.write(blocks.filter((block) => block !== "").join("\n"));
  return EXIT.ok;
}

function stepColumns(nowMs: number | undefined): Column<StepRow>[] {
  return [
    { title: "STEP", right: true, cell: ({ n }) => n },
    { title: "KIND", cell: ({ kind }) => kind },
    { title: "NAME", cell: ({ name }) => name },
    { title: "STATE", cell: ({ state }) => state, paint: ({ state }) => paintOfState(state) },
    { title: "STARTED", cell: ({ startedAt }) => instantText(startedAt, nowMs) },
    { title: "TOOK", right: true, cell: tookText },
  ];
}

function tookText({ startedAt, endedAt }: StepRow): string {
  return endedAt === undefined ? "" : lengthText(Date.parse(endedAt) - Date.parse(startedAt));
}

const PART_COLUMNS: readonly Column<{ id: number; state: string; class: string }>[] = [
  { title: "PART", right: true, cell: ({ id }) => id },
  { title: "CLASS", cell: (part) => part.class },
  { title: "DELIVERY", cell: ({ state }) => state, paint: ({ state }) => paintOfState(state) },
];

export async function queueCancel(shell: Shell, id: number, { json }: JsonOption): Promise<ExitCode> {
  const found = await ask(shell, "queue.cancel", { id }, changed);
  const others = `command ${found.id} had ended before: it is ${found.state}\n`;
  await shell.out.write(
    json ? jsonLine(found) : found.state === "cancelled" ? `cancelled command ${found.id}\n` : others,
  );
  return found.state === "cancelled" ? EXIT.ok : EXIT.workFailed;
}

export async function queueRetry(shell: Shell, id: number, { json }: JsonOption): Promise<ExitCode> {
  const found = await ask(shell, "queue.retry", { id }, retried);
  await shell.out.write(json ? jsonLine(found) : `command ${found.id} runs the message of ${found.of} again\n`);
  return EXIT.ok;
}
