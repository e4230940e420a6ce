// Owns: `laneway outbox …`: what must reach people, until it has.
import { EXIT, type ExitCode } from "../kernel/errors.ts";
import { ask } from "./host/ask.ts";
import { changed, type OutboxRow, outboxParts } from "./host/replies.ts";
import { jsonLine } from "./print/json.ts";
import { readersNow, writeListing } from "./print/listing.ts";
import { paintOfState } from "./print/paint.ts";
import type { Column } from "./print/table.ts";
import { instantText } from "./print/words.ts";
import type { JsonOption, Shell } from "./shell.ts";

interface ListOptions extends JsonOption {
  readonly all?: boolean | undefined;
  readonly limit?: number | undefined;
}

export async function outboxList(shell: Shell, { json, all, limit }: ListOptions): Promise<ExitCode> {
  const { parts: rows } = await ask(shell, "outbox.list", { all: all === true, limit }, outboxParts);
  const none = all ? "no parts" : "nothing waits to be delivered; --all shows what was";
  return writeListing(shell, { rows, columns: columns(readersNow(shell)), none, json });
}

function columns(nowMs: number | undefined): Column<OutboxRow>[] {
  return [
    { title: "ID", right: true, cell: ({ id }) => id },
    { title: "STATE", cell: ({ state }) => state, paint: ({ state }) => paintOfState(state) },
    { title: "CLASS", cell: (part) => part.class },
    { title: "CHAT", cell: ({ chat }) => chat },
    { title: "COMMAND", right: true, cell: ({ command }) => command },
    { title: "TRIES", right: true, cell: ({ attempts }) => attempts || "" },
    { title: "CREATED", cell: ({ createdAt }) => instantText(createdAt, nowMs) },
    { title: "SENT", cell: ({ sentAt }) => instantText(sentAt, nowMs) },
    { title: "REASON", cell: ({ reason }) => reason },
    { title: "TEXT", cell: ({ preview }) => preview },
  ];
}

/** Puts a held or failed part back into the line of its chat. */
export async function outboxResend(shell: Shell, id: number, { json }: JsonOption): Promise<ExitCode> {
  const found = await ask(shell, "outbox.resend", { id }, changed);
  await shell.out.write(json ? jsonLine(found) : `part ${found.id} is sent again (${found.state})\n`);
  return EXIT.ok;
}

/** Gives a part up. */
export async function outboxDrop(shell: Shell, id: number, { json }: JsonOption): Promise<ExitCode> {
  const found = await ask(shell, "outbox.drop", { id }, changed);
  await shell.out.write(json ? jsonLine(found) : `part ${found.id} is dropped\n`);
  return EXIT.ok;
}
