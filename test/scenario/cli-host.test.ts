import { spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { expect, test, vi } from "vitest";
import { run } from "../../src/cli/program.ts";
import { makeOutput } from "../../src/cli/shell.ts";
import { type EchoModel, startEchoModel } from "../support/echo-model.ts";
import { childEnv, cli, MAIN, settingsFor, TOKEN } from "../support/host.ts";
import { keyboard, testShell } from "../unit/cli/fake-host.ts";
import { terminal } from "../unit/cli/terminal.ts";
import { startWorld } from "./world.ts";

// The command line against a real host.

const OFFLINE = "gateway: { port: 0 }\nbackends: { demo: { kind: offline } }\n";
const rows = (out: string) =>
  out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

/** Resolves when the expectation holds; the time is a hang guard. */
const until = (expectation: () => void | Promise<void>) => vi.waitFor(expectation, { timeout: 50_000, interval: 20 });

/** A model that is slow enough for a host to be killed while it answers. */
async function slowModel(pieceMs = 300): Promise<{ model: EchoModel; asked: string[] } & AsyncDisposable> {
  const model = await startEchoModel(() => pieceMs);
  const asked: string[] = [];
  model.onAsk = (question) => asked.push(question);
  return { model, asked, [Symbol.asyncDispose]: () => model.stop() };
}

test("a message goes in by `agent --wait`, its answer comes out, and every listing knows it", async () => {
  await using world = await startWorld(OFFLINE);
  const laneway = (...args: string[]) => cli(world.home, args);
  const answered = await laneway("agent", "-m", "good morning", "--wait", "--json");
  expect(answered).toMatchObject({ code: 0, stderr: "" });
  const { id, state, parts } = rows(answered.stdout)[0] as { id: number; state: string; parts: { text: string }[] };
  expect(state).toBe("done");
  expect(parts[0]?.text).toContain("good morning");

  expect(rows((await laneway("queue", "list", "--all", "--json")).stdout)).toMatchObject([
    { id, state: "done", lane: "main", session: "agent:main:terminal:default:main", preview: "good morning" },
  ]);
  expect((await laneway("queue", "list", "--json")).stdout).toBe("");
  expect(rows((await laneway("queue", "show", String(id), "--json")).stdout)[0]).toMatchObject({ id, claim: 1 });
  expect(rows((await laneway("outbox", "list", "--all", "--json")).stdout)).toMatchObject([
    { command: id, state: "sent" },
  ]);
  expect(rows((await laneway("sessions", "list", "--json")).stdout)).toMatchObject([
    { id: "agent:main:terminal:default:main" },
  ]);
  const exported = await laneway("sessions", "export", "agent:main:terminal:default:main", "--json");
  expect(rows(exported.stdout)).toMatchObject([{ role: "user", text: "good morning" }, { role: "assistant" }]);
  expect((await laneway("queue", "cancel", String(id))).code).toBe(1);
  expect((await laneway("queue", "show", "999999")).code).toBe(1);
});

test("status, lanes, link and doctor speak with the running host", async () => {
  await using world = await startWorld(OFFLINE);
  const laneway = (...args: string[]) => cli(world.home, args);
  const [status] = rows((await laneway("status", "--json")).stdout);
  expect(status).toMatchObject({
    generation: 1,
    settings: { state: "file" },
    backends: [{ name: "demo", state: "untried" }],
    counts: { queued: 0, running: 0 },
  });
  expect((await laneway("agent", "-m", "hello", "--wait")).code).toBe(0);
  const [later] = rows((await laneway("status", "--json")).stdout);
  expect(later).toMatchObject({ backends: [{ name: "demo", state: "answers" }] });
  expect(rows((await laneway("lanes", "--json")).stdout).map(({ id }) => id)).toContain("main");
  expect((await laneway("link")).stdout).toMatch(new RegExp(`^${world.host().address}/#[\\w-]+\n$`));
  const doctor = await laneway("doctor", "--json");
  expect(rows(doctor.stdout).filter(({ state }) => state === "fail")).toEqual([]);
  expect(doctor.code).toBe(0);
});

test("doctor tells that the database was removed while the host runs (Q8)", async () => {
  await using world = await startWorld(OFFLINE);
  await rm(`${world.home}/laneway.db`);
  const doctor = await cli(world.home, ["doctor", "--json"]);
  expect(rows(doctor.stdout)).toContainEqual(expect.objectContaining({ name: "database file", state: "fail" }));
  expect(doctor.code).not.toBe(0);
});

test("when the host has stopped, commands exit 69 and doctor finds lock and home in order", async () => {
  await using world = await startWorld(OFFLINE);
  await world.host().stop();
  expect((await cli(world.home, ["lanes"])).code).toBe(69);
  const doctor = await cli(world.home, ["doctor", "--json"]);
  expect(rows(doctor.stdout)).toContainEqual({ id: "lock", name: "lock", state: "ok", detail: "free" });
  expect(doctor.code).toBe(0);
});

test("after a kill the left-over host.json counts as not running", async () => {
  await using world = await startWorld(OFFLINE);
  await world.host().kill();
  const { code, stderr } = await cli(world.home, ["agent", "-m", "hello"]);
  expect(code).toBe(69);
  expect(stderr).toContain("laneway start");
});

test("chat by pipe lives through a kill of the host: every line answered, each answer shown once (G1, G2)", async () => {
  await using slow = await slowModel();
  await using world = await startWorld(settingsFor(slow.model.baseUrl));
  const child = spawn(process.execPath, [MAIN, "chat"], { env: childEnv(world.home), stdio: ["pipe", "pipe", "pipe"] });
  const [out, err, ended] = [text(child.stdout), text(child.stderr), once(child, "close")];
  child.stdin.end("one\ntwo\nthree\n");
  await until(() => expect(slow.asked).toContain("two"));
  await world.host().kill();
  await world.start();
  const [code] = await ended;
  expect({ code, out: await out }).toEqual({ code: 0, out: "echo: one\necho: two\necho: three\n" });
  expect(await err).toBe("connection lost, trying again\nconnected again\n");
});

test("agent --wait lives through a kill of the host", async () => {
  await using slow = await slowModel();
  await using world = await startWorld(settingsFor(slow.model.baseUrl));
  const answering = cli(world.home, ["agent", "-m", "patience", "--wait"]);
  await until(() => expect(slow.asked).toContain("patience"));
  await world.host().kill();
  await world.start();
  expect(await answering).toEqual({ code: 0, stdout: "echo: patience\n", stderr: "" });
});

test("what was answered while no terminal was there is shown by the next chat, once", async () => {
  await using world = await startWorld(OFFLINE);
  const sent = await cli(world.home, ["agent", "-m", "later", "--session", "work"]);
  await until(async () => {
    const [row] = rows((await cli(world.home, ["queue", "list", "--all", "--json"])).stdout);
    expect(row).toMatchObject({ id: Number(sent.stdout), state: "done" });
  });
  const first = await cli(world.home, ["chat", "--session", "work"]);
  expect(first).toMatchObject({ code: 0, stderr: "While you were away:\n" });
  expect(first.stdout).toContain("You wrote: later");
  expect(await cli(world.home, ["chat", "--session", "work"])).toEqual({ code: 0, stdout: "", stderr: "" });
});

test("a conversation at a terminal lives through a kill: the answer grows, breaks off, and comes once in the end (G1, G2)", async () => {
  await using slow = await slowModel(500);
  await using world = await startWorld(settingsFor(slow.model.baseUrl));
  const shown = terminal(60);
  const keys = keyboard();
  const shell = testShell(world.home, { input: keys, env: { LANEWAY_TOKEN: TOKEN, NO_COLOR: "1" } });
  const ended = run(["chat"], { ...shell, out: makeOutput(shown.stream, { NO_COLOR: "1" }) });
  await until(() => expect(shown.lines()).toContain(">"));
  keys.write("hello\r");
  await until(() => expect(shown.lines().at(-1)).toMatch(/^echo/));
  await world.host().kill();
  await until(() => expect(shown.lines()).toContain("connection lost, trying again"));
  keys.write("and another\r");
  await world.start();
  await until(() => expect(shown.lines()).toContain("echo: and another"));
  keys.write("/quit\r");
  expect(await ended).toBe(0);
  const lines = shown.lines();
  expect(lines.filter((line) => line === "echo: hello")).toHaveLength(1);
  expect(lines.filter((line) => line === "connection lost, trying again")).toHaveLength(1);
  expect(lines.indexOf("echo: hello")).toBeLessThan(lines.indexOf("echo: and another"));
});
