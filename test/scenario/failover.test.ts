import type { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openEvents } from "./event-stream.ts";
import { ask, pairSettings, startMock, startWorld, transcripts, type World } from "./world.ts";

// One host with two backends at an independent endpoint: `primary` is asked first, then `fallback`. Each test has its own words.

let mock: LLMock;
let world: World;

beforeAll(async () => {
  mock = await startMock();
  world = await startWorld(pairSettings(`${mock.url}/v1`));
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await mock?.stop();
});

type Answer = Parameters<LLMock["on"]>[1];

/** What the two models say to these words. */
function script(words: string, answers: { primary: Answer; fallback?: Answer }): void {
  mock.on({ userMessage: words, model: "primary" }, answers.primary);
  mock.on({ userMessage: words, model: "fallback" }, answers.fallback ?? { content: "from the fallback" });
}

/** The models that were asked these words, in order. */
function asked(words: string): string[] {
  const requests = mock.getRequests().filter(({ body }) => transcripts([{ body }])[0]?.at(-1)?.content === words);
  return requests.map(({ body }) => (body as { model: string }).model);
}

const broken = (status: number, message: string, code?: string): Answer => ({
  error: { message, ...(code === undefined ? {} : { code }) },
  status,
});

test("a model that fails once is asked once more and answers (Q5.1)", async () => {
  let tries = 0;
  script("fails once", {
    primary: () => (++tries === 1 ? { error: { message: "oops" }, status: 500 } : { content: "second try" }),
  });
  expect(await ask(world.host(), "fails once", { chat: "once" })).toMatchObject({ state: "done", text: "second try" });
  expect(asked("fails once")).toEqual(["primary", "primary"]);
});

test("a model that always fails is tried exactly twice, then the fallback answers (G19, Q5.2)", async () => {
  script("always fails", { primary: broken(500, "oops") });
  expect(await ask(world.host(), "always fails", { chat: "always" })).toMatchObject({
    state: "done",
    text: "from the fallback",
  });
  expect(asked("always fails")).toEqual(["primary", "primary", "fallback"]);
});

test("a refused key is not tried again: the fallback is asked at once (Q5.1)", async () => {
  script("wrong key", { primary: broken(401, "no") });
  expect(await ask(world.host(), "wrong key", { chat: "key" })).toMatchObject({
    state: "done",
    text: "from the fallback",
  });
  expect(asked("wrong key")).toEqual(["primary", "fallback"]);
});

test("a wait that the model's server asks for is kept before the next try (Q5.1)", async () => {
  const at: number[] = [];
  script("slow down", {
    primary: () => {
      at.push(performance.now());
      return at.length === 1 ? { error: { message: "slow" }, status: 429, retryAfter: 2 } : { content: "now" };
    },
  });
  expect(await ask(world.host(), "slow down", { chat: "wait" })).toMatchObject({ state: "done", text: "now" });
  expect(asked("slow down")).toEqual(["primary", "primary"]);
  // Without the header the host would have waited for less than a second. A lower bound holds on any machine.
  expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThan(1_900);
});

test("a wait that is too long for a person is not waited for: the fallback answers (Q5.1)", async () => {
  script("come back later", { primary: { error: { message: "slow" }, status: 429, retryAfter: 3_600 } });
  expect((await ask(world.host(), "come back later", { chat: "later" })).text).toBe("from the fallback");
  expect(asked("come back later")).toEqual(["primary", "fallback"]);
});

test("when nothing is left one message names each backend and what to do, and the session goes on (Q5.6)", async () => {
  script("all broken", { primary: broken(500, "disk on fire"), fallback: broken(401, "no") });
  script("hello again", { primary: { content: "back again" } });
  const end = await ask(world.host(), "all broken", { chat: "broken" });
  expect(end).toMatchObject({ state: "failed", outcome: { reason: "backends-failed" } });
  expect(end.parts).toHaveLength(1);
  expect(end.parts[0]?.class).toBe("failure");
  expect(end.text).toContain("None of the models answered.");
  expect(end.text).toMatch(/- first \(server\): .*disk on fire/);
  expect(end.text).toMatch(/- second \(auth\): the key was refused \(401\)\. Check its key/);
  expect(asked("all broken")).toEqual(["primary", "primary", "fallback"]);

  expect((await ask(world.host(), "hello again", { chat: "broken" })).text).toBe("back again");
  const request = transcripts(mock.getRequests()).at(-1) ?? [];
  expect(request.map(({ role, content }) => [role, content]).slice(1)).toEqual([
    ["user", "all broken"],
    ["assistant", expect.stringContaining("No answer: None of the models answered")],
    ["user", "hello again"],
  ]);
});

test("a stream that is cut is no answer: it is tried again, and the page is told to begin anew (Q5.4)", async () => {
  let tries = 0;
  const whole = "one two three four five six seven eight nine ten";
  mock.on(
    { userMessage: "cut stream", model: "primary", sequenceIndex: 0 },
    { content: whole },
    { truncateAfterChunks: 4, latency: 5 },
  );
  mock.on({ userMessage: "cut stream", model: "primary" }, () => {
    tries += 1;
    return { content: whole };
  });
  const stream = await openEvents(world.host().address, { chat: "cut" });
  const end = await ask(world.host(), "cut stream", { chat: "cut" });
  expect(end).toMatchObject({ state: "done", text: whole });
  expect(end.parts).toHaveLength(1);
  expect(tries).toBe(1);
  await stream.until((message) => message.event === "state" && message.data.state === "done");
  const passing = stream.heard.filter(({ event }) => event === "stream" || event === "delta");
  const second = passing.findLastIndex(({ event }) => event === "stream");
  expect(passing.slice(0, second).some(({ event }) => event === "delta")).toBe(true);
  expect(
    passing
      .slice(second + 1)
      .map(({ data }) => data.text)
      .join(""),
  ).toBe(whole);
  await stream.close();
});

test("a model that the server does not know is named, with what to check (Q5.6)", async () => {
  script("who are you", {
    primary: broken(404, "The model does not exist", "model_not_found"),
    fallback: broken(404, "The model does not exist", "model_not_found"),
  });
  const end = await ask(world.host(), "who are you", { chat: "unknown" });
  expect(end.state).toBe("failed");
  expect(end.text).toMatch(/first \(invalid\): the server does not know the model primary/);
  expect(end.text).toContain("Check its settings (model, baseUrl)");
  expect(asked("who are you")).toEqual(["primary", "fallback"]);
});

test("an empty answer is no answer (Q5.4)", async () => {
  script("say nothing", { primary: { content: "" } });
  expect((await ask(world.host(), "say nothing", { chat: "empty" })).text).toBe("from the fallback");
  expect(asked("say nothing")).toEqual(["primary", "primary", "fallback"]);
});
