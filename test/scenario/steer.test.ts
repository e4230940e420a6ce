import { afterAll, beforeAll, expect, test } from "vitest";
import { settingsFor } from "../support/host.ts";
import { calls, type Puppet, says, startPuppet } from "./puppet.ts";
import { ask, ended, eventually, type Json, send, startWorld, type WireMessage, type World } from "./world.ts";

// Messages to a busy conversation (Q9.1, Q9.2): the modes, on a real host.

let puppet: Puppet;
let world: World;

beforeAll(async () => {
  puppet = await startPuppet();
  world = await startWorld(settingsFor(puppet.baseUrl, "turns: { graceMs: 500 }"));
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await puppet?.stop();
});

/** A turn that calls a tool once the test lets it go on. */
function heldTool(words: string): { asked(): Promise<unknown>; release(): void } {
  const go = Promise.withResolvers<void>();
  puppet.on(words, async (response, messages) => {
    const after = messages.slice(messages.findLastIndex((message) => message.role === "user"));
    if (after.some((message) => message.role === "tool")) return says(`done: ${words}`)(response, messages);
    await go.promise;
    return calls(["list", {}])(response, messages);
  });
  return {
    asked: () => eventually(`the model is asked ${words}`, () => puppet.asked(words).length > 0),
    release: () => go.resolve(),
  };
}

/** A turn that answers without a tool once the test lets it go on. */
function heldAnswer(words: string): { asked(): Promise<unknown>; release(): void } {
  const go = Promise.withResolvers<void>();
  puppet.on(words, async (response, messages) => {
    await go.promise;
    return says(`re: ${words}`)(response, messages);
  });
  return {
    asked: () => eventually(`the model is asked ${words}`, () => puppet.asked(words).length > 0),
    release: () => go.resolve(),
  };
}

function persons(messages: readonly WireMessage[] | undefined): string[] {
  return (messages ?? []).filter((message) => message.role === "user").map((message) => message.content);
}

async function stateOf(id: number): Promise<string> {
  return (await world.host().api("queue.show", { id })).body.command.state;
}

test("steer: a message joins the running turn at its next step, once, and in every later request (Q9.1)", async () => {
  const held = heldTool("look around");
  const turn = await send(world.host(), "look around", { chat: "steer" });
  await held.asked();
  const extra = await send(world.host(), "and be brief", { chat: "steer" });
  expect(await stateOf(extra)).toBe("queued");
  held.release();
  const [first, second] = await Promise.all([ended(world.host(), turn), ended(world.host(), extra)]);
  expect([first.state, second.state]).toEqual(["done", "done"]);
  // Whoever waits for the message hears the answer of the turn that took it in.
  expect(second.text).toBe(first.text);
  expect(first.text).toBe("re: and be brief");
  expect(puppet.asked("look around").map(persons)).toEqual([["look around"]]);
  const [request] = puppet.asked("and be brief");
  expect(request?.map(({ role }) => role).slice(1)).toEqual(["user", "assistant", "tool", "user"]);
  await ask(world.host(), "later", { chat: "steer" });
  expect(persons(puppet.asked("later")[0])).toEqual(["look around", "and be brief", "later"]);
});

test("steer: without a next step the message is the next turn (Q9.1)", async () => {
  const held = heldAnswer("just answer");
  const turn = await send(world.host(), "just answer", { chat: "next" });
  await held.asked();
  const extra = await send(world.host(), "one more", { chat: "next" });
  held.release();
  expect([(await ended(world.host(), turn)).text, (await ended(world.host(), extra)).text]).toEqual([
    "re: just answer",
    "re: one more",
  ]);
});

