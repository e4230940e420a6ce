// Proves that nothing unseen passes `visible`, and that what can be seen passes unchanged (INJ-3, FILE-R3).
import fc from "fast-check";
import { expect, test } from "vitest";
import { visible } from "../../../src/kernel/visible.ts";

/** All that a person cannot see or that acts on a terminal, written out by range and not by the property under test. */
const UNSEEN: readonly (readonly [what: string, from: number, to: number])[] = [
  ["C0 controls", 0x00, 0x1f],
  ["delete and C1 controls", 0x7f, 0x9f],
  ["soft hyphen", 0xad, 0xad],
  ["combining grapheme joiner", 0x34f, 0x34f],
  ["Arabic letter mark", 0x61c, 0x61c],
  ["Hangul fillers", 0x115f, 0x1160],
  ["Mongolian separators", 0x180b, 0x180f],
  ["zero width and marks of direction", 0x200b, 0x200f],
  ["line and paragraph separators, bidi embeddings and overrides", 0x2028, 0x202e],
  ["word joiner, invisible operators, bidi isolates", 0x2060, 0x206f],
  ["Hangul filler", 0x3164, 0x3164],
  ["half surrogates", 0xd800, 0xdfff],
  ["variation selectors", 0xfe00, 0xfe0f],
  ["byte order mark", 0xfeff, 0xfeff],
  ["half-width Hangul filler", 0xffa0, 0xffa0],
  ["interlinear annotation", 0xfff9, 0xfffb],
  ["musical formatting", 0x1d173, 0x1d17a],
  ["tags", 0xe0000, 0xe007f],
  ["variation selectors supplement", 0xe0100, 0xe01ef],
];

test.each(UNSEEN)("%s are shown as escapes (INJ-3)", (_what, from, to) => {
  for (let point = from; point <= to; point++) {
    expect(visible(`a${String.fromCodePoint(point)}b`)).toMatch(/^a\\(u\{[0-9a-f]+\}|[nrt])b$/);
  }
});

test("terminal escapes lose their power and stay readable (FILE-3)", () => {
  expect(visible("\u001b[31mred\u001b]0;title\u0007\u009b2J")).toBe("\\u{1b}[31mred\\u{1b}]0;title\\u{7}\\u{9b}2J");
});

test("text that claims to be two lines is shown on one (FILE-3)", () => {
  expect(visible("a\nb\r\nc\td")).toBe("a\\nb\\r\\nc\\td");
});

test("line feeds and tabs stay where the caller keeps them, and only they", () => {
  expect(visible("a\n\tb\r\u202e", "\n\t")).toBe("a\n\tb\\r\\u{202e}");
});

test("words hidden in tag characters behind an emoji come to light (INJ-3)", () => {
  const hidden = [..."rm"].map((letter) => String.fromCodePoint(0xe0000 + letter.charCodeAt(0))).join("");
  expect(visible(`😀${hidden}`)).toBe("😀\\u{e0072}\\u{e006d}");
});

test("ordinary text of any script and whole emoji stay as they are", () => {
  for (const text of ["", "Grüße, 漢字, עברית, हिन्दी", "👨‍👩‍👧 ⚠️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 1️⃣ 🇩🇪 👍🏽", "C:\\temp\\u{41}", "a b…—"]) {
    expect(visible(text)).toBe(text);
  }
});

test("for any text the result has nothing unseen in it outside whole emoji, and is its own result (INJ-3)", () => {
  const nasty = fc.constantFrom(
    ...UNSEEN.flatMap(([, from, to]) => [from, to]).map((one) => String.fromCodePoint(one)),
  );
  const text = fc.array(
    fc.oneof(nasty, fc.string({ unit: "binary", maxLength: 3 }), fc.constantFrom("😀", "⚠", "a", "1")),
  );
  fc.assert(
    fc.property(text, (pieces) => {
      const result = visible(pieces.join(""));
      const left = result.replaceAll(/\p{RGI_Emoji}/gv, "");
      for (const character of left) {
        const point = character.codePointAt(0) ?? 0;
        expect(UNSEEN.filter(([, from, to]) => from <= point && point <= to)).toEqual([]);
      }
      expect(visible(result)).toBe(result);
    }),
    { numRuns: 500 },
  );
});
