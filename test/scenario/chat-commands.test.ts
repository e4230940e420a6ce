import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { settingsFor } from "../support/host.ts";
import { chunk, DONE, sendStream } from "../support/model-endpoint.ts";
import { type Puppet, startPuppet } from "./puppet.ts";
import { ask, ended, eventually, type Json, last, send, startWorld, type World } from "./world.ts";

// One host; the last tests kill it and start the next one on its home.

let puppet: Puppet;
let world: World;

beforeAll(async () => {
  puppet = await startPuppet();
  world = await startWorld(settingsFor(puppet.baseUrl));
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await puppet?.stop();
});

/** A call that begins to answer and then waits for the test. */
function begins(words: string): { response(): ServerResponse | undefined; asked(): Promise<unknown> } {
  let open: ServerResponse | undefined;
  puppet.on(words, (response) => {
    open = response;
    sendStream(response, chunk({ role: "assistant", content: "The answer is" }));
  });
  return {
    response: () => open,
    asked: () => eventually(`the model is asked ${words}`, () => puppet.asked(words).length > 0),
  };
}

async function texts(chat: string): Promise<string[]> {
  return (await world.host().api("history", { chat })).body.items.map((item: Json) => item.text);
}

async function stateOf(id: number): Promise<string> {
  return (await world.host().api("queue.show", { id })).body.command.state;
}

test("/help answers with every command that there is, without a model", async () => {
  const { commands } = (await world.host().api("commands")).body;
  expect(commands.map((command: Json) => command.name)).toEqual(
    expect.arrayContaining(["help", "status", "new", "stop"]),
  );
  const end = await ask(world.host(), "/help", { chat: "help" });
  expect(end).toMatchObject({ state: "done", parts: [{ class: "notice" }] });
  for (const { usage, about } of commands) expect(end.text).toContain(`\`${usage}\`: ${about}`);
  expect(puppet.seen).toHaveLength(0);
});

test("/status tells the backend, and what runs and waits here, while a turn holds the session (Q9.3)", async () => {
  const call = begins("busy");
  const running = await send(world.host(), "busy", { chat: "status" });
  await call.asked();
  await send(world.host(), "behind", { chat: "status" });
  const { text } = await ask(world.host(), "/status", { chat: "status" });
  expect(text).toMatch(/^Laneway \d+\.\d+\.\d+, up /);
  expect(text).toContain("Answers come from model (fake).");
  expect(text).toContain("1 running in this chat.");
  expect(text).toMatch(/Lane main: 1 of 8 running, 1 waiting/);
  call.response()?.end(chunk({ content: " 42" }) + chunk({}, "stop") + DONE);
  expect((await ended(world.host(), running)).text).toBe("The answer is 42");
});

test("an unknown command is answered with the nearest one, whatever its case", async () => {
  expect((await ask(world.host(), "/sttus", { chat: "typo" })).text).toBe(
    "There is no command /sttus. Did you mean /status? /help lists them all.",
  );
  expect((await ask(world.host(), "/frobnicate now", { chat: "typo" })).text).toContain(
    "There is no command /frobnicate.",
  );
  expect((await ask(world.host(), "/HELP", { chat: "typo" })).text).toContain("`/stop [all]`");
  expect((await ask(world.host(), "/constructor", { chat: "typo" })).text).toContain(
    "There is no command /constructor.",
  );
});

test("a path, a slash in a sentence and a word with one behind it are ordinary messages", async () => {
  for (const words of ["/etc/hosts", "/etc/hosts what is in it?", "and/or", "/ what?", "// a comment"]) {
    expect((await ask(world.host(), words, { chat: "paths" })).text).toBe(`re: ${words}`);
  }
});

test("/new begins a conversation that knows nothing of the one before, which stays in the history", async () => {
  await ask(world.host(), "my name is Ada", { chat: "new" });
  expect((await ask(world.host(), "/new", { chat: "new" })).text).toBe("A new conversation begins here.");
  await ask(world.host(), "who am I?", { chat: "new" });
  const request = last(puppet.asked("who am I?"));
  expect(request.filter(({ role }) => role === "user").map(({ content }) => content)).toEqual(["who am I?"]);
  expect(await texts("new")).toContain("my name is Ada");
});

