// Proves that a text of any kind is cut into messages within the limits, with nothing lost but blanks at the cuts (Q7.1).
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Span, splitText } from "../../../src/channels/text/split.ts";

interface Named extends Span {
  readonly name: string;
}

const RUNS = { numRuns: 400 };
const LIMITS = { units: 40, spans: 5 };
const GRAPHEMES = new Intl.Segmenter("en", { granularity: "grapheme" });

const bit = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      "word ",
      "end. ",
      "\n",
      "\n\n",
      "  ",
      "a",
      "漢字",
      "！",
      "no-spaces-at-all-in-this-one-",
    ),
  },
  { weight: 2, arbitrary: fc.constantFrom("👨‍👩‍👧", "🇩🇪", "é", "😀", "\u200b", "\u0301", "\t", "👍🏽") },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 5 }) },
);
const anyText = fc.array(bit, { maxLength: 60 }).map((bits) => bits.join(""));

/** Nested or disjoint spans: pairs of bounds taken from inside to outside. */
const textWithSpans = fc
  .tuple(anyText, fc.array(fc.tuple(fc.nat(1000), fc.nat(1000), fc.boolean()), { maxLength: 20 }))
  .map(([text, seeds]) => ({ text, spans: nested(text, seeds) }));

function nested(text: string, seeds: readonly (readonly [number, number, boolean])[]): Named[] {
  const kept: Named[] = [];
  for (const [a, b, whole] of seeds) {
    const [from, to] = [onBound(text, a), onBound(text, b)].toSorted((x, y) => x - y) as [number, number];
    const crosses = kept.some(
      (one) => (one.from < from && from < one.to && one.to < to) || (from < one.from && one.from < to && to < one.to),
    );
    if (from < to && !crosses) kept.push({ from, to, whole, name: `${kept.length}` });
  }
  return kept;
}

/** Not inside a surrogate pair. */
function onBound(text: string, seed: number): number {
  const at = seed % (text.length + 1);
  return /[\ud800-\udbff]/.test(text.charAt(at - 1)) && /[\udc00-\udfff]/.test(text.charAt(at)) ? at - 1 : at;
}

/** What is seen of a text, without blanks: they may go at the cuts. */
function seen(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, "");
}

function splitsPair(text: string): boolean {
  return !text.isWellFormed();
}

function checkPieces(
  text: string,
  pieces: readonly { readonly text: string; readonly spans: readonly Span[] }[],
  limits = LIMITS,
): void {
  for (const piece of pieces) {
    expect(piece.text.length).toBeLessThanOrEqual(limits.units);
    expect(piece.text).toMatch(/[^\s\p{C}]/u);
    expect(piece.text).not.toMatch(/^[\s\p{Cc}]|[\s\p{Cc}]$/u);
    expect(piece.spans.length).toBeLessThanOrEqual(limits.spans);
    if (text.isWellFormed()) expect(splitsPair(piece.text)).toBe(false);
    for (const { from, to } of piece.spans) {
      expect(from).toBeGreaterThanOrEqual(0);
      expect(to).toBeGreaterThan(from);
      expect(to).toBeLessThanOrEqual(piece.text.length);
      if (text.isWellFormed()) expect(splitsPair(piece.text.slice(from, to))).toBe(false);
    }
    const sorted = piece.spans.toSorted((a, b) => a.from - b.from || b.to - a.to);
    expect(piece.spans).toEqual(sorted);
  }
}

function areNested(spans: readonly Span[]): boolean {
  return spans.every((a) => spans.every((b) => !(a.from < b.from && b.from < a.to && a.to < b.to)));
}

test("for any text each piece is within the limits, not blank, trimmed, without half characters (Q7.1)", () => {
  fc.assert(
    fc.property(textWithSpans, ({ text, spans }) => {
      const pieces = splitText(text, spans, LIMITS);
      checkPieces(text, pieces);
      for (const piece of pieces) expect(areNested(piece.spans)).toBe(true);
    }),
    RUNS,
  );
});

test("for any text the pieces together are the text, in order, but for blanks and what cannot be seen (Q7.1)", () => {
  fc.assert(
    fc.property(textWithSpans, ({ text, spans }) => {
      const unseen = /[\p{C}\p{Default_Ignorable_Code_Point}\p{Z}\u2800]/gu;
      const joined = splitText(text, spans, LIMITS)
        .map((piece) => piece.text)
        .join("");
      expect(seen(joined).replace(unseen, "")).toBe(seen(text).replace(unseen, ""));
    }),
    RUNS,
  );
});

test("for any text each seen character keeps the spans it had, also behind a cut (Q7.1)", () => {
  fc.assert(
    fc.property(textWithSpans, ({ text, spans }) => {
      const few = spans.slice(0, LIMITS.spans);
      const before = marked(text, few);
      const after = splitText(text, few, LIMITS).flatMap((piece) => marked(piece.text, piece.spans));
      expect(after.join("\n")).toBe(before.join("\n"));
    }),
    RUNS,
  );
});

