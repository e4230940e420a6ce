// Owns: a table as lines of equal columns for a monospaced font. Pure, for every platform.

import { widthOf } from "../../kernel/width.ts";

export type Alignment = "left" | "center" | "right" | null;

const BETWEEN = " | ";

/**
 * The rows as aligned lines with a rule under the first, or undefined when they are wider than `maxColumns`: such lines wrap on a
 * telephone and cannot be read.
 * @param rows the header first, all equally long
 */
export function alignTable(
  rows: readonly (readonly string[])[],
  alignments: readonly Alignment[],
  maxColumns: number,
): string | undefined {
  const widths = alignments.map((_, column) => Math.max(...[0, ...rows.map((row) => widthOf(row[column] ?? ""))]));
  const width = widths.reduce((sum, one) => sum + one + BETWEEN.length, -BETWEEN.length);
  if (width > maxColumns) return undefined;
  const lines = rows.map((row) =>
    widths.map((columns, column) => padded(row[column] ?? "", columns, alignments[column] ?? null)).join(BETWEEN),
  );
  const rule = widths.map((columns) => "-".repeat(columns)).join("-+-");
  return [...lines.slice(0, 1), rule, ...lines.slice(1)].map((line) => line.trimEnd()).join("\n");
}

function padded(text: string, columns: number, alignment: Alignment): string {
  const missing = columns - widthOf(text);
  const before = alignment === "right" ? missing : alignment === "center" ? Math.floor(missing / 2) : 0;
  return " ".repeat(before) + text + " ".repeat(missing - before);
}
