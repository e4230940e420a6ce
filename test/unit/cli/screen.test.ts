import fc from "fast-check";
import { expect, test } from "vitest";
import { makeScreen } from "../../../src/cli/chat/screen.ts";
import { makeOutput } from "../../../src/cli/shell.ts";
import { keyboard } from "./fake-host.ts";
import { terminal } from "./terminal.ts";

function open(columns = 40) {
  const shown = terminal(columns);
  const keys = keyboard();
  const heard: string[] = [];
  const screen = makeScreen({
    input: keys,
    out: makeOutput(shown.stream, { NO_COLOR: "1" }),
    on: {
      message: (text) => heard.push(text),
      interrupt: () => heard.push("<interrupt>"),
      left: () => heard.push("<left>"),
    },
  });
  /** Resolves when the keys have been worked off: readline reads them in the stream's own time. */
  const type = async (text: string) => {
    keys.write(text);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { screen, shown, type, heard, [Symbol.dispose]: () => screen.close() };
}

test("finished text stands above the prompt, which keeps what was typed", async () => {
  using it = open();
  await it.type("half a");
  await it.screen.say("an answer\nof two lines");
  await it.type(" word");
  expect(it.shown.lines()).toEqual(["an answer", "of two lines", "> half a word"]);
  await it.type("\r");
  expect(it.heard).toEqual(["half a word"]);
});

test("what was typed over several rows survives a text above it", async () => {
  using it = open(10);
  await it.type("0123456789abcdefghij");
  await it.screen.say("news");
  expect(it.shown.lines()).toEqual(["news", "> 01234567", "89abcdefgh", "ij"]);
  await it.screen.say("more");
  expect(it.shown.lines()).toEqual(["news", "more", "> 01234567", "89abcdefgh", "ij"]);
  expect(it.shown.cursor()).toEqual([4, 2]);
});

test("a growing text hides the empty prompt and gives it back at its end", async () => {
  using it = open();
  await it.screen.grow("one");
  await it.screen.grow(" two");
  expect(it.shown.lines()).toEqual(["one two"]);
  await it.screen.settle();
  expect(it.shown.lines()).toEqual(["one two", ">"]);
});

test("who types while a text grows sees what they type; whole lines go on above it, the rest at the end", async () => {
  using it = open();
  await it.screen.grow("one ");
  await it.type("/st");
  await it.screen.grow("two\nthree");
  expect(it.shown.lines()).toEqual(["one", "two", "> /st"]);
  await it.type("op\r");
  await it.screen.grow(" four");
  expect(it.shown.lines()).toEqual(["one", "two", "> /stop", "three four"]);
  await it.screen.settle();
  expect(it.shown.lines()).toEqual(["one", "two", "> /stop", "three four", ">"]);
  expect(it.heard).toEqual(["/stop"]);
});

test("a line said while a text grows breaks it, and it goes on below", async () => {
  using it = open();
  await it.screen.grow("one");
  await it.screen.say("· read file");
  await it.screen.grow("two");
  await it.screen.settle();
  expect(it.shown.lines()).toEqual(["one", "· read file", "two", ">"]);
});

test("settling without a growing text changes nothing", async () => {
  using it = open();
  await it.screen.settle();
  expect(it.shown.lines()).toEqual([">"]);
});

test("pasted lines are one message, sent by Enter", async () => {
  using it = open();
  await it.type("\x1b[200~one\rtwo\rthree\x1b[201~");
  expect(it.heard).toEqual([]);
  await it.type("!\r");
  expect(it.heard).toEqual(["one\ntwo\nthree!"]);
});

test("Ctrl-C clears what was typed, and only then means stop", async () => {
  using it = open();
  await it.type("half\x1b[D\x03");
  expect(it.heard).toEqual([]);
  expect(it.shown.lines()).toEqual([">"]);
  await it.type("\x03");
  expect(it.heard).toEqual(["<interrupt>"]);
});

test("Ctrl-D at an empty prompt leaves, and the terminal is left clean", async () => {
  using it = open();
  await it.screen.say("bye");
  await it.type("\x04");
  expect(it.heard).toEqual(["<left>"]);
  it.screen.close();
  expect(it.shown.lines()).toEqual(["bye", ""]);
});

type Act = { say: string } | { grow: string } | { type: string } | "settle";
const words = fc.stringMatching(/^[a-z \n]{1,25}$/);
const act: fc.Arbitrary<Act> = fc.oneof(
  words.map((text) => ({ say: text.replaceAll("\n", "") })),
  words.map((grow) => ({ grow })),
  // Letters, also many at once as from a paste, and keys that move the cursor: left, home, end.
  fc.stringMatching(/^[a-z]{1,25}$/).map((type) => ({ type })),
  fc.constantFrom("\x1b[D", "\x01", "\x05", "x\x1b[D", "abc\x01").map((type) => ({ type })),
  fc.constant("settle" as const),
);

async function perform(it: ReturnType<typeof open>, act: Act): Promise<void> {
  if (act === "settle") await it.screen.settle();
  else if ("say" in act) await it.screen.say(act.say);
  else if ("grow" in act) await it.screen.grow(act.grow);
  else await it.type(act.type);
}

const saidBy = (act: Act) => (act === "settle" ? "" : "say" in act ? act.say : "grow" in act ? act.grow : "");
const typedBy = (act: Act) => (act !== "settle" && "type" in act ? act.type : "");
/** A held rest of a growing text comes after what was said meanwhile, so letters are counted, not their order. */
const KEYS = new RegExp(`${String.fromCharCode(27)}.D`, "g");
const letters = (text: string) => [...text.replaceAll(KEYS, "").replaceAll(/[^a-z]/g, "")].sort().join("");

test("whatever is said, grown and typed in whatever order: nothing is lost, doubled or written over", async () => {
  const columns = fc.integer({ min: 8, max: 30 });
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 15 }), columns, async (acts, width) => {
      using it = open(width);
      for (const one of [...acts, "settle" as const]) await perform(it, one);
      const all = it.shown.lines().join("");
      const prompt = all.lastIndexOf(">");
      expect(letters(all.slice(0, prompt))).toBe(letters(acts.map(saidBy).join("")));
      expect(letters(all.slice(prompt))).toBe(letters(acts.map(typedBy).join("")));
    }),
    { numRuns: 300 },
  );
});
