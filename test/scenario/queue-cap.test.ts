import { afterAll, beforeAll, expect, test } from "vitest";
import { settingsFor, TOKEN } from "../support/host.ts";
import { hangs, type Puppet, startPuppet } from "./puppet.ts";
import { ask, ended, eventually, freshKey, type Json, send, startWorld, type World } from "./world.ts";

// One host with the default cap of 20; one session is filled to it. The tests build on each other, in this order.

const CAP = 20;

let puppet: Puppet;
let world: World;
const keys: string[] = [];
const commands: number[] = [];

beforeAll(async () => {
  puppet = await startPuppet();
  world = await startWorld(settingsFor(puppet.baseUrl));
  puppet.on("blocks the session", hangs);
  await send(world.host(), "blocks the session", { chat: "full" });
  await eventually("the model is asked", () => puppet.asked("blocks the session").length === 1);
  for (let n = 1; n < CAP; n += 1) {
    keys.push(freshKey());
    commands.push(await send(world.host(), `waits ${n}`, { chat: "full", key: keys.at(-1) ?? "" }));
  }
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await puppet?.stop();
});

async function accepted(): Promise<number> {
  const { items } = (await world.host().api("history", { chat: "full", limit: 100 })).body;
  return items.filter((item: Json) => item.kind === "person").length;
}

test("of two messages that come at once for the last place exactly one is accepted (G15)", async () => {
  const texts = ["one of two", "two of two"];
  const answers = await Promise.all(
    texts.map((text) => world.host().api("send", { chat: "full", text, key: freshKey() })),
  );
  expect(answers.map((answer) => answer.status).toSorted()).toEqual([202, 429]);
  expect(await accepted()).toBe(1 + CAP);
});

test("beyond the cap a message is refused with what to do and when to come back, and nothing is accepted (G15)", async () => {
  const response = await fetch(`${world.host().address}/api/send`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({ chat: "full", text: "one too many", key: freshKey() }),
  });
  expect(response.status).toBe(429);
  expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await response.json()).toEqual({
    error: {
      code: "queue_full",
      message: "20 messages of this conversation are waiting already",
      hint: expect.stringContaining("/stop"),
    },
  });
  expect(await accepted()).toBe(1 + CAP);
});

test("a redelivery at the cap is acknowledged with its first command (G2)", async () => {
  const again = await world.host().api("send", { chat: "full", text: "waits 3", key: keys[2] });
  expect(again).toMatchObject({ status: 202, body: { command: commands[2], duplicate: true } });
});

test("other sessions are not affected, and chat commands pass the full line (G15, LOAD-R1)", async () => {
  expect((await ask(world.host(), "hello", { chat: "empty" })).text).toBe("re: hello");
  expect((await ask(world.host(), "/status", { chat: "full" })).text).toContain("20 waiting");
});

test("once the line is cleared messages are taken again (G15)", async () => {
  expect((await ask(world.host(), "/stop", { chat: "full" })).text).toBe("Stopped: 1 running, 20 waiting.");
  expect((await ask(world.host(), "room again", { chat: "full" })).text).toBe("re: room again");
  const ends = await Promise.all(commands.map((command) => ended(world.host(), command)));
  expect(new Set(ends.map((end) => end.state))).toEqual(new Set(["cancelled"]));
});