test("/new stops what runs in the conversation that is left: its answer never appears in the new one", async () => {
  const call = begins("still at it");
  const command = await send(world.host(), "still at it", { chat: "leave" });
  await call.asked();
  expect((await ask(world.host(), "/new", { chat: "leave" })).text).toBe(
    "A new conversation begins here. Stopped: 1 running.",
  );
  expect((await ended(world.host(), command)).state).toBe("cancelled");
  await ask(world.host(), "fresh", { chat: "leave" });
  expect(JSON.stringify(last(puppet.asked("fresh")))).not.toContain("still at it");
});

test("/stop ends the running turn and cancels what waits; the answer never appears, the transcript tells it (G18, Q9.3)", async () => {
  const call = begins("long work");
  const running = await send(world.host(), "long work", { chat: "stop" });
  await call.asked();
  const waiting = [
    await send(world.host(), "more", { chat: "stop" }),
    await send(world.host(), "and more", { chat: "stop" }),
  ];
  const elsewhere = begins("other chat");
  const other = await send(world.host(), "other chat", { chat: "stop-not" });
  await elsewhere.asked();

  expect((await ask(world.host(), "/stop", { chat: "stop" })).text).toBe("Stopped: 1 running, 2 waiting.");
  for (const command of [running, ...waiting]) {
    expect(await ended(world.host(), command)).toMatchObject({
      state: "cancelled",
      parts: [],
      outcome: { reason: "stopped" },
    });
  }
  await eventually("the call of the model is closed", () => call.response()?.destroyed);
  call.response()?.end(chunk({ content: " too late" }) + chunk({}, "stop") + DONE);
  await eventually("the slot is free", async () => {
    const { lanes } = (await world.host().api("lanes")).body;
    return lanes.find((lane: Json) => lane.lane === "main").running === 1;
  });
  expect(await stateOf(other)).toBe("running");

  expect((await ask(world.host(), "go on", { chat: "stop" })).text).toBe("re: go on");
  expect(
    last(puppet.asked("go on"))
      .map(({ role, content }) => [role, content])
      .slice(1),
  ).toEqual([
    ["user", "long work"],
    ["assistant", "[Stopped before the answer was complete]"],
    ["user", "go on"],
  ]);
  expect(await texts("stop")).not.toContainEqual(expect.stringContaining("The answer is"));
  expect((await ask(world.host(), "/stop", { chat: "stop" })).text).toBe("Nothing runs here.");
});

test("/stop all stops every chat; /stop with other words explains itself", async () => {
  expect((await ask(world.host(), "/stop it please", { chat: "stop" })).text).toBe(
    "Use `/stop` for this chat, or `/stop all` as the owner.",
  );
  expect((await ask(world.host(), "/stop all", { chat: "stop" })).text).toBe("Stopped: 1 running.");
});

test("what was stopped stays stopped when the host dies at once, and nothing of it is run again (G18)", async () => {
  const call = begins("before the crash");
  const running = await send(world.host(), "before the crash", { chat: "crash" });
  await call.asked();
  const waiting = await send(world.host(), "waits for it", { chat: "crash" });
  const stopped = await send(world.host(), "/stop", { chat: "crash" });
  await world.host().kill();
  await world.start();
  expect((await ended(world.host(), stopped)).text).toBe("Stopped: 1 running, 1 waiting.");
  expect(await stateOf(running)).toBe("cancelled");
  expect(await stateOf(waiting)).toBe("cancelled");
  expect((await ask(world.host(), "hello", { chat: "crash" })).text).toBe("re: hello");
  expect(puppet.asked("before the crash")).toHaveLength(1);
  expect(puppet.asked("waits for it")).toHaveLength(0);
});
