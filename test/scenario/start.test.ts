import { createHash } from "node:crypto";
import { once } from "node:events";
import { open, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Database from "better-sqlite3";
import { afterAll, beforeAll, expect, test } from "vitest";
import { temporaryFolder } from "../support/files.ts";
import { logLines, settingsFor, startHostProcess, writeSettings } from "../support/host.ts";
import { callsThenSays, hangs, type Puppet, says, startPuppet } from "./puppet.ts";
import { rawRequest } from "./raw-http.ts";
import { ask, ended, eventually, type Json, send, startWorld, type World } from "./world.ts";

// What a start does with settings, data and surroundings that are not as they should be.

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

interface Refused {
  readonly code: number | null;
  readonly stderr: string;
}

/** The end of a start that must not succeed. */
async function refusedStart(home: string, env: Record<string, string> = {}): Promise<Refused> {
  const started = await startHostProcess(home, env).catch((thrown: Error) => thrown);
  if (!(started instanceof Error)) {
    await started.kill();
    throw new Error("the host started");
  }
  const [, end = "{}", stderr = ""] = /^ended (\{.*?\}): ([\s\S]*)$/.exec(started.message) ?? [];
  return { code: JSON.parse(end).code, stderr };
}

/** Name and content of every file of the home, but for the compile cache, which may be anything at any time. */
async function fingerprint(home: string): Promise<string[]> {
  const entries = await readdir(home, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !entry.parentPath.startsWith(`${home}/cache`));
  const lines = files.map(async ({ parentPath, name }) => {
    const content = await readFile(`${parentPath}/${name}`);
    return `${parentPath}/${name} ${createHash("sha256").update(content).digest("hex")}`;
  });
  return (await Promise.all(lines)).toSorted();
}

test("a second host on the same home exits 75, names the first, touches nothing and disturbs nothing (G13)", async () => {
  await ask(world.host(), "hello");
  const before = await fingerprint(world.home);
  const { code, stderr } = await refusedStart(world.home);
  expect(code).toBe(75);
  expect(stderr).toContain(
    `another Laneway holds this data directory (pid ${world.host().process.pid}, ${world.host().address})`,
  );
  expect(await fingerprint(world.home)).toEqual(before);
  expect((await ask(world.host(), "still there?")).text).toBe("re: still there?");
});

test("settings that cannot be used start the last good ones, and the host says so and why (Q8.1)", async () => {
  await world.host().stop();
  const broken = "gateway: { port: 99999 }\nlanse: { main: 2 }\nqueue: { cap: many }\n";
  await writeSettings(world.home, broken);
  const host = await world.start();
  const { settings } = (await host.api("status")).body;
  expect(settings).toMatchObject({ state: "last-good", path: `${world.home}/laneway.yaml` });
  expect(settings.problem).toContain("gateway.port (line 1): expected at most 65535");
  expect(settings.problem).toMatch(/lanse \(line 2\): .*lanes/);
  expect(settings.problem).toMatch(/queue\.cap \(line 3\): expected a number/);
  expect(await logLines(world.home)).toContainEqual(
    expect.objectContaining({ event: "settings.refused", state: "last-good", problems: 3 }),
  );
  expect((await ask(host, "good old settings")).text).toBe("re: good old settings");
  expect(await readFile(`${world.home}/laneway.yaml`, "utf8")).toBe(broken);
  await writeSettings(world.home, settingsFor(puppet.baseUrl));
});

test("without a last good copy the start is refused with 78 and every problem at once (Q8.1)", async () => {
  await using folder = await temporaryFolder();
  await writeSettings(
    folder.path,
    "gateway: { port: 99999 }\nlanse: { main: 2 }\nagents: { main: { backends: [ gone ] } }\n",
  );
  const { code, stderr } = await refusedStart(folder.path);
  expect(code).toBe(78);
  for (const said of ["gateway.port (line 1)", "lanse (line 2)", "agents.main.backends[0] (line 3)"])
    expect(stderr).toContain(said);
  expect(await readdir(folder.path)).not.toContain("laneway.db");
});

test("an address that others can reach, without a token that was given on purpose, is refused with 78 (NET-8)", async () => {
  await using folder = await temporaryFolder();
  const open = 'backends: { m: { kind: offline } }\ngateway: { host: "0.0.0.0", port: 0 }\n';
  await writeSettings(folder.path, "backends: { m: { kind: offline } }\n");
  await writeFile(`${folder.path}/laneway.last-good.yaml`, "backends: { m: { kind: offline } }\n", { mode: 0o600 });
  await writeSettings(folder.path, open);
  const { code, stderr } = await refusedStart(folder.path, { LANEWAY_TOKEN: "" });
  expect(code).toBe(78);
  expect(stderr).toContain("gateway.host (line 2): expected a loopback address, or a token");
});

test.runIf(process.platform === "linux")(
  "the link of a host that is bound to another address works (NET-2)",
  async () => {
    await using bound = await startWorld(
      'backends: { m: { kind: offline } }\ngateway: { host: "127.0.0.2", port: 0 }\n',
    );
    const { address } = bound.host();
    expect(address).toMatch(/^http:\/\/127\.0\.0\.2:\d+$/);
    expect((await rawRequest(address, { path: "/" })).status).toBe(200);
    expect((await rawRequest(address, { path: "/", headers: { host: "127.0.0.3" } })).status).toBe(421);
  },
);

test("a port that is taken is said with 78, and starts that fail so are no strikes against waiting work (G8)", async () => {
  puppet.on("in the middle", (response, messages) =>
    (puppet.asked("in the middle").length <= 2 ? callsThenHangs : callsThenSays([["list", {}]], "Got there."))(
      response,
      messages,
    ),
  );
  const command = await send(world.host(), "in the middle", { chat: "busy-port" });
  await eventually("the turn is half done", () => puppet.asked("in the middle").length === 2);
  await world.host().kill();
  const other = createServer(() => {});
  other.listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  await writeSettings(world.home, settingsFor(puppet.baseUrl, "", port));
  for (let i = 0; i < 3; i += 1) {
    const { code, stderr } = await refusedStart(world.home);
    expect(code).toBe(78);
    expect(stderr).toContain(`cannot listen on 127.0.0.1:${port}`);
  }
  other.close();
  expect(puppet.asked("in the middle")).toHaveLength(2);
  await writeSettings(world.home, settingsFor(puppet.baseUrl));
  await world.start();
  expect(await ended(world.host(), command)).toMatchObject({ state: "done", text: "Got there." });
  expect((await world.host().api("queue.show", { id: command })).body.command).toMatchObject({ claim: 2 });
});

const callsThenHangs: Parameters<Puppet["on"]>[1] = (response, messages) => {
  if (messages.at(-1)?.role === "tool") return hangs(response, messages);
  return callsThenSays([["list", {}]], "")(response, messages);
};

test("data of a newer version is refused with 65 and left as it is (G20)", async () => {
  puppet.on("kept?", says("kept"));
  await world.host().stop();
  const db = new Database(`${world.home}/laneway.db`);
  const known = db.pragma("user_version", { simple: true });
  db.pragma("user_version = 999");
  db.close();
  const before = await fingerprint(world.home);
  const { code, stderr } = await refusedStart(world.home);
  expect(code).toBe(65);
  expect(stderr).toMatch(/the data is of schema 999, this program knows schemas up to \d+/);
  expect((await fingerprint(world.home)).filter((line) => line.includes("laneway.db "))).toEqual(
    before.filter((line) => line.includes("laneway.db ")),
  );
  const mend = new Database(`${world.home}/laneway.db`);
  mend.pragma(`user_version = ${Number(known)}`);
  mend.close();
  const host = await world.start();
  expect((await ask(host, "kept?")).text).toBe("kept");
  const { items } = (await host.api("history")).body;
  expect(items.map((item: Json) => item.text)).toContain("re: still there?");
});

test("a write that meets damage in the data ends the host with 65 and says what to do (fault matrix, database corrupt)", async () => {
  const { parts } = await ask(world.host(), "before the damage");
  const seq = parts[0]?.seq;
  await world.host().stop();
  const db = new Database(`${world.home}/laneway.db`, { readonly: true });
  const root = Number(db.prepare("select rootpage from sqlite_schema where name = 'audit'").pluck().get());
  const pageSize = Number(db.pragma("page_size", { simple: true }));
  db.close();
  const host = await world.start();
  const file = await open(`${world.home}/laneway.db`, "r+");
  await file.write(Buffer.alloc(pageSize, 0x5a), 0, pageSize, (root - 1) * pageSize);
  await file.close();
  // Dropping a part is audited first, and the host has not read that page yet.
  const answer = await host.api("outbox.drop", { id: seq }).catch(() => undefined);
  expect(answer?.status ?? 500).toBe(500);
  expect((await host.ended).code).toBe(65);
  expect(host.stderr()).toMatch(/laneway: the database is damaged[\s\S]*restore the latest backup/);
  expect(await logLines(world.home)).toContainEqual(expect.objectContaining({ event: "host.data-unusable" }));
});
