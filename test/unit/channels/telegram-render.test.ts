// Proves what each construct of Markdown becomes on Telegram: text that people read and entities on it, never markup to parse.
import { expect, test } from "vitest";
import type { RenderedPart } from "../../../src/channels/port.ts";
import { telegramExtra } from "../../../src/channels/telegram/entities.ts";
import { renderTelegram } from "../../../src/channels/telegram/render.ts";

function extraOf(part: RenderedPart | undefined) {
  return telegramExtra.parse(JSON.parse(part?.extra ?? "{}"));
}

/** The text of the only part, and each entity as `type: what it covers`. */
function shown(markdown: string): { text: string | undefined; marks: string[] } {
  const parts = renderTelegram(markdown);
  expect(parts.length).toBeLessThanOrEqual(1);
  const text = parts[0]?.text;
  const marks = (extraOf(parts[0]).entities ?? []).map((entity) => {
    const more = "url" in entity ? ` → ${entity.url}` : "language" in entity ? ` (${entity.language})` : "";
    return `${entity.type}: ${text?.slice(entity.offset, entity.offset + entity.length)}${more}`;
  });
  return { text, marks };
}

test.each<[what: string, markdown: string, text: string, ...marks: string[]]>([
  ["a heading is bold", "# Title\n\ntext", "Title\n\ntext", "bold: Title"],
  [
    "strong, emphasis and strikethrough",
    "**b** *i* _j_ ~~s~~",
    "b i j s",
    "bold: b",
    "italic: i",
    "italic: j",
    "strikethrough: s",
  ],
  ["styles within each other", "**b _bi_**", "b bi", "bold: b bi", "italic: bi"],
  ["the same style within itself is one", "# a **b** c", "a b c", "bold: a b c"],
  ["code in a line", "use `a < b`", "use a < b", "code: a < b"],
  ["styles stop at code and go on behind it", "**b `c` d**", "b c d", "bold: b ", "code: c", "bold:  d"],
  ["a fenced block has its language", "```py\nx = 1\n```", "x = 1", "pre: x = 1 (py)"],
  [
    "a block of code in a list keeps its own indent",
    "- a\n\n  ```\n  if x:\n    y\n  ```",
    "• a\n\nif x:\n  y",
    "pre: if x:\n  y",
  ],
  ["an indented block is code", "a\n\n    b", "a\n\nb", "pre: b"],
  ["a link", "[a *b*](https://x.org/?q=1&amp;r=2)", "a b", "text_link: a b → https://x.org/?q=1&r=2", "italic: b"],
  ["code in a link is text", "[`f`](https://x.org)", "f", "text_link: f → https://x.org"],
  [
    "a reference link, its definition stays to be read",
    "[a][1]\n\n[1]: https://x.org",
    "a\n\n[1]: https://x.org",
    "text_link: a → https://x.org",
  ],
  ["a link to an app of Telegram", "[a](tg://resolve?domain=b)", "a", "text_link: a → tg://resolve?domain=b"],
  ["bare addresses stay text", "https://x.org <https://y.org> a@b.org", "https://x.org https://y.org a@b.org"],
  ["an image is a link", "![alt](https://x.org/a.png)", "alt", "text_link: alt → https://x.org/a.png"],
  ["an image without words is its address", "![](https://x.org/a.png)", "https://x.org/a.png"],
  ["bullets by depth", "- a\n  - b\n    - c\n- d", "• a\n  ◦ b\n    ▪ c\n• d"],
  ["numbers go on from the first", "3. a\n4. b", "3. a\n4. b"],
  ["boxes of tasks", "- [ ] a\n- [x] b", "☐ a\n☑ b"],
  ["an item of several lines is indented", "- a\n  b", "• a\n  b"],
  ["a quote", "> a **b**\n\nc", "a b\n\nc", "blockquote: a b", "bold: b"],
  ["a quote in a quote is marked by a character", "> a\n> > b\n> > c", "a\n\n> b\n> c", "blockquote: a\n\n> b\n> c"],
  ["code in a quote", "> a\n>\n> ```\n> b\n> ```", "a\n\nb", "blockquote: a\n\nb", "pre: b"],
  ["a rule", "a\n\n---\n\nb", "a\n\n———\n\nb"],
  ["line breaks stay", "a\nb  \nc", "a\nb\nc"],
  ["escapes and references", "\\*a\\* &lt;b&gt; &#39;&#x41; &mdash; &unknown;", "*a* <b> 'A — &unknown;"],
  ["a mention stays text", "@all @everyone [x](tg://user?id=1)", "@all @everyone x (tg://user?id=1)"],
  ["windows line ends", "a\r\n\r\nb", "a\n\nb"],
])("%s", (_what, markdown, text, ...marks) => {
  expect(shown(markdown)).toEqual({ text, marks });
});

test.each([
  ["a script", "[a](javascript:alert)", "a (javascript:alert)"],
  ["a file", "[a](file:///etc/passwd)", "a (file:///etc/passwd)"],
  ["data", "![a](data:text/html,x)", "a (data:text/html,x)"],
  ["a path", "[main.ts](src/main.ts)", "main.ts (src/main.ts)"],
  ["a path that is its own label", "[src/main.ts](src/main.ts)", "src/main.ts"],
  ["a host that Telegram refuses", "[here](http://localhost:3000/x)", "here (http://localhost:3000/x)"],
  ["mail, which Telegram turns into a web page", "[write](mailto:a@b.org)", "write (a@b.org)"],
  ["a scheme in disguise", "[a](JaVaScRiPt:alert)", "a (JaVaScRiPt:alert)"],
  ["a scheme behind a reference", "[a](java&#115;cript:alert)", "a (javascript:alert)"],
  ["credentials without a host", "[a](http:///x.org)", "a (http:///x.org)"],
  [
    "an address of thousands of characters",
    `[a](https://x.org/${"y".repeat(2100)})`,
    `a (https://x.org/${"y".repeat(2100)})`,
  ],
])("a link to %s is plain text with its address (INJ-2, Q7)", (_what, markdown, text) => {
  expect(shown(markdown)).toEqual({ text, marks: [] });
});

