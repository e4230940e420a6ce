import { stripVTControlCharacters } from "node:util";
import fc from "fast-check";
import { expect, test } from "vitest";
import { jsonLine } from "../../../src/cli/print/json.ts";
import { paint } from "../../../src/cli/print/paint.ts";
import { type Column, facts, table } from "../../../src/cli/print/table.ts";
import { textLines } from "../../../src/cli/print/text.ts";
import { instantText, lengthText } from "../../../src/cli/print/words.ts";
import { clipTo, widthOf } from "../../../src/kernel/width.ts";

const pipe = { colour: false, columns: () => undefined };
const terminal = (columns: number) => ({ colour: true, columns: () => columns });

interface Row {
  id: number;
  name: string;
}
const COLUMNS: Column<Row>[] = [
  { title: "ID", right: true, cell: ({ id }) => id },
  { title: "NONE", cell: () => "" },
  { title: "NAME", cell: ({ name }) => name, paint: () => "red" },
];

test("a table is aligned, numbers to the right, and a column without values is left out", () => {
  const rows = [
    { id: 1, name: "a" },
    { id: 1234, name: "long name" },
  ];
  expect(table(pipe, COLUMNS, rows)).toBe("  ID  NAME\n   1  a\n1234  long name\n");
});

test("every line of a table begins its last column at the same place, whatever the scripts", () => {
  const columns: Column<{ name: string }>[] = [
    { title: "N", cell: ({ name }) => name },
    { title: "END", cell: () => "|" },
  ];
  const names = fc.array(
    fc.string({ unit: "grapheme", maxLength: 12 }).map((name) => ({ name })),
    { minLength: 1, maxLength: 5 },
  );
  fc.assert(
    fc.property(names, (rows) => {
      const starts = table(pipe, columns, rows)
        .trimEnd()
        .split("\n")
        .map((line, index) => widthOf(line.slice(0, index === 0 ? line.lastIndexOf("END") : line.lastIndexOf("|"))));
      expect(new Set(starts).size).toBe(1);
    }),
  );
});

test("no cell can act on the terminal: escapes, line ends and direction overrides become visible (FILE-R3)", () => {
  const text = table(pipe, COLUMNS, [{ id: 1, name: "a\x1b[31m\n\u202eb\x07" }]);
  expect(text).toContain("a\\u{1b}[31m\\n\\u{202e}b\\u{7}");
  expect(facts(pipe, [["name", "\x1b]0;x\x07"]])).not.toContain("\x1b");
});

test("on a terminal the last column is cut to the width, in a pipe nothing is", () => {
  const rows = [{ id: 1, name: "x".repeat(200) }];
  const lines = stripVTControlCharacters(table(terminal(20), COLUMNS, rows))
    .trimEnd()
    .split("\n");
  expect(lines[1]).toBe(` 1  ${"x".repeat(15)}…`);
  expect(table(pipe, COLUMNS, rows)).toContain("x".repeat(200));
});

test("colours are for terminals only", () => {
  expect(paint({ colour: true }, "red", "x")).toBe("\x1b[31mx\x1b[39m");
  expect(paint({ colour: false }, "red", "x")).toBe("x");
});

test("a fact without a value is left out", () => {
  expect(
    facts(pipe, [
      ["a", 1],
      ["bcd", "x"],
      ["none", undefined],
      ["empty", ""],
    ]),
  ).toBe("a    1\nbcd  x\n");
});

test("the width of wide characters, emoji and marks is what a terminal gives them", () => {
  expect(["abc", "日本", "👩‍💻", "e\u0301", "한글", ""].map(widthOf)).toEqual([3, 4, 2, 1, 4, 0]);
});

test("a clipped text never takes more columns than it may", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 1, max: 30 }), (text, columns) => {
      expect(widthOf(clipTo(text, columns))).toBeLessThanOrEqual(columns);
    }),
  );
});

test("a line of JSON means what was put in, is one line, and holds nothing that acts on a terminal", () => {
  fc.assert(
    fc.property(
      fc.string({
        unit: fc.constantFrom("a", '"', "\x1b", "\x9b", "\x7f", "\u202e", "\u2028", "\u200b", "\u{e0041}", "ß"),
      }),
      (text) => {
        const line = jsonLine({ text });
        expect(JSON.parse(line)).toEqual({ text });
        expect(line.slice(0, -1)).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      },
    ),
  );
});

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [1_000, "1 s"],
  [59_999, "59 s"],
  [60_000, "1 min"],
  [3_600_000, "1 h"],
  [47 * 3_600_000, "47 h"],
  [48 * 3_600_000, "2 d"],
])("%d ms are said as %s", (ms, said) => {
  expect(lengthText(ms)).toBe(said);
});

test("an instant is relative where somebody reads it now, else ISO 8601", () => {
  const at = "2026-01-01T00:00:00.000Z";
  const now = Date.parse(at) + 90_000;
  expect([instantText(at, now), instantText(at, now - 180_000), instantText(at, undefined)]).toEqual([
    "1 min ago",
    "in 1 min",
    at,
  ]);
  expect(instantText(undefined, now)).toBe("");
});

test("a text keeps its lines and the joiners of scripts, and loses every terminal escape", () => {
  expect(textLines("\na\r\n\tb\u200cc\x1b[2J\x9b1m\n\n")).toBe("a\n\tb\u200cc\\u{1b}[2J\\u{9b}1m");
});
