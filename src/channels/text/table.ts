// Owns: a table as lines of equal columns for a monospaced font. Pure, for every platform.

export type Alignment = "left" | "center" | "right" | null;

/** East Asian wide and fullwidth blocks (Unicode TR 11), in whole ranges: exact enough to align a table. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u;
const EMOJI = /^\p{RGI_Emoji}$/v;
const PLAIN = /^[\x20-\x7e]*$/;
const GRAPHEMES = new Intl.Segmenter("en", { granularity: "grapheme" });
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
  const widths = alignments.map((_, column) => Math.max(...[0, ...rows.map((row) => columnsOf(row[column] ?? ""))]));
  const width = widths.reduce((sum, one) => sum + one + BETWEEN.length, -BETWEEN.length);
  if (width > maxColumns) return undefined;
  const lines = rows.map((row) =>
    widths.map((columns, column) => padded(row[column] ?? "", columns, alignments[column] ?? null)).join(BETWEEN),
  );
  const rule = widths.map((columns) => "-".repeat(columns)).join("-+-");
  return [...lines.slice(0, 1), rule, ...lines.slice(1)].map((line) => line.trimEnd()).join("\n");
}

function padded(text: string, columns: number, alignment: Alignment): string {
  const missing = columns - columnsOf(text);
  const before = alignment === "right" ? missing : alignment === "center" ? Math.floor(missing / 2) : 0;
  return " ".repeat(before) + text + " ".repeat(missing - before);
}

function columnsOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  return Array.from(GRAPHEMES.segment(text), ({ segment }) => graphemeColumns(segment)).reduce((a, b) => a + b, 0);
}

function graphemeColumns(grapheme: string): number {
  if (/^\p{M}+$/u.test(grapheme)) return 0;
  return WIDE.test(grapheme) || EMOJI.test(grapheme) ? 2 : 1;
}
