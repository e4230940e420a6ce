import { describe, expect, test } from "vitest";
import type { Attachment } from "../../../src/channels/port.ts";
import { from, type IntakeRig, makeIntakeRig, message } from "./intake-rig.ts";

// What the platform has cut into several events, and what a person changes afterwards (Q1.7, Q7.5).

const photo = (ref: string): Attachment => ({ kind: "image", ref, name: undefined, mediaType: "image/jpeg", bytes: 9 });
const LONG = "x".repeat(4_096);

const view = (host: IntakeRig) =>
  host.messages().map((one) => {
    const { refs, attachments } = host.extraOf(one);
    return { text: one.text, refs, files: attachments.map(({ ref }) => ref) };
  });

describe("pieces", () => {
  test.each([{ batches: 1 }, { batches: 3 }])(
    "an album of $batches batches is one message with all captions, files and ids",
    async ({ batches }) => {
      await using host = await makeIntakeRig();
      const pieces = [1, 2, 3].map((n) =>
        message(n === 2 ? "" : `caption ${n}`, { ref: `r${n}`, album: "trip", attachments: [photo(`f${n}`)] }),
      );
      if (batches === 1) await host.take(pieces);
      else for (const piece of pieces) await host.take([piece]);
      expect(view(host)).toEqual([
        { text: "caption 1\ncaption 3", refs: ["r1", "r2", "r3"], files: ["f1", "f2", "f3"] },
      ]);
    },
  );

  test("the window slides with each piece: none is claimed while pieces come, and 1.5 s after the last one it goes", async () => {
    await using host = await makeIntakeRig();
    for (const ref of ["r1", "r2", "r3"]) {
      await host.take([message("", { ref, album: "trip", attachments: [photo(ref)] })]);
      await host.rig.pass(1_400);
      expect(host.rig.claims).toEqual([]);
    }
    await host.rig.pass(100);
    expect(host.rig.claims).toEqual(host.messages().map(({ id }) => id));
    expect([...host.rig.works.values()].map(({ command }) => host.extraOf(command).refs)).toEqual([["r1", "r2", "r3"]]);
  });

  test("what comes when it was claimed already is a message of its own, and nothing is lost", async () => {
    await using host = await makeIntakeRig();
    await host.take([message("a", { ref: "r1", album: "trip", attachments: [photo("f1")] })]);
    await host.rig.pass(1_500);
    await host.take([message("", { ref: "r2", album: "trip", attachments: [photo("f2")] })]);
    expect(view(host).map(({ refs }) => refs)).toEqual([["r1"], ["r2"]]);
  });

  test("a message without album goes at once", async () => {
    await using host = await makeIntakeRig();
    await host.take([message("hello")]);
    expect(host.rig.claims).toHaveLength(1);
  });

  test("a long paste that the platform has split is one message; what comes after its last piece is another", async () => {
    await using host = await makeIntakeRig();
    await host.take([message(LONG, { ref: "r1", full: true }), message(LONG, { ref: "r2", full: true })]);
    await host.take([message("the end", { ref: "r3" }), message("and another thing", { ref: "r4" })]);
    expect(view(host).map(({ refs }) => refs)).toEqual([["r1", "r2", "r3"], ["r4"]]);
    expect(host.messages()[0]?.text).toBe(`${LONG}\n${LONG}\nthe end`);
  });

  test("a long message alone waits for a rest that does not come, and no later one joins it", async () => {
    await using host = await makeIntakeRig();
    await host.take([message(LONG, { full: true })]);
    await host.rig.pass(1_500);
    await host.take([message("another")]);
    expect(view(host)).toHaveLength(2);
  });

  test("a paste without end is cut into messages of at most 100 000 characters, and nothing of it is lost", async () => {
    await using host = await makeIntakeRig();
    await host.take(Array.from({ length: 60 }, () => message(LONG, { full: true })));
    const texts = host.messages().map(({ text }) => text);
    expect(Math.max(...texts.map(({ length }) => length))).toBeLessThanOrEqual(100_000);
    expect(texts.join("").replaceAll("\n", "")).toHaveLength(60 * LONG.length);
  });

  test("pieces of two people, of two chats and of two albums stay apart", async () => {
    const rules = { groups: { "-7": { mention: false, allow: undefined } } };
    await using host = await makeIntakeRig({ rules });
    const group = { chat: "-7", chatKind: "group" } as const;
    await host.take([from("5", LONG, { ...group, full: true }), from("6", "short", group), from("5", "rest", group)]);
    await host.take([
      message("a", { album: "x" }),
      message("b", { album: "y" }),
      message("c", { album: "x", thread: "2" }),
    ]);
    expect(view(host).map(({ text }) => text.slice(0, 3))).toEqual(["xxx", "sho", "a", "b", "c"]);
    expect(host.messages()[0]?.text).toBe(`${LONG}\nrest`);
  });

  test("a piece that comes twice is joined once (G2)", async () => {
    await using host = await makeIntakeRig();
    const pieces = [1, 2].map((n) => message(`${n}`, { ref: `r${n}`, album: "trip" }));
    await host.take(pieces);
    await host.take(pieces);
    expect(view(host)).toEqual([{ text: "1\n2", refs: ["r1", "r2"], files: [] }]);
  });

  test("a joined piece takes no place of its own at the cap (G15)", async () => {
    await using host = await makeIntakeRig({ settings: { cap: 1 } });
    await host.take(Array.from({ length: 10 }, (_, n) => message(`${n}`, { album: "trip" })));
    expect(host.messages()[0]?.text).toBe("0\n1\n2\n3\n4\n5\n6\n7\n8\n9");
    expect(host.parts("1")).toEqual([]);
  });
});

