// Proves what `read` shows of a file it may read. What it may read is proved in workspace.test.ts and confinement.test.ts.
import { truncate } from "node:fs/promises";
import { expect, test } from "vitest";
import { toolSpec } from "../../../../src/turns/tools/port.ts";
import { makeReadTool } from "../../../../src/turns/tools/read.ts";
import { temporaryFolder } from "../../../support/files.ts";
import { callTool } from "../../../support/tools.ts";

const read = makeReadTool({ denied: [] });
const CAP = 256 * 1024;

async function readOf(content: string | Uint8Array, input: object = {}) {
  await using folder = await temporaryFolder();
  await folder.write("file.txt", content);
  return await callTool(read, { path: "file.txt", ...input }, folder.path);
}

test("a text file is shown as it is, byte order mark aside", async () => {
  for (const text of ["one", "one\n", "one\r\ntwo\n\n", "\n", "Grüße 漢字 😀\n", "\u001b[31m"]) {
    expect(await readOf(text)).toEqual({ text, isError: false });
  }
  expect((await readOf("\ufeffone")).text).toBe("one");
});

test("offset and limit choose lines, and the notice says how to go on", async () => {
  const text = "1\n2\n3\n4\n5";
  expect((await readOf(text, { offset: 2, limit: 2 })).text).toBe(
    "2\n3\n[lines 2 to 3; more follows, go on with offset 4]",
  );
  expect((await readOf(text, { offset: 4, limit: 2 })).text).toBe("4\n5");
  expect((await readOf(text, { offset: 5 })).text).toBe("5");
  expect((await readOf("1\n2\n", { limit: 2 })).text).toBe("1\n2\n");
});

test("an offset behind the end is refused with the number of lines", async () => {
  for (const [text, lines] of [
    ["1\n2\n", 2],
    ["1\n2", 2],
    ["1", 1],
    ["\n", 1],
  ] as const) {
    const result = await readOf(text, { offset: 3 });
    expect(result).toEqual({ text: `"file.txt" ends before line 3: it has ${lines} lines.`, isError: true });
  }
});

test("a long file is cut at a line below 256 KiB, and the spans together are the file", async () => {
  const text = Array.from({ length: 20_000 }, (_, index) => `line ${index} ${"x".repeat(index % 60)}\n`).join("");
  let offset = 1;
  let joined = "";
  for (let calls = 0; calls < 10; calls++) {
    const { text: shown } = await readOf(text, { offset });
    const [, span = shown, next] =
      shown.match(/^([\s\S]*\n)\[lines \d+ to \d+; more follows, go on with offset (\d+)\]$/) ?? [];
    expect(Buffer.byteLength(span)).toBeLessThanOrEqual(CAP);
    joined += span;
    if (next === undefined) break;
    offset = Number(next);
  }
  expect(joined).toBe(text);
});

test("a line longer than 256 KiB is cut between characters, and the next line can be reached", async () => {
  const text = `${"é".repeat(CAP)}\nsecond\n`;
  const first = await readOf(`a${text}`);
  expect(first.text).toBe(
    `a${"é".repeat(CAP / 2 - 1)}\n[line 1 is longer than ${CAP} bytes and is cut here; go on with offset 2 for the line after it]`,
  );
  expect((await readOf(text, { offset: 2 })).text).toBe("second\n");
});

test("an empty file is said to be empty", async () => {
  expect(await readOf("")).toEqual({ text: "[the file is empty]", isError: false });
});

test("a binary file is refused plainly", async () => {
  const image = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 0, 0, 13]);
  expect(await readOf(image)).toEqual({ text: '"file.txt" is not a text file (8 bytes).', isError: true });
});

test("bytes that are not UTF-8, and a NUL further down, are shown as replaced", async () => {
  expect((await readOf(new Uint8Array([0x61, 0xff, 0xfe, 0x62]))).text).toBe("a\u{fffd}\u{fffd}b");
  expect((await readOf(`${"a\n".repeat(5000)}\0end`, { offset: 5001 })).text).toBe("\u{fffd}end");
});

test("a folder is refused with the hint to list it", async () => {
  await using folder = await temporaryFolder();
  await folder.write("sub/file.txt", "");
  const result = await callTool(read, { path: "sub" }, folder.path);
  expect(result).toEqual({ text: '"sub" is a folder. Use list to see what is in it.', isError: true });
});

test("the last line of a file of 50 MB can be read, a larger one is refused", { timeout: 60_000 }, async () => {
  await using folder = await temporaryFolder();
  const line = `${"x".repeat(99)}\n`;
  const file = await folder.write("file.txt", line.repeat(500_000));
  expect((await callTool(read, { path: "file.txt", offset: 500_000 }, folder.path)).text).toBe(line);
  await truncate(file, 50_000_001);
  expect((await callTool(read, { path: "file.txt" }, folder.path)).text).toMatch(
    /^"file.txt" has 50000001 bytes; read takes/,
  );
});

test("reading stops when its signal aborts", async () => {
  await using folder = await temporaryFolder();
  await folder.write("file.txt", "x\n".repeat(100_000));
  const signal = AbortSignal.abort("stopped");
  const input = { path: "file.txt", offset: 100_000 };
  await expect(read.run(input, { workspace: folder.path, signal })).rejects.toBe("stopped");
});

test("a name in an error is escaped and shortened, and no path of the host is in it (FILE-R3)", async () => {
  await using folder = await temporaryFolder();
  const { text } = await callTool(read, { path: `no\u001b[2J\n\u202e${"y".repeat(400)}` }, folder.path);
  expect(text).toMatch(/^"no\\u\{1b\}\[2J\\n\\u\{202e\}y{100,200}…"/);
  for (const path of ["missing", "missing/x", "z".repeat(300)]) {
    const result = await callTool(read, { path }, folder.path);
    expect(result.text).not.toMatch(/\/proc|\/tmp|laneway-/);
  }
});

test("input that does not fit is refused: no path, line 0, a word for a number, an unknown key", async () => {
  for (const input of [
    {},
    { path: "" },
    { path: "x", offset: 0 },
    { path: "x", limit: "all" },
    { path: "x", lines: 3 },
  ]) {
    expect(await callTool(read, input, "/nowhere")).toEqual({
      text: expect.stringMatching(/does not fit/),
      isError: true,
    });
  }
});

test("the model sees a plain JSON schema in which only the path is required", () => {
  const { schema } = toolSpec(read);
  expect(schema).toMatchObject({ type: "object", required: ["path"], additionalProperties: false });
  expect(schema).not.toHaveProperty("$schema");
});
