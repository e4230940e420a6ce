import { writeFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { settingsFor, TOKEN } from "../support/host.ts";
import { calls, callsThenSays, hangs, type Puppet, says, startPuppet } from "./puppet.ts";
import { ask, ended, eventually, type Json, last, send, startWorld, type WireMessage, type World } from "./world.ts";

// One home and several hosts on it, each killed at another moment of a turn. The tests build on each other, in this order.

let puppet: Puppet;
let world: World;

beforeAll(async () => {
  puppet = await startPuppet();
  // Each message has a turn of its own here: steer.test.ts has what joins a turn that a kill cuts.
  world = await startWorld(settingsFor(puppet.baseUrl, "queue: { mode: followup }"));
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await puppet?.stop();
});

const people = (messages: readonly WireMessage[]) =>
  messages.filter(({ role }) => role === "user").map(({ content }) => content);
const toolTexts = (messages: readonly WireMessage[]) =>
  messages.filter(({ role }) => role === "tool").map(({ content }) => content);

async function steps(command: number): Promise<string[]> {
  const { body } = await world.host().api("queue.show", { id: command });
  return body.steps.map(({ name, state }: Json) => `${name} ${state}`);
}

test("killed in mid-turn it goes on after the last finished step: the tool is not run again, each message stands once (G1, G10)", async () => {
  const note = `${world.home}/workspace/note.txt`;
  await writeFile(note, "as it was\n");
  puppet.on("read the note", (response, messages) => {
    const after = messages.slice(messages.findLastIndex(({ role }) => role === "user"));
    if (!after.some(({ role }) => role === "tool")) return calls(["read", { path: "note.txt" }])(response, messages);
    return puppet.asked("read the note").length === 2
      ? hangs(response, messages)
      : says("The note is read.")(response, messages);
  });
  await ask(world.host(), "before");
  const command = await send(world.host(), "read the note");
  const later = await send(world.host(), "after");
  await eventually("the second model call hangs", () => puppet.asked("read the note").length === 2);
  await world.host().kill();
  // A second run of the tool would show.
  await writeFile(note, "as it is now\n");
  await world.start();

  expect(await ended(world.host(), command)).toMatchObject({ state: "done", text: "The note is read." });
  expect(await ended(world.host(), later)).toMatchObject({ state: "done", text: "re: after" });
  const [first, second, third] = puppet.asked("read the note");
  expect(puppet.asked("read the note")).toHaveLength(3);
  expect(third).toEqual(second);
  expect(toolTexts(third ?? [])).toEqual(["as it was\n"]);
  expect(people(first ?? [])).toEqual(["before", "read the note"]);
  expect(people(third ?? [])).toEqual(["before", "read the note"]);
  expect(puppet.asked("after").map(people)).toEqual([["before", "read the note", "after"]]);
  expect(await steps(command)).toEqual(["model done", "read done", "model unknown", "model done"]);
});

test("an answer that was there before the kill is still there, unread, and is not made again (G1, G5)", async () => {
  const { body } = await world.host().api("history");
  expect(body.items.map(({ text, state }: Json) => [text, state])).toEqual([
    ["before", "done"],
    ["re: before", "ready"],
    ["read the note", "done"],
    ["after", "done"],
    ["The note is read.", "ready"],
    ["re: after", "ready"],
  ]);
  expect(puppet.asked("before")).toHaveLength(1);
});

test("a stateless request of the OpenAI door ends cancelled with its host and is never run again", async () => {
  puppet.on("stateless", hangs);
  const request = fetch(`${world.host().address}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "laneway", messages: [{ role: "user", content: "stateless" }] }),
  }).catch(() => undefined);
  await eventually("the model is asked", () => puppet.asked("stateless").length === 1);
  await world.host().kill();
  await request;
  await world.start({ LANEWAY_CRASH_AT: "commit.before:step#2" });
  const { body } = await world.host().api("queue.list", { all: true });
  expect(body.commands.at(-1)).toMatchObject({ preview: "stateless", state: "cancelled" });
  expect(puppet.asked("stateless")).toHaveLength(1);
});

const TWO_TOOLS: [string, object][] = [
  ["read", { path: "note.txt" }],
  ["list", { path: "." }],
];

/** The tools and their results in the last request to these words. */
function lastResults(words: string): string[] {
  return toolTexts(last(puppet.asked(words)));
}

test("a tool in flight at the kill has an unknown outcome and is not repeated; the next one, never begun, is run (G10)", async () => {
  puppet.on("two tools, first cut", callsThenSays(TWO_TOOLS, "Both told."));
  // This host dies when it would note the end of the first tool.
  const command = await send(world.host(), "two tools, first cut", { chat: "tools" });
  expect(await world.host().ended).toMatchObject({ signal: "SIGKILL" });
  // The first `step` of the next host is the end of the tool that is left, the fourth the end of the second tool below.
  await world.start({ LANEWAY_CRASH_AT: "commit.before:step#4" });
  expect(await ended(world.host(), command)).toMatchObject({ state: "done", text: "Both told." });
  expect(lastResults("two tools, first cut")).toEqual([
    expect.stringContaining("its outcome is unknown. It was not repeated"),
    expect.stringContaining("note.txt"),
  ]);
  expect(await steps(command)).toEqual(["model done", "read unknown", "list done", "model done"]);
});

test("what a tool had given before the kill is kept when only the next one was in flight (G10)", async () => {
  puppet.on("two tools, second cut", callsThenSays(TWO_TOOLS, "Both told."));
  const command = await send(world.host(), "two tools, second cut", { chat: "tools" });
  expect(await world.host().ended).toMatchObject({ signal: "SIGKILL" });
  await world.start();
  expect(await ended(world.host(), command)).toMatchObject({ state: "done", text: "Both told." });
  expect(lastResults("two tools, second cut").slice(-2)).toEqual([
    "as it is now\n",
    expect.stringContaining("its outcome is unknown. It was not repeated"),
  ]);
  expect(people(last(puppet.asked("two tools, second cut")))).toEqual([
    "two tools, first cut",
    "two tools, second cut",
  ]);
});
