// Owns: the two forms of every listing: lines of JSON, or a table for people.
import { EXIT, type ExitCode } from "../../kernel/errors.ts";
import type { JsonOption, Shell } from "../shell.ts";
import { jsonLine } from "./json.ts";
import { paint } from "./paint.ts";
import { type Column, table } from "./table.ts";

interface Listing<Row> extends JsonOption {
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  /** What is said instead of an empty table; a program gets no line at all. */
  readonly none: string;
}

/** Writes the listing; always 0, an empty one is no failure. */
export async function writeListing<Row>({ out }: Pick<Shell, "out">, listing: Listing<Row>): Promise<ExitCode> {
  const { rows, columns, none, json } = listing;
  if (json) await out.write(rows.map(jsonLine).join(""));
  else await out.write(rows.length === 0 ? `${paint(out, "dim", none)}\n` : table(out, columns, rows));
  return EXIT.ok;
}

/** The clock's time where people read at once, for relative times; `undefined` in a pipe. */
export function readersNow({ out, clock }: Pick<Shell, "out" | "clock">): number | undefined {
  return out.isTerminal ? clock.now() : undefined;
}
