// Owns: the tool `read`: a text file of the workspace, or some of its lines. Changes nothing, opens only through workspace.ts.
import { z } from "zod";
import { ToolError } from "../../kernel/errors.ts";
import { isBinary, readSpan, type Span } from "./lines.ts";
import { type OpenedFile, shown } from "./opened.ts";
import type { Tool } from "./port.ts";
import { openInside, type Workspace } from "./workspace.ts";

/** A result goes into the model's context: 256 KiB are some 60,000 tokens, more than a step should ever cost. */
const MAX_TEXT_BYTES = 256 * 1024;
/** To find a line all before it must be read; 50 MB take about 0.1 s. */
const MAX_FILE_BYTES = 50_000_000;

const readInput = z.strictObject({
  path: z.string().min(1).describe("File in the workspace, relative to its root."),
  offset: z.int().min(1).default(1).describe("First line to read, counted from 1."),
  limit: z.int().min(1).optional().describe("Most lines to read. Without it: as many as fit."),
});
type ReadInput = z.output<typeof readInput>;

/**
 * The tool `read`.
 * @param deps.denied absolute paths of the product's own files and folders, see Workspace.
 */
export function makeReadTool(deps: Pick<Workspace, "denied" | "means">): Tool<ReadInput> {
  return {
    name: "read",
    description:
      "Reads a text file of the workspace. Gives at most 256 KiB; a longer file says at its end how to go on with offset.",
    input: readInput,
    effect: "read",
    timeoutMs: 30_000,
    async run(input, context) {
      await using opened = await openInside({ ...deps, root: context.workspace }, input.path);
      if (opened.kind === "folder")
        throw new ToolError(`"${shown(input.path)}" is a folder. Use list to see what is in it.`);
      return await readText(opened, input, context.signal);
    },
  };
}

async function readText(file: OpenedFile, input: ReadInput, signal: AbortSignal): Promise<string> {
  const name = shown(input.path);
  if (file.sizeBytes > MAX_FILE_BYTES) {
    throw new ToolError(`"${name}" has ${file.sizeBytes} bytes; read takes files up to ${MAX_FILE_BYTES} bytes.`);
  }
  if (await isBinary(file.handle)) throw new ToolError(`"${name}" is not a text file (${file.sizeBytes} bytes).`);
  const wish = { skip: input.offset - 1, maxLines: input.limit ?? Number.POSITIVE_INFINITY, maxBytes: MAX_TEXT_BYTES };
  const span = await readSpan(file.handle, wish, signal);
  if (span.lines === 0) return nothingRead(span, input);
  return withNotice(span, input.offset);
}

function nothingRead(span: Span, input: ReadInput): string {
  if (input.offset === 1) return "[the file is empty]";
  throw new ToolError(`"${shown(input.path)}" ends before line ${input.offset}: it has ${span.passed} lines.`);
}

function withNotice(span: Span, first: number): string {
  if (span.stopped === "end") return span.text;
  const last = first + span.lines - 1;
  const next = `go on with offset ${last + 1}`;
  const notice =
    span.stopped === "cut"
      ? `line ${last} is longer than ${MAX_TEXT_BYTES} bytes and is cut here; ${next} for the line after it`
      : `lines ${first} to ${last}; more follows, ${next}`;
  return `${span.text}${span.text.endsWith("\n") ? "" : "\n"}[${notice}]`;
}
