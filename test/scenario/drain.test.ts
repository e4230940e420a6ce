import { stat } from "node:fs/promises";
import Database from "better-sqlite3";
import { afterAll, beforeAll, expect, test } from "vitest";
import { logLines, settingsFor } from "../support/host.ts";
import { calls, hangs, type Puppet, says, startPuppet } from "./puppet.ts";
import { rawRequest } from "./raw-http.ts";
import { ask, ended, eventually, type Json, last, send, startWorld, type World } from "./world.ts";

// One host that is told to stop while it works: one turn that ends in time, one that does not, and messages that still come.

/** The drain lasts 25 s, and this test waits for its end. */
const TIMEOUT_MS = 150_000;

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

function rows(sql: string): Json[] {
  const db = new Database(`${world.home}/laneway.db`, { readonly: true });
  try {
    return db.prepare(sql).all();
  } finally {
    db.close();
  }
}

test(
  "told to stop it accepts but claims nothing more, lets a turn end, hands the other back and leaves nothing running (G17, Q1.3)",
  async () => {
    const release = Promise.withResolvers<void>();
    puppet.on("ends in time", async (response, messages) => {
      await release.promise;
      return says("Just in time.")(response, messages);
    });
    // Its first host gets as far as the tool; the next one gets the answer.
    puppet.on("does not end", (response, messages) => {
      if (messages.at(-1)?.role !== "tool") return calls(["list", {}])(response, messages);
      return (puppet.asked("does not end").length === 2 ? hangs : says("In the end."))(response, messages);
    });
    const inTime = await send(world.host(), "ends in time", { chat: "a" });
    const endless = await send(world.host(), "does not end", { chat: "b" });
    await eventually(
      "both turns are in their last call",
      () => puppet.asked("ends in time").length + puppet.asked("does not end").length === 3,
    );

    const host = world.host();
    const stopped = host.stop();
    await eventually(
      "the host drains",
      async () => (await rawRequest(host.address, { path: "/readyz" })).status === 503,
    );
    const during = [
      await send(host, "while it drains", { chat: "a" }),
      await send(host, "in another chat", { chat: "c" }),
    ];
    expect((await ask(host, "/status", { chat: "c" })).state).toBe("done");
    release.resolve();
    expect(await ended(host, inTime)).toMatchObject({ state: "done", text: "Just in time." });
    expect(await stopped).toBe(0);

    expect(
      rows("select id, state, open, strikes from commands where state in ('queued', 'running') order by id"),
    ).toEqual([
      { id: endless, state: "queued", open: 1, strikes: 0 },
      ...during.map((id) => ({ id, state: "queued", open: 0, strikes: 0 })),
    ]);
    expect(rows("select id from outbox where state = 'sending'")).toEqual([]);
    expect(puppet.asked("while it drains")).toHaveLength(0);
    expect(puppet.asked("in another chat")).toHaveLength(0);

    await world.start();
    expect(await ended(world.host(), endless)).toMatchObject({ state: "done", text: "In the end." });
    for (const command of during) expect((await ended(world.host(), command)).state).toBe("done");
    expect(puppet.asked("does not end")).toHaveLength(3);
    expect(last(puppet.asked("does not end"))).toEqual(puppet.asked("does not end")[1]);
    expect(rows(`select strikes, claim from commands where id = ${endless}`)).toEqual([{ strikes: 0, claim: 2 }]);
  },
  TIMEOUT_MS,
);

test("with nothing to wait for it stops at once, and host.json is gone (G17)", async () => {
  expect(await world.host().stop()).toBe(0);
  const events = (await logLines(world.home)).map((line) => line["event"]);
  expect(events.slice(events.lastIndexOf("host.stopping"))).toEqual(["host.stopping", "host.stopped"]);
  await expect(rawRequest(world.host().address, { path: "/healthz" })).rejects.toThrow("ECONNREFUSED");
  await expect(stat(`${world.home}/host.json`)).rejects.toThrow("ENOENT");
});