test.each([
  "<b>bold</b> <script>alert(1)</script> <a href='javascript:x'>y</a>",
  'write to <anna> or <a@b> & "c"',
  "<div>\n**not bold**\n</div>",
  "<!-- hidden -->",
])("HTML and names in angle brackets are shown as they are: %s (Q7.2)", (markdown) => {
  expect(shown(markdown)).toEqual({ text: markdown, marks: [] });
});

test("an address in angle brackets is shown without them (Q7.2)", () => {
  expect(shown("Anna <anna@example.org> wrote").text).toBe("Anna anna@example.org wrote");
});

test("a table is aligned in a monospaced block, wide characters counted as two", () => {
  const { text, marks } = shown("| name | n |\n|:--|--:|\n| 漢字 | 1 |\n| **b** 😀 | 22 |");
  expect(text).toBe(["name |  n", "-----+---", "漢字 |  1", "b 😀 | 22"].join("\n"));
  expect(marks).toEqual([`pre: ${text}`]);
});

test("a table too wide for a telephone is written as records, with its links", () => {
  const { text, marks } = shown(`| a | b |\n|---|---|\n| ${"x".repeat(70)} | [c](https://x.org) |\n| d | e |`);
  expect(text).toBe(`a: ${"x".repeat(70)}\nb: c\n\na: d\nb: e`);
  expect(marks).toContain("text_link: c → https://x.org");
});

test("offsets count UTF-16 units", () => {
  expect(extraOf(renderTelegram("😀👨‍👩‍👧 **b**")[0]).entities).toEqual([{ type: "bold", offset: 11, length: 1 }]);
});

test.each(["", " \n\t\n", "\u200b", "\ufeff\u2060", "\u2800", "\u0000\u0007", "\u3164"])(
  "nothing to see gives no message: %j",
  (markdown) => {
    expect(renderTelegram(markdown)).toEqual([]);
  },
);

test.each(["```\n```", "[](", "&#8203;", "#", "> "])(
  "an answer of nothing but markup is shown as it is rather than not at all: %j",
  (markdown) => {
    expect(renderTelegram(markdown)).toEqual([{ text: markdown.trim(), extra: undefined }]);
  },
);

test("half surrogates, which Telegram refuses, become the replacement character", () => {
  expect(shown("a\ud83d b").text).toBe("a\ufffd b");
});

test("a long block of code goes as a file between the text before and behind it", () => {
  const code = "print('x')\n".repeat(600).trim();
  const parts = renderTelegram(
    `before\n\n\`\`\`python\n${code}\n\`\`\`\n\nafter\n\n\`\`\`../evil.exe\n${code}\n\`\`\``,
  );
  expect(parts.map(({ text }) => text)).toEqual(["before", code, "after", code]);
  expect(parts.map((part) => extraOf(part).file?.name)).toEqual([undefined, "code-1.py", undefined, "code-2.txt"]);
});

test("a block of code that is cut is code with its language in each part (Q7.1)", () => {
  const parts = renderTelegram(`\`\`\`ts\n${"const a = 1;\n".repeat(400)}\`\`\``);
  expect(parts.length).toBe(2);
  for (const part of parts) {
    expect(extraOf(part).entities).toEqual([{ type: "pre", offset: 0, length: part.text.length, language: "ts" }]);
  }
});

test("a long answer is cut at paragraphs, and nothing of it is missing (Q7.1, Q7.6)", () => {
  const paragraphs = Array.from({ length: 40 }, (_, index) => `${index} ${"word ".repeat(100)}end.`);
  const parts = renderTelegram(paragraphs.join("\n\n"));
  expect(parts.length).toBeGreaterThan(4);
  expect(parts.map(({ text }) => text).join("\n\n")).toBe(paragraphs.join("\n\n"));
});

test("an answer of more than 20 parts is its start, a note and a file of all of it (guarantee: at most 20 parts, then a file)", () => {
  const markdown = `**start** ${"word ".repeat(18_000)}end`;
  const [first, file, ...rest] = renderTelegram(markdown);
  expect(rest).toEqual([]);
  expect(first?.text).toMatch(/^start word .*\n\n\(.*attached as answer\.md\.\)$/);
  expect(first?.text.length).toBeLessThanOrEqual(4096);
  expect(extraOf(first).entities?.[0]).toEqual({ type: "bold", offset: 0, length: 5 });
  expect(file?.text).toBe(markdown);
  expect(extraOf(file).file).toEqual({ name: "answer.md" });
});

test("an answer of megabytes is not parsed but goes as a file", () => {
  const markdown = `# start\n\n${"x".repeat(5_000_000)}`;
  expect(renderTelegram(markdown).map(({ text }) => text.length)).toEqual([expect.any(Number), markdown.length]);
});

test("each message leaves room for the line that says that it is sent again (G4)", () => {
  const parts = renderTelegram(`${"word ".repeat(2_000)}${"x".repeat(9_000)}`);
  expect(parts.length).toBeGreaterThan(4);
  for (const { text } of parts) {
    expect(`(sent again: the first try was not confirmed)\n${text}`.length).toBeLessThanOrEqual(4_096);
  }
});
