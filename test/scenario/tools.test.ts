import { mkdir, writeFile } from "node:fs/promises";
import type { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  ask,
  type Json,
  oneBackend,
  startMock,
  startWorld,
  transcripts,
  type WireMessage,
  type World,
} from "./world.ts";

// One host whose model calls tools: what the model gets back, and that a turn ends with an answer whatever it calls.

let mock: LLMock;
let world: World;

beforeAll(async () => {
  mock = await startMock();
  world = await startWorld(oneBackend(mock, "budget: { iterations: 3 }"));
  const workspace = `${world.home}/workspace`;
  await mkdir(`${workspace}/notes`, { recursive: true });
  await writeFile(`${workspace}/notes/shopping.txt`, "milk\nbread\n");
  await writeFile(`${workspace}/plan.md`, "# The plan\n");
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await mock?.stop();
});

interface Call {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** The model answers these words with the calls, and their results with `text`. */
function script(words: string, toolCalls: Call[], text: string): void {
  mock.on({ userMessage: words, hasToolResult: false }, { toolCalls });
  mock.on({ userMessage: words, hasToolResult: true }, { content: text });
}

/** What the model was told by the tools that it had called after these words. */
function results(words: string): WireMessage[] {
  const all = transcripts(mock.getRequests()).filter((messages) => messages.some(({ content }) => content === words));
  return all.at(-1)?.filter((message) => message.role === "tool") ?? [];
}

test("the model reads and lists its workspace through the tools, both calls in one step (Q15.1)", async () => {
  script(
    "what must I buy?",
    [
      { id: "call_list", name: "list", arguments: '{"path":"."}' },
      { id: "call_read", name: "read", arguments: '{"path":"notes/shopping.txt"}' },
    ],
    "Milk and bread.",
  );
  expect(await ask(world.host(), "what must I buy?", { chat: "buy" })).toMatchObject({
    state: "done",
    text: "Milk and bread.",
  });
  const [listed, read] = results("what must I buy?");
  expect(listed).toMatchObject({ tool_call_id: "call_list", content: expect.stringContaining("plan.md") });
  expect(read).toMatchObject({ tool_call_id: "call_read", content: "milk\nbread\n" });

  const { body } = await world.host().api("queue.list", { all: true });
  const shown = await world.host().api("queue.show", { id: body.commands.at(-1).id });
  expect(shown.body.steps.map(({ kind, name, state }: Json) => [kind, name, state])).toEqual([
    ["model", "model", "done"],
    ["tool", "list", "done"],
    ["tool", "read", "done"],
    ["model", "model", "done"],
  ]);
});

test("nothing outside the workspace is read; the refusal goes to the model, not to the person (FILE-R1)", async () => {
  const paths = ["../laneway.yaml", "../laneway.db", "/etc/passwd", `${world.home}/host.json`];
  script(
    "read what is outside",
    paths.map((path, i) => ({ id: `call_${i}`, name: "read", arguments: JSON.stringify({ path }) })),
    "It was refused.",
  );
  const end = await ask(world.host(), "read what is outside", { chat: "outside" });
  expect(end.text).toBe("It was refused.");
  const told = results("read what is outside").map((message) => message.content);
  expect(told).toHaveLength(4);
  for (const text of told) expect(text).not.toMatch(/root:|backends:|SQLite|"pid"/);
});

test("a tool that does not exist and an input that does not fit become results, and the turn goes on (Q15.1)", async () => {
  script(
    "use what there is not",
    [
      { id: "call_a", name: "teleport", arguments: "{}" },
      { id: "call_b", name: "read", arguments: '{"file":"plan.md"}' },
      { id: "call_c", name: "read", arguments: '{"path":' },
    ],
    "Nothing worked.",
  );
  expect((await ask(world.host(), "use what there is not", { chat: "unknown" })).text).toBe("Nothing worked.");
  const told = results("use what there is not").map((message) => message.content);
  expect(told[0]).toContain('There is no tool "teleport". Tools: read, list.');
  expect(told[1]).toContain("The input of read does not fit");
  expect(told[2]).toContain("must be a JSON object");
});

test("a model that never stops calling tools gets one last call without tools, and its person an answer (Q18.1)", async () => {
  mock.on(
    { predicate: (request) => isAbout(request, "for ever") && (request.tools?.length ?? 0) > 0 },
    { toolCalls: [{ id: "call_again", name: "list", arguments: "{}" }] },
  );
  mock.on({ predicate: (request) => isAbout(request, "for ever") }, { content: "This is how far I came." });
  const end = await ask(world.host(), "for ever", { chat: "ever" });
  expect(end.state).toBe("done");
  expect(end.text).toMatch(/^This is how far I came\.\n\n\(.*budget\.iterations/);
  const requests = mock.getRequests().filter(({ body }) => isAbout(body as Json, "for ever"));
  expect(requests.map(({ body }) => ((body as Json).tools ?? []).length > 0)).toEqual([true, true, false]);
});

test("an answer is never empty, even when the last call asks for tools again (Q18.1)", async () => {
  mock.on(
    { predicate: (request) => isAbout(request, "stubborn") && !isAbout(request, "and then?") },
    { toolCalls: [{ id: "call_again", name: "list", arguments: "{}" }] },
  );
  const end = await ask(world.host(), "stubborn", { chat: "stubborn" });
  expect(end.state).toBe("done");
  expect(end.text).toContain("I used up the model calls of this turn before I had an answer.");
  expect(mock.getRequests().filter(({ body }) => isAbout(body as Json, "stubborn"))).toHaveLength(3);

  mock.onMessage("and then?", { content: "then nothing" });
  await ask(world.host(), "and then?", { chat: "stubborn" });
  const next = transcripts(mock.getRequests()).at(-1) ?? [];
  // What was never run must not look as if its outcome were unknown.
  expect(JSON.stringify(next)).not.toMatch(/outcome is unknown|not known/);
  expect(next.filter((message) => message.role === "tool")).toHaveLength(2);
});

function isAbout(request: { messages?: { content: unknown }[] }, words: string): boolean {
  return request.messages?.some(({ content }) => content === words) ?? false;
}
