// Proves that spans of lines lose nothing and say truly why they end.
import { open } from "node:fs/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readSpan } from "../../../../src/turns/tools/lines.ts";
import { temporaryFolder } from "../../../support/files.ts";

const { signal } = new AbortController();

test("for any file and any limits the spans one after the other are the file, line by line", async () => {
  await using folder = await temporaryFolder();
  const line = fc.string({ unit: fc.constantFrom("a", "é", "😀", "\r"), maxLength: 12 });
  const limits = fc.record({ maxLines: fc.integer({ min: 1, max: 5 }), maxBytes: fc.integer({ min: 64, max: 200 }) });
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 30 }), fc.boolean(), limits, async (lines, ended, limit) => {
      const text = lines.join("\n") + (ended ? "\n" : "");
      await using handle = await open(await folder.write("file", text));
      let joined = "";
      for (let skip = 0; ; ) {
        const span = await readSpan(handle, { skip, ...limit }, signal);
        expect(span.lines).toBeLessThanOrEqual(limit.maxLines);
        expect(Buffer.byteLength(span.text)).toBeLessThanOrEqual(limit.maxBytes);
        joined += span.text;
        skip += span.lines;
        if (span.stopped === "end") break;
        expect(span.lines).toBeGreaterThan(0);
      }
      expect(joined).toBe(text);
    }),
    { numRuns: 150 },
  );
});

test("lines and characters that lie across the borders of chunks stay whole", async () => {
  await using folder = await temporaryFolder();
  const chunk = 64 * 1024;
  for (const before of [chunk - 2, chunk - 1, chunk]) {
    const text = `${"x".repeat(before - 1)}\n😀é\nend`;
    await using handle = await open(await folder.write("file", text));
    const span = await readSpan(handle, { skip: 1, maxLines: 1, maxBytes: 1000 }, signal);
    expect(span).toEqual({ text: "😀é\n", lines: 1, passed: 1, stopped: "lines" });
    const all = await readSpan(handle, { skip: 0, maxLines: 10, maxBytes: 2 * chunk }, signal);
    expect(all).toEqual({ text, lines: 3, passed: 0, stopped: "end" });
  }
});

test("no more is read than the span and a chunk", async () => {
  await using folder = await temporaryFolder();
  await using handle = await open(await folder.write("file", "x\n".repeat(1_000_000)));
  let furthest = 0;
  const watched = new Proxy(handle, {
    get: (target, key) =>
      key === "read"
        ? async (buffer: Buffer, offset: number, length: number, position: number) => {
            const result = await target.read(buffer, offset, length, position);
            furthest = Math.max(furthest, position + result.bytesRead);
            return result;
          }
        : Reflect.get(target, key),
  });
  await readSpan(watched, { skip: 10_000, maxLines: 10, maxBytes: 1000 }, signal);
  expect(furthest).toBeLessThanOrEqual(20_000 + 1000 + 64 * 1024);
});
