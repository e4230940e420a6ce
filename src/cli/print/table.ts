// Owns: aligned tables and blocks of facts for people. Whatever comes in, no cell can act on the terminal (FILE-R3).
import { visible } from "../../kernel/visible.ts";
import { clipTo, widthOf } from "../../kernel/width.ts";
import type { Output } from "../shell.ts";
import { type Paint, paint } from "./paint.ts";

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => string | number | undefined;
  readonly right?: true;
  readonly paint?: (row: Row) => Paint | undefined;
}

type Look = Pick<Output, "colour" | "columns">;
const GAP = "  ";

/** Lines of a table with a head, or "" without rows. On a terminal the last column is cut to what fits. */
export function table<Row>(look: Look, columns: readonly Column<Row>[], rows: readonly Row[]): string {
  if (rows.length === 0) return "";
  const texts = rows.map((row) => columns.map(({ cell }) => visible(String(cell(row) ?? ""))));
  const used = columns.map((_, index) => texts.some((line) => line[index] !== ""));
  const widths = columns.map(({ title }, index) =>
    Math.max(widthOf(title), ...texts.map((line) => widthOf(line[index] ?? ""))),
  );
  const line = (cells: readonly string[], paintOf: (index: number) => Paint | undefined) => {
    const shown = cells.map((text, index) => ({ text, index })).filter(({ index }) => used[index]);
    let left = look.columns() ?? Number.POSITIVE_INFINITY;
    const padded = shown.map(({ text, index }, place) => {
      const isLast = place === shown.length - 1;
      const fitting = isLast ? clipTo(text, Math.max(left, widthOf(columns[index]?.title ?? ""))) : text;
      left -= (widths[index] ?? 0) + GAP.length;
      const space = " ".repeat(Math.max(0, (widths[index] ?? 0) - widthOf(fitting)));
      const painted = paint(look, paintOf(index), fitting);
      if (columns[index]?.right) return space + painted;
      return isLast ? painted : painted + space;
    });
    return `${padded.join(GAP).trimEnd()}\n`;
  };
  const head = line(
    columns.map(({ title }) => title),
    () => "bold",
  );
  const body = rows.map((row, at) => line(texts[at] ?? [], (index) => columns[index]?.paint?.(row)));
  return head + body.join("");
}

/** `name  value` lines, aligned; a fact without a value is left out. */
export function facts(look: Look, pairs: readonly (readonly [string, string | number | undefined])[]): string {
  const known = pairs.filter(([, value]) => value !== undefined && value !== "");
  const width = Math.max(0, ...known.map(([name]) => widthOf(name)));
  return known
    .map(([name, value]) => {
      return `${paint(look, "dim", name.padEnd(width))}${GAP}${visible(String(value))}\n`;
    })
    .join("");
}