/** One line for each character that is seen: it, and the names of the spans on it. */
function marked(text: string, spans: readonly Named[]): string[] {
  const lines: string[] = [];
  for (let at = 0; at < text.length; at++) {
    const names = spans.filter(({ from, to }) => from <= at && at < to).map(({ name }) => name);
    if (/[^\s\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\p{M}\u2800]/u.test(text.charAt(at)))
      lines.push(`${text.charAt(at)} ${names.toSorted()}`);
  }
  return lines;
}

test("for any text that has no whitespace no grapheme is cut unless it is longer than a piece (Q7.1)", () => {
  const graphemes = fc.array(fc.constantFrom("👨‍👩‍👧", "🇩🇪", "e\u0301", "😀", "x", "👍🏽", "क्षि"), { maxLength: 80 });
  fc.assert(
    fc.property(graphemes, (some) => {
      const text = some.join("");
      const whole = Array.from(GRAPHEMES.segment(text), ({ segment }) => segment);
      const cut = splitText(text, [], LIMITS).flatMap((piece) =>
        Array.from(GRAPHEMES.segment(piece.text), ({ segment }) => segment),
      );
      expect(cut).toEqual(whole);
    }),
    RUNS,
  );
});

test("the same text gives the same pieces, and a piece is its own only piece", () => {
  fc.assert(
    fc.property(textWithSpans, ({ text, spans }) => {
      const pieces = splitText(text, spans, LIMITS);
      expect(splitText(text, spans, LIMITS)).toEqual(pieces);
      for (const piece of pieces) expect(splitText(piece.text, piece.spans, LIMITS)).toEqual([piece]);
    }),
    RUNS,
  );
});

test("control: a splitter that counts off units fails these properties", () => {
  const naive = (text: string) =>
    Array.from({ length: Math.ceil(text.length / LIMITS.units) }, (_, index) => ({
      text: text.slice(index * LIMITS.units, (index + 1) * LIMITS.units),
      spans: [],
    }));
  const outcome = fc.check(
    fc.property(anyText, (text) => checkPieces(text, naive(text))),
    RUNS,
  );
  expect(outcome.failed).toBe(true);
  expect(() => checkPieces("😀".repeat(30), naive(`a${"😀".repeat(30)}`))).toThrow();
});

test("a text within the limit is one piece, and nothing to see is none", () => {
  expect(splitText("short", [], LIMITS)).toEqual([{ text: "short", spans: [] }]);
  for (const text of ["", " \n\t ", "\u200b\u200d\ufeff", "\u2800\u3164"])
    expect(splitText(text, [], LIMITS)).toEqual([]);
});

test.each([
  ["paragraph", `${"a ".repeat(12)}b.\nx\n\n${"c ".repeat(15)}`, "\n\n"],
  ["line", `${"a. ".repeat(9)}b\n${"c. ".repeat(15)}`, "\n"],
  ["sentence", `${"a ".repeat(12)}b. ${"c ".repeat(15)}`, " "],
  ["word", `${"abc ".repeat(20)}`, " "],
])("a long text is cut at a bound of a %s", (_, text, gap) => {
  const [first, second] = splitText(text, [], LIMITS);
  expect(text.trimEnd().startsWith(`${first?.text}${gap}${second?.text}`)).toBe(true);
});

test("a block of code that fits into a piece is moved rather than cut, a longer one is cut and goes on in each", () => {
  const before = "before it there are words";
  const short = `${before}\n${"code\n".repeat(6)}`;
  const span = { from: before.length + 1, to: short.length - 1, whole: true, name: "pre" };
  expect(splitText(short, [span], LIMITS).map(({ text }) => text)).toEqual([before, "code\n".repeat(6).trim()]);
  const long = "code\n".repeat(30).trim();
  const pieces = splitText(long, [{ from: 0, to: long.length, whole: true, name: "pre" }], LIMITS);
  expect(pieces.length).toBeGreaterThan(2);
  for (const { text, spans } of pieces) expect(spans).toMatchObject([{ from: 0, to: text.length, name: "pre" }]);
});

test("in code a line without indent starts the next piece, because the indent at the start of a message is taken away", () => {
  const code = "def one():\n    a = 1\ndef two():\n    b = 2\n    c = 3\n    d = 4";
  const [, second] = splitText(code, [{ from: 0, to: code.length, whole: true, name: "pre" }], LIMITS);
  expect(second?.text).toMatch(/^def two/);
});

test("a piece ends before it would hold more spans than the platform takes", () => {
  const text = "a b c d e f g h i j k l";
  const spans = Array.from({ length: 12 }, (_, index) => ({
    from: index * 2,
    to: index * 2 + 1,
    whole: false,
    name: `${index}`,
  }));
  expect(splitText(text, spans, LIMITS).map((piece) => piece.spans.length)).toEqual([5, 5, 2]);
});
