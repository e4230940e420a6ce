// Proves that whatever a model writes becomes messages that Telegram takes, with nothing lost, in bounded time (Q7.1).
import fc from "fast-check";
import { expect, test } from "vitest";
import type { RenderedPart } from "../../../src/channels/port.ts";
import { type TelegramEntity, telegramExtra } from "../../../src/channels/telegram/entities.ts";
import { renderTelegram } from "../../../src/channels/telegram/render.ts";

const RUNS = { numRuns: 300 };

const scrap = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.constantFrom(
      "word ",
      "a",
      "漢字",
      "😀",
      "👨‍👩‍👧",
      " ",
      "  ",
      "    ",
      "\n",
      "\n\n",
      "\t",
      "\u200b",
      "é",
      "\u0301",
    ),
  },
  {
    weight: 5,
    arbitrary: fc.constantFrom(
      "**",
      "*",
      "_",
      "~~",
      "`",
      "``",
      "```",
      "```js\n",
      "\n```\n",
      "# ",
      "> ",
      "- ",
      "1. ",
      "- [ ] ",
      "---\n",
    ),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "[",
      "](",
      ")",
      "![",
      "<",
      ">",
      "<b>",
      "https://x.org",
      "(http://x)",
      "a@b.org",
      "&lt;",
      "\\",
      "|",
      "\n|-|-|\n",
    ),
  },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 8 }) },
);
const scraps = fc.array(scrap, { maxLength: 60 }).map((some) => some.join(""));
/** Now and then repeated to many messages. */
const anyMarkdown = fc.oneof(
  { weight: 3, arbitrary: scraps },
  {
    weight: 1,
    arbitrary: fc
      .tuple(scraps, fc.integer({ min: 20, max: 300 }))
      .map(([text, times]) => text.repeat(times).slice(0, 100_000)),
  },
);

function entitiesOf(part: RenderedPart): readonly TelegramEntity[] {
  return telegramExtra.parse(JSON.parse(part.extra ?? "{}")).entities ?? [];
}

function fileOf(part: RenderedPart): string | undefined {
  return telegramExtra.parse(JSON.parse(part.extra ?? "{}")).file?.name;
}

function checkMessage(part: RenderedPart): void {
  expect(part.text.length).toBeLessThanOrEqual(4096);
  expect(part.text).toMatch(/[^\s\p{C}\p{Z}]/u);
  expect(part.text).not.toMatch(/^[\s\p{Cc}]|[\s\p{Cc}]$/u);
  expect(part.text.isWellFormed()).toBe(true);
  const entities = entitiesOf(part);
  expect(entities.length).toBeLessThanOrEqual(100);
  entities.forEach((one, index) => {
    checkEntity(part.text, one);
    for (const other of entities.slice(index + 1)) checkPair(one, other);
  });
}

function checkEntity(text: string, { offset, length }: TelegramEntity): void {
  expect(offset + length).toBeLessThanOrEqual(text.length);
  expect(text.slice(offset, offset + length).trim()).not.toBe("");
  expect(text.slice(offset, offset + length).isWellFormed()).toBe(true);
}

/** The rules of core.telegram.org/bots/api#formatting-options, `one` being listed before `other`. */
function checkPair(one: TelegramEntity, other: TelegramEntity): void {
  const sorted = one.offset < other.offset || (one.offset === other.offset && one.length >= other.length);
  if (!sorted) expect.fail(`not sorted: ${JSON.stringify([one, other])}`);
  if (other.offset >= one.offset + one.length) return;
  const rigid = ["code", "pre", "text_link"];
  const isNested = other.offset + other.length <= one.offset + one.length;
  const codeHoldsNothing = one.type !== "code" && one.type !== "pre";
  const codeInQuoteOnly = (other.type !== "code" && other.type !== "pre") || one.type === "blockquote";
  const linkIsNoPart = !(rigid.includes(one.type) && rigid.includes(other.type));
  if (!(isNested && codeHoldsNothing && codeInQuoteOnly && linkIsNoPart && one.type !== other.type)) {
    expect.fail(`not allowed within each other: ${JSON.stringify([one, other])}`);
  }
}

test("for any Markdown each message is one that Telegram takes as it is (Q7.1)", () => {
  fc.assert(
    fc.property(anyMarkdown, (markdown) => {
      const parts = renderTelegram(markdown);
      expect(parts.length).toBeLessThanOrEqual(20);
      for (const part of parts) if (fileOf(part) === undefined) checkMessage(part);
      expect(renderTelegram(markdown)).toEqual(parts);
    }),
    RUNS,
  );
});

test("control: one part with all of it, or parts counted off, fail the check", () => {
  const long = `${"😀 ".repeat(3000)}`;
  expect(() => checkMessage({ text: long, extra: undefined })).toThrow();
  expect(() => checkMessage({ text: `a${"😀".repeat(3000)}`.slice(0, 4096), extra: undefined })).toThrow();
  const crossing = [
    { type: "bold", offset: 0, length: 2 },
    { type: "italic", offset: 1, length: 2 },
  ];
  expect(() => checkMessage({ text: "abc", extra: JSON.stringify({ entities: crossing }) })).toThrow();
});

