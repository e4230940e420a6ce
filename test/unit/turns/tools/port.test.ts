// Proves that whatever a tool call does, the model gets a result (Q15.1), and that only an abort ends it otherwise.
import { expect, test, vi } from "vitest";
import { z } from "zod";
import { Aborted, ToolError } from "../../../../src/kernel/errors.ts";
import { runTool, type Tool, type ToolContext, toolSpec } from "../../../../src/turns/tools/port.ts";
import { fakeClock } from "../../../support/clock.ts";

function makeTool(run: Tool<{ word: string }>["run"], timeoutMs = 1000): Tool<{ word: string }> {
  const input = z.strictObject({ word: z.string().default("none").describe("Any word.") });
  return { name: "say", description: "Says a word.", input, effect: "read", timeoutMs, run };
}

const echo = makeTool(async ({ word }) => `said ${word}`);
const never = () => new Promise<never>(() => {});

function setUp(tool: Tool<{ word: string }> = echo) {
  const clock = fakeClock();
  const abort = new AbortController();
  const context: ToolContext = { workspace: "/workspace", signal: abort.signal };
  const call = (input: string, name = "say") => runTool([tool], { id: "1", name, input }, context, clock);
  return { clock, abort, call };
}

test("the text a tool returns is the result, and its input is what the schema made of the JSON", async () => {
  const { call } = setUp();
  expect(await call('{"word":"hello"}')).toEqual({ text: "said hello", isError: false });
  expect(await call("{}")).toEqual({ text: "said none", isError: false });
  expect(await call(" ")).toEqual({ text: "said none", isError: false });
});

test("an unknown tool is an error that names the tools there are (Q15.1)", async () => {
  const { call } = setUp();
  expect(await call("{}", "shout")).toEqual({ text: 'There is no tool "shout". Tools: say.', isError: true });
  const none = await runTool(
    [],
    { id: "1", name: "say", input: "{}" },
    { workspace: "/", signal: new AbortController().signal },
    fakeClock(),
  );
  expect(none).toEqual({ text: 'There is no tool "say". Tools: none.', isError: true });
});

test.each(["{", "{'word':1}", '{"word":"cut', "hello"])(
  "bad JSON is an error and the tool does not run: %s (Q15.1)",
  async (input) => {
    const run = vi.fn(echo.run);
    const { call } = setUp(makeTool(run));
    expect(await call(input)).toEqual({
      text: expect.stringMatching(/^The input of say must be a JSON object: /),
      isError: true,
    });
    expect(run).not.toHaveBeenCalled();
  },
);

test.each(['{"word":1}', "[]", "null", '"word"', "7", '{"words":"x"}', '{"__proto__":{"word":"x"}}'])(
  "JSON of the wrong shape is an error and the tool does not run: %s (Q15.1)",
  async (input) => {
    const run = vi.fn(echo.run);
    const { call } = setUp(makeTool(run));
    expect(await call(input)).toEqual({
      text: expect.stringMatching(/^The input of say does not fit:\n/),
      isError: true,
    });
    expect(run).not.toHaveBeenCalled();
  },
);

test.each([
  ["a ToolError", new ToolError("There is no such word."), "There is no such word."],
  ["an error", new TypeError("x is not a function"), "x is not a function"],
  ["an error without words", new RangeError(), "RangeError"],
  ["something that is no error", "a string", "a string"],
  ["nothing", undefined, "undefined"],
])("a tool that throws or rejects with %s gives an error result (Q15.1)", async (_what, thrown, text) => {
  const rejecting = makeTool(() => Promise.reject(thrown));
  const throwing = makeTool(() => {
    throw thrown;
  });
  for (const tool of [rejecting, throwing]) expect(await setUp(tool).call("{}")).toEqual({ text, isError: true });
});

test("a tool that does not end within its time is told to stop and gives an error result (Q15.1)", async () => {
  const seen: AbortSignal[] = [];
  const { clock, call } = setUp(
    makeTool((_input, { signal }) => {
      seen.push(signal);
      return never();
    }),
  );
  const ended = vi.fn();
  const result = call("{}").finally(ended);
  await clock.advance(999);
  expect(ended).not.toHaveBeenCalled();
  expect(seen[0]?.aborted).toBe(false);
  await clock.advance(1);
  expect(await result).toEqual({ text: "say did not end within 1000 ms and was stopped.", isError: true });
  expect(seen[0]?.reason).toBe("timeout");
});

test("a tool that fails after its time, or after the stop, disturbs nobody", async () => {
  const late = Promise.withResolvers<string>();
  const { clock, call } = setUp(makeTool(() => late.promise));
  const result = call("{}");
  await clock.advance(1000);
  await result;
  // An unhandled rejection would fail the test run.
  late.reject(new Error("too late"));
  await clock.advance(1);
});

test("the wall clock may jump without ending a tool early or late", async () => {
  const { clock, call } = setUp(makeTool(never));
  const ended = vi.fn();
  const result = call("{}").finally(ended);
  clock.jump(3_600_000);
  await clock.advance(999);
  expect(ended).not.toHaveBeenCalled();
  clock.jump(-7_200_000);
  await clock.advance(1);
  expect((await result).isError).toBe(true);
});

test("an abort ends the call with Aborted and its reason, although the tool goes on", async () => {
  const seen: AbortSignal[] = [];
  const { clock, abort, call } = setUp(
    makeTool((_input, { signal }) => {
      seen.push(signal);
      return never();
    }),
  );
  const result = call("{}");
  abort.abort("stop");
  await expect(result).rejects.toMatchObject({ constructor: Aborted, reason: "stop" });
  expect(seen[0]?.aborted).toBe(true);
  expect(clock.waiting()).toBe(0);
});

test("a tool that fails because of the abort is an abort, not an error result", async () => {
  const { abort, call } = setUp(
    makeTool(
      (_input, { signal }) =>
        new Promise((_, reject) =>
          signal.addEventListener("abort", () => reject(new Error("interrupted")), { once: true }),
        ),
    ),
  );
  const result = call("{}");
  abort.abort("stop");
  await expect(result).rejects.toBeInstanceOf(Aborted);
});

test("a call that begins aborted does not run the tool", async () => {
  const run = vi.fn(echo.run);
  const { abort, clock, call } = setUp(makeTool(run));
  abort.abort("stop");
  await expect(call("{}")).rejects.toBeInstanceOf(Aborted);
  expect(run).not.toHaveBeenCalled();
  expect(clock.waiting()).toBe(0);
});

test("no timer waits after a call, however it ended", async () => {
  for (const tool of [echo, makeTool(() => Promise.reject(new Error("no")))]) {
    const { clock, call } = setUp(tool);
    await call("{}");
    expect(clock.waiting()).toBe(0);
  }
});

test("the model sees name, description and the schema of what it has to write", () => {
  expect(toolSpec(echo)).toEqual({
    name: "say",
    description: "Says a word.",
    schema: {
      type: "object",
      properties: { word: { type: "string", default: "none", description: "Any word." } },
      additionalProperties: false,
    },
  });
});
