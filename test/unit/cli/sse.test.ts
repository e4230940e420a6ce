import fc from "fast-check";
import { expect, test } from "vitest";
import { makeSseParser, sseEvents } from "../../../src/cli/host/sse.ts";

const field = fc.stringMatching(/^[ -~äß\u{1f600}]{0,20}$/u);
const eventArb = fc.record({
  event: fc.constantFrom("item", "state", "delta", "message"),
  data: fc.array(field, { minLength: 1, maxLength: 3 }).map((lines) => lines.join("\n")),
  id: fc.option(fc.nat(), { nil: undefined }),
});

function written(events: readonly { event: string; data: string; id: number | undefined }[], end: string): string {
  return events
    .map(({ event, data, id }) => {
      const lines = [...(id === undefined ? [] : [`id: ${id}`]), `event: ${event}`];
      return [": a comment", ...lines, ...data.split("\n").map((line) => `data: ${line}`), "", ""].join(end);
    })
    .join("");
}

test("events come out the same however the bytes are cut into chunks", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(eventArb, { maxLength: 6 }),
      fc.constantFrom("\n", "\r\n", "\r"),
      fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
      async (events, end, sizes) => {
        const bytes = new TextEncoder().encode(written(events, end));
        async function* chunks() {
          for (let at = 0; at < bytes.length; ) {
            const size = sizes.next().value ?? 1;
            yield bytes.subarray(at, at + size);
            at += size;
          }
          // With bare CRs the last event is complete only when the next character is no LF.
          yield new TextEncoder().encode(":");
        }
        const found = await Array.fromAsync(sseEvents(chunks()));
        expect(found.map(({ event, data }) => ({ event, data }))).toEqual(
          events.map(({ event, data }) => ({ event, data })),
        );
        const lastId = events.findLast(({ id }) => id !== undefined)?.id;
        if (events.length > 0) expect(found.at(-1)?.lastId).toBe(lastId === undefined ? "" : String(lastId));
      },
    ),
  );
});

test("what is not a whole event is not given: a comment, an event without data, one that was cut off", () => {
  const parse = makeSseParser();
  expect(parse(": ping\n\nevent: item\n\ndata: cut")).toEqual([]);
  expect(parse(" off\n")).toEqual([]);
  expect(parse("\n")).toEqual([{ event: "message", data: "cut off", lastId: "" }]);
});

test("an id lasts until the next one, and one with a NUL does not count", () => {
  const parse = makeSseParser();
  const ids = (text: string) => parse(text).map(({ lastId }) => lastId);
  expect(ids("id: 5\ndata: a\n\ndata: b\n\nid: 6\0\ndata: c\n\nid\ndata: d\n\n")).toEqual(["5", "5", "5", ""]);
});

test("only one blank after the colon belongs to the form", () => {
  expect(makeSseParser()("data:a\n\ndata:  b\n\n").map(({ data }) => data)).toEqual(["a", " b"]);
});
