import { mkdir } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { temporaryFolder } from "../support/files.ts";
import { type HostProcess, logLines, settingsFor, startHostProcess, writeSettings } from "../support/host.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
import { type Puppet, says, startPuppet } from "./puppet.ts";
import { rawPost, rawRequest } from "./raw-http.ts";
import { ended, eventually, freshKey, type Json, send } from "./world.ts";

// A home on a small disk of its own, which is filled to the last byte and emptied again. The tests build on each other.

const BYTES = 48 * 1024 * 1024;

const folder = await temporaryFolder();
const disk = mountSmallDisk(folder.path, BYTES);
const canMount = typeof disk !== "string";
if (!canMount) console.log(`skipped: needs mount (${disk})`);
const home = `${folder.path}/home`;

let puppet: Puppet;
let host: HostProcess;

beforeAll(async () => {
  if (!canMount) return;
  await mkdir(home, { mode: 0o700 });
  puppet = await startPuppet();
  await writeSettings(home, settingsFor(puppet.baseUrl));
  host = await startHostProcess(home);
});
afterAll(async () => {
  await host?.kill();
  await puppet?.stop();
  if (canMount) disk[Symbol.dispose]();
  await folder[Symbol.asyncDispose]();
});

function fillDisk(): void {
  if (canMount) disk.fill(0);
}

function freeDisk(): void {
  if (canMount) disk.free();
}

async function texts(chat: string): Promise<string[]> {
  return (await host.api("history", { chat, limit: 200 })).body.items.map((item: Json) => item.text);
}

const isPaused = async () => (await host.api("status")).body.store.paused === true;

describe.runIf(canMount)("a full disk (needs the right to mount a file system)", () => {
  const release = Promise.withResolvers<void>();
  const refused = freshKey();
  const known = freshKey();
  let running: number;
  let behind: number;

  test("a new message is refused with 503 and a time to come back; what was accepted before is still known (G14)", async () => {
    puppet.on("running when it happens", async (response, messages) => {
      await release.promise;
      return says("The answer that was held.")(response, messages);
    });
    running = await send(host, "running when it happens", { chat: "held", key: known });
    behind = await send(host, "waits behind it", { chat: "held" });
    await eventually("the turn runs", () => puppet.asked("running when it happens").length === 1);
    fillDisk();

    const answer = await eventually("a message is refused", async () => {
      const body = { text: "while it is full", key: refused, chat: "refused" };
      const tried = await rawPost(host.address, "/api/send", body);
      return tried.status === 202 ? undefined : tried;
    });
    expect(answer.status).toBe(503);
    expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
    expect(JSON.parse(answer.text).error).toMatchObject({
      code: "store_unavailable",
      hint: expect.stringContaining("by itself"),
    });
    expect(await isPaused()).toBe(true);
    expect((await rawRequest(host.address, { path: "/readyz" })).status).toBe(503);

    const openAi = await rawPost(host.address, "/v1/chat/completions", {
      model: "laneway",
      messages: [{ role: "user", content: "x" }],
    });
    expect([openAi.status, JSON.parse(openAi.text).error.type]).toEqual([503, "server_error"]);
    expect((await rawPost(host.address, "/api/send", { text: "/stop", key: freshKey(), chat: "refused" })).status).toBe(
      503,
    );
    expect(await host.api("send", { text: "running when it happens", key: known, chat: "held" })).toMatchObject({
      status: 202,
      body: { command: running, duplicate: true },
    });
    expect(await texts("refused")).toEqual([]);
  });

  test("the result of the running turn is held, nothing new is begun, and the host stays (G14)", async () => {
    release.resolve();
    const { body } = await host.api("wait", { command: running, timeoutMs: 2_000 });
    expect(body).toMatchObject({ state: "running", final: false, parts: [] });
    expect(puppet.asked("waits behind it")).toHaveLength(0);
    expect((await rawRequest(host.address, { path: "/healthz" })).status).toBe(200);
  });

  test("when there is space again everything goes on by itself, and nothing acknowledged was lost (G14)", async () => {
    freeDisk();
    expect(await ended(host, running)).toMatchObject({ state: "done", text: "The answer that was held." });
    expect(await ended(host, behind)).toMatchObject({ state: "done", text: "re: waits behind it" });
    expect(puppet.asked("running when it happens")).toHaveLength(1);
    const again = await host.api("send", { text: "while it is full", key: refused, chat: "refused" });
    expect(again).toMatchObject({ status: 202, body: { duplicate: false } });
    expect((await ended(host, again.body.command)).text).toBe("re: while it is full");
    expect(await texts("refused")).toEqual(["while it is full", "re: while it is full"]);
    expect(await isPaused()).toBe(false);
    await eventually("the log goes on too", async () =>
      (await logLines(home)).some(({ event }) => event === "store.resumed"),
    );
  });

  test("killed while the disk is full, it cannot start, says so, and a later start has everything (G14, G1)", async () => {
    fillDisk();
    await host.kill();
    const failed = await startHostProcess(home).then(
      () => undefined,
      (thrown: Error) => thrown,
    );
    // A supervisor tries again after this code, and not after 65, 75 and 78.
    expect(failed?.message).toMatch(/^ended {"code":1,/);
    expect(failed?.message).toMatch(/cannot be (opened|written)/);
    freeDisk();
    host = await startHostProcess(home);
    expect(await texts("held")).toEqual([
      ...["running when it happens", "waits behind it", "The answer that was held.", "re: waits behind it"],
    ]);
  });
});
