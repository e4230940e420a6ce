import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { settingsFor } from "../support/host.ts";
import { chunk, DONE, sendStream } from "../support/model-endpoint.ts";
import { type Behaviour, calls, hangs, type Puppet, startPuppet } from "./puppet.ts";
import { ask, type Ended, ended, eventually, last, send, startWorld, type World } from "./world.ts";

// One host with small limits. All the calls that hang do so at the same time, each in a chat of its own.

const LIMITS =
  "turns: { firstTokenMs: 3000, idleMs: 3000, attemptTimeoutMs: 7000, turnTimeoutMs: 12000, graceMs: 1000, attempts: 1 }";

let puppet: Puppet;
let world: World;
const open = new Map<string, ServerResponse>();
const ends = new Map<string, Ended>();

/** Keeps the response, so that the test can speak when the host has given up; writes `pieces` at once. */
const begins =
  (words: string, ...pieces: string[]): Behaviour =>
  (response) => {
    open.set(words, response);
    if (pieces.length > 0) sendStream(response, ...pieces);
  };

/** One more token every half second, for ever. */
const drips: Behaviour = (response) => {
  sendStream(response, chunk({ role: "assistant", content: "drip " }));
  const timer = setInterval(() => response.write(chunk({ content: "drip " })), 500);
  response.on("close", () => clearInterval(timer));
};

/** Takes a second over each call of a tool and never comes to an end. */
const goesRound: Behaviour = async (response, messages) => {
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  await calls(["list", {}])(response, messages);
};

const CASES: Readonly<Record<string, Behaviour>> = {
  "no headers": hangs,
  "no tokens": begins("no tokens", ": still here\n\n"),
  "half an answer": begins("half an answer", chunk({ role: "assistant", content: "The answer is forty" })),
  drips,
  "round and round": goesRound,
};

beforeAll(async () => {
  puppet = await startPuppet();
  world = await startWorld(settingsFor(puppet.baseUrl, LIMITS));
  for (const [words, behaviour] of Object.entries(CASES)) puppet.on(words, behaviour);
  const chat = (words: string) => words.replaceAll(" ", "-");
  await Promise.all(
    Object.keys(CASES).map(async (words) => {
      ends.set(words, await ended(world.host(), await send(world.host(), words, { chat: chat(words) })));
    }),
  );
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await puppet?.stop();
});

test.each([
  ["no headers", "model sent nothing within 3 s (turns.firstTokenMs)"],
  ["no tokens", "model sent nothing within 3 s (turns.firstTokenMs)"],
  ["half an answer", "model sent nothing more within 3 s (turns.idleMs)"],
  ["drips", "model did not finish within 7 s (turns.attemptTimeoutMs)"],
  ["round and round", "The turn did not finish the whole turn within 12 s (turns.turnTimeoutMs)"],
])("a model that gives %j fails and names the limit that fired (Q15.1)", (words, named) => {
  const end = ends.get(words);
  expect(end?.state).toBe("failed");
  expect(end?.parts).toHaveLength(1);
  expect(end?.text).toContain(named);
  expect(end?.text.match(/turns\.\w+/g)).toHaveLength(1);
});

test("what was streamed before the limit is kept and marked as incomplete (Q15.2)", () => {
  expect(ends.get("half an answer")?.text).toMatch(/^The answer is forty\n\n\(Incomplete\. /);
});

test("a limit frees the slot, and the session goes on (Q2.1)", async () => {
  const { body } = await world.host().api("lanes");
  expect(body.lanes.find((lane: { lane: string }) => lane.lane === "main")).toMatchObject({ running: 0, queued: 0 });
  for (const chat of ["no-headers", "half-an-answer", "round-and-round"]) {
    expect(await ask(world.host(), `hello ${chat}`, { chat })).toMatchObject({
      state: "done",
      text: `re: hello ${chat}`,
    });
  }
});

test("the late answer of a call that was given up changes nothing (G19, G6)", async () => {
  const late = open.get("half an answer");
  await eventually("the host has closed the connection", () => late?.destroyed ?? true);
  late?.write(chunk({ content: "-two" }));
  late?.end(chunk({}, "stop") + DONE);
  await ask(world.host(), "what did you say?", { chat: "half-an-answer" });
  const { items } = (await world.host().api("history", { chat: "half-an-answer" })).body;
  expect(JSON.stringify(items)).not.toContain("-two");
  expect(JSON.stringify(last(puppet.asked("what did you say?")))).not.toContain("-two");
});

test("a turn that failed after a tool had run leaves its message once in the transcript (Q5.4)", async () => {
  await ask(world.host(), "and now?", { chat: "round-and-round" });
  const people = last(puppet.asked("and now?")).filter((message) => message.role === "user");
  expect(people.map((message) => message.content)).toEqual(["round and round", "hello round-and-round", "and now?"]);
});
