// Owns: `laneway sessions …`: conversations and their transcripts.
import { EXIT, type ExitCode } from "../kernel/errors.ts";
import { visible } from "../kernel/visible.ts";
import { ask } from "./host/ask.ts";
import { sessions as list, type MessageRow, type SessionRow, shownSession } from "./host/replies.ts";
import { jsonLine } from "./print/json.ts";
import { readersNow, writeListing } from "./print/listing.ts";
import { paint } from "./print/paint.ts";
import type { Column } from "./print/table.ts";
import { TEXT_KEEPS, textLines } from "./print/text.ts";
import { instantText } from "./print/words.ts";
import type { JsonOption, Shell } from "./shell.ts";

interface LimitOptions extends JsonOption {
  readonly limit?: number | undefined;
}

export async function sessionsList(shell: Shell, { json, limit }: LimitOptions): Promise<ExitCode> {
  const { sessions: found } = await ask(shell, "sessions.list", { limit }, list);
  const rows = found.map((session) => ({ id: session.key, ...session }));
  return writeListing(shell, { rows, columns: columns(readersNow(shell)), none: "no conversations yet", json });
}

function columns(nowMs: number | undefined): Column<SessionRow>[] {
  return [
    { title: "SESSION", cell: ({ key }) => key },
    { title: "AGENT", cell: ({ agent }) => agent },
    { title: "MESSAGES", right: true, cell: ({ messages }) => messages },
    { title: "LAST", cell: ({ lastAt }) => instantText(lastAt, nowMs) },
  ];
}

export async function sessionsShow(shell: Shell, key: string, { json, limit }: LimitOptions): Promise<ExitCode> {
  const { messages } = await ask(shell, "sessions.show", { key, limit }, shownSession);
  const { out } = shell;
  const nowMs = readersNow(shell);
  const block = ({ role, text, at }: MessageRow) => {
    return `${paint(out, "bold", visible(role))}  ${paint(out, "dim", instantText(at, nowMs))}\n${textLines(text)}\n`;
  };
  await out.write(json ? messages.map(jsonLine).join("") : messages.map(block).join("\n"));
  return EXIT.ok;
}

/** The most that the host gives at once. */
const EXPORT_LIMIT = 1_000;

/** The whole transcript as Markdown, or with --json one message a line; to stdout, for a file. */
export async function sessionsExport(shell: Shell, key: string, { json }: JsonOption): Promise<ExitCode> {
  const { messages } = await ask(shell, "sessions.show", { key, limit: EXPORT_LIMIT }, shownSession);
  const section = ({ role, text, at }: MessageRow) => `## ${visible(role)}, ${at}\n\n${visible(text, TEXT_KEEPS)}\n`;
  await shell.out.write(
    json ? messages.map(jsonLine).join("") : [`# ${visible(key)}\n`, ...messages.map(section)].join("\n"),
  );
  if (messages.length < EXPORT_LIMIT) return EXIT.ok;
  await shell.err.write(`Only the newest ${EXPORT_LIMIT} messages are in it.\n`);
  return EXIT.workFailed;
}