test("for any Markdown something is sent exactly when something can be seen", () => {
  fc.assert(
    fc.property(anyMarkdown, (markdown) => {
      const canBeSeen = /[^\s\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u.test(markdown.toWellFormed());
      expect(renderTelegram(markdown).length > 0).toBe(canBeSeen);
    }),
    RUNS,
  );
});

/** A document of known words: each is to be seen exactly once, in order, whatever it is wrapped in. */
const document = fc
  .array(fc.tuple(fc.nat(11), fc.integer({ min: 1, max: 60 })), { minLength: 1, maxLength: 25 })
  .map((blocks) => {
    let count = 0;
    const words = (many: number) => Array.from({ length: many }, () => `w${count++}x`);
    const texts = blocks.map(([kind, many]) => block(kind, words(many)));
    return { markdown: texts.join("\n\n"), words: Array.from({ length: count }, (_, index) => `w${index}x`) };
  });

function block(kind: number, words: readonly string[]): string {
  const [first = "", ...rest] = words;
  const text = words.join(" ");
  const forms = [
    text,
    `# ${text}`,
    `**${first}** ${rest.map((word) => `_${word}_`).join(" ")}`,
    `\`\`\`ts\n${words.join("\n")}\n\`\`\``,
    words.map((word) => `- ${word}`).join("\n"),
    words.map((word, index) => `${"  ".repeat(index % 4)}- ${word}`).join("\n"),
    words.map((word) => `> ${word}`).join("\n"),
    `| ${first} |\n|---|\n${rest.map((word) => `| ${word} |`).join("\n")}`,
    words.map((word) => `[${word}](https://x.org)`).join(" "),
    words.map((word) => `\`${word}\``).join(" "),
    `<div>\n${text}\n</div>`,
    words.map((word) => `1. **${word}**`).join("\n"),
  ];
  return forms[kind] ?? text;
}

test("for any document every word is shown once and in order (Q7.1)", () => {
  fc.assert(
    fc.property(document, ({ markdown, words }) => {
      const shown = renderTelegram(markdown)
        .map(({ text }) => text)
        .join("\n");
      expect(shown.match(/w\d+x/g)).toEqual(words);
    }),
    RUNS,
  );
});

test("for any document with long code the parts keep the order, and the file is the code (Q7.1)", () => {
  fc.assert(
    fc.property(document, fc.integer({ min: 6010, max: 20_000 }), ({ markdown, words }, units) => {
      const code = "code\n".repeat(units).slice(0, units).trimEnd();
      const parts = renderTelegram(`first\n\n\`\`\`py\n${code}\n\`\`\`\n\n${markdown}`);
      if (fileOf(parts[1] ?? { text: "", extra: undefined }) === "answer.md") return;
      expect(parts[0]).toEqual({ text: "first", extra: undefined });
      expect(parts[1]?.text).toBe(code);
      expect(
        parts
          .slice(1)
          .map(({ text }) => text)
          .join("\n")
          .match(/w\d+x/g),
      ).toEqual(words);
    }),
    RUNS,
  );
});

const HARD: readonly (readonly [what: string, unit: string, before?: string])[] = [
  ["backticks", "`"],
  ["backtick runs", "``a`"],
  ["brackets", "["],
  ["images", "!["],
  ["links without end", "[a](b"],
  ["open emphasis", "*a "],
  ["closed emphasis", "a**b"],
  ["emphasis of all kinds", "**_~~["],
  ["triple stars", "***a"],
  ["quotes", "> "],
  ["lists in lists", "1. "],
  ["quotes in lists", "> - "],
  ["lines of items", "- a\n"],
  ["quotes that go on lazily", "> a\nb\n"],
  ["quotes that go on lazily in each other", ">> a\n_`b\n"],
  ["rules of tables", "|-|\n"],
  ["rules of tables in lists", "- &|-|\n😀", "1. ".repeat(300)],
  ["rules of tables in quotes", "|-|\n>> c\na<**===\n"],
  ["tables of many rows", "a | b\n- | -\n"],
  ["tables of many columns", "a|", `${"a|".repeat(9000)}\n${"-|".repeat(9000)}\n`],
  ["rows of a wide table", "|\n", `${"a|".repeat(9000)}\n${"-|".repeat(9000)}\n`],
  ["definitions", "[a]: b\n"],
  ["empty headings", "#\n"],
  ["open tags", '<a b="'],
  ["comments", "<!--"],
  ["fences", "```\n"],
  ["backslashes", "\\"],
  ["combining marks", "\u0301"],
  ["joined emoji", "😀\u200d"],
  ["flags", "🇩"],
  ["nothing to see", "\u200b"],
];

test.each(HARD)(
  "100 kB of %s are rendered before the time of a test is over (Q7.1)",
  (_what, unit = "", before = "") => {
    const markdown = (before + unit.repeat(100_000)).slice(0, 100_000);
    const parts = renderTelegram(markdown);
    expect(parts.length).toBeLessThanOrEqual(20);
    for (const part of parts) if (fileOf(part) === undefined) checkMessage(part);
  },
  10_000,
);