describe("an edit", () => {
  const edit = (text: string, ref: string, fields = {}) => message(text, { kind: "edit", ref, ...fields });

  /** The first message holds the session, so that the second waits. */
  async function withWaiting() {
    const host = await makeIntakeRig();
    await host.take([message("first", { ref: "r1" }), message("second", { ref: "r2" })]);
    return host;
  }

  test("of a message that nobody has begun changes it", async () => {
    await using host = await withWaiting();
    await host.take([edit("better", "r2")]);
    expect(host.messages().map(({ text }) => text)).toEqual(["first", "better"]);
  });

  test("of a message that is worked on or answered is a message of its own, once for each text", async () => {
    await using host = await withWaiting();
    await host.take([edit("first, better", "r1")]);
    await host.take([edit("first, better", "r1")]);
    expect(host.messages().map(({ text }) => text)).toEqual(["first", "second", "(Edited) first, better"]);
  });

  test.each([
    { what: "that changes no text", text: "second", ref: "r2" },
    { what: "of a message that the host does not know", text: "new", ref: "r99" },
    { what: "that takes the text away", text: "", ref: "r2" },
    { what: "that writes a command into an old message", text: "/stop", ref: "r2" },
  ])("$what does nothing", async ({ text, ref }) => {
    await using host = await withWaiting();
    await host.take([edit(text, ref)]);
    expect(host.messages().map((one) => one.text)).toEqual(["first", "second"]);
    expect(host.parts("1")).toEqual([]);
  });

  test("by somebody else than the author does nothing (ID-3, ID-R6)", async () => {
    const rules = { groups: { "-7": { mention: false, allow: undefined } } };
    await using host = await makeIntakeRig({ rules });
    const group = { chat: "-7", chatKind: "group" } as const;
    await host.take([from("5", "one", { ...group, ref: "r1" }), from("5", "two", { ...group, ref: "r2" })]);
    await host.take([from("6", "forged", { ...group, ref: "r2", kind: "edit" })]);
    expect(host.messages().map(({ text }) => text)).toEqual(["one", "two"]);
  });

  test("of one piece of a joined paste changes nothing; of an album's caption changes its text and keeps its files", async () => {
    await using host = await withWaiting();
    await host.take([message(LONG, { ref: "p1", full: true }), message("rest", { ref: "p2" })]);
    await host.take([message("caption", { ref: "a1", album: "x", attachments: [photo("f1")] })]);
    await host.take([message("", { ref: "a2", album: "x", attachments: [photo("f2")] })]);
    await host.take([edit("changed", "p2"), edit("a better caption", "a1")]);
    const [, , paste, album] = view(host);
    expect(paste?.text).toBe(`${LONG}\nrest`);
    expect(album).toEqual({ text: "a better caption", refs: ["a1", "a2"], files: ["f1", "f2"] });
  });

  test("at the cap is refused as any message is (G15)", async () => {
    await using host = await makeIntakeRig({ settings: { cap: 1 } });
    await host.take([message("first", { ref: "r1" })]);
    await host.take([message("second", { ref: "r2" })]);
    await host.take([edit("first, better", "r1")]);
    expect(host.parts("1").map(({ text }) => text)).toEqual([expect.stringContaining("Not taken")]);
  });
});