test("/queue followup: every message has a turn of its own; /steer TEXT joins all the same (Q9.2, Q9.4)", async () => {
  await ask(world.host(), "/queue followup", { chat: "follow" });
  const held = heldTool("work on");
  const turn = await send(world.host(), "work on", { chat: "follow" });
  await held.asked();
  const steered = await send(world.host(), "/steer to the left", { chat: "follow" });
  const own = await send(world.host(), "and then?", { chat: "follow" });
  held.release();
  expect((await ended(world.host(), turn)).text).toBe("re: to the left");
  expect((await ended(world.host(), steered)).text).toBe("re: to the left");
  expect((await ended(world.host(), own)).text).toBe("re: and then?");
  expect((await ask(world.host(), "/steer alone", { chat: "follow" })).text).toBe("re: alone");
});

test("/queue collect: what comes while it is busy is answered together, in its order (Q9.2)", async () => {
  await ask(world.host(), "/queue collect", { chat: "collect" });
  const held = heldAnswer("busy now");
  const turn = await send(world.host(), "busy now", { chat: "collect" });
  await held.asked();
  const more: number[] = [];
  for (const text of ["one", "two", "three"]) more.push(await send(world.host(), text, { chat: "collect" }));
  held.release();
  expect((await ended(world.host(), turn)).text).toBe("re: busy now");
  const ends = await Promise.all(more.map((id) => ended(world.host(), id)));
  expect(ends.map(({ text }) => text)).toEqual(["re: three", "re: three", "re: three"]);
  expect(persons(puppet.asked("three")[0])).toEqual(["busy now", "one", "two", "three"]);
  await ask(world.host(), "after", { chat: "collect" });
  expect(persons(puppet.asked("after")[0])).toEqual(["busy now", "one", "two", "three", "after"]);
});

test("/queue interrupt: the newest message stops the running turn and runs (Q9.2)", async () => {
  await ask(world.host(), "/queue interrupt", { chat: "interrupt" });
  const held = heldAnswer("long work");
  const turn = await send(world.host(), "long work", { chat: "interrupt" });
  await held.asked();
  const next = await ask(world.host(), "no, this", { chat: "interrupt" });
  expect(next.text).toBe("re: no, this");
  expect(await stateOf(turn)).toBe("cancelled");
  held.release();
});

test("/stop ends the turn and what it has taken in (Q9.3)", async () => {
  const held = heldTool("go on");
  const turn = await send(world.host(), "go on", { chat: "stop" });
  await held.asked();
  const block = heldAnswer("joined");
  const joined = await send(world.host(), "joined", { chat: "stop" });
  held.release();
  await block.asked();
  expect(await stateOf(joined)).toBe("absorbed");
  await ask(world.host(), "/stop", { chat: "stop" });
  expect([await stateOf(turn), await stateOf(joined)]).toEqual(["cancelled", "cancelled"]);
  block.release();
  expect((await ask(world.host(), "again", { chat: "stop" })).text).toBe("re: again");
});

test("a host that dies while a call holds a joined message loses and doubles nothing (Q9.1, G1)", async () => {
  const held = heldTool("carry on");
  const turn = await send(world.host(), "carry on", { chat: "kill" });
  await held.asked();
  let dead = false;
  puppet.on("mind the gap", async (response, messages) => {
    if (!dead) return;
    await says("re: mind the gap")(response, messages);
  });
  const joined = await send(world.host(), "mind the gap", { chat: "kill" });
  held.release();
  await eventually("the joined message is asked", () => puppet.asked("mind the gap").length > 0);
  expect(await stateOf(joined)).toBe("absorbed");
  await world.host().kill();
  dead = true;
  await world.start();
  const [first, second] = await Promise.all([ended(world.host(), turn), ended(world.host(), joined)]);
  expect([first.state, second.state]).toEqual(["done", "done"]);
  await ask(world.host(), "then", { chat: "kill" });
  const said = persons(puppet.asked("then")[0]);
  expect(said.filter((text) => text === "mind the gap")).toHaveLength(1);
  expect(said.filter((text) => text === "carry on")).toHaveLength(1);
  const items: Json[] = (await world.host().api("history", { chat: "kill" })).body.items;
  expect(items.filter((item) => item.kind === "part" && item.text === "re: mind the gap")).toHaveLength(1);
});
