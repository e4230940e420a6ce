import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, readdir, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { z } from "zod";
import { makeClient } from "../../../src/cli/host/client.ts";
import { AnswerLost, HostRefused, isFull, isPassing } from "../../../src/cli/host/errors.ts";
import { Aborted, ConfigError, EXIT, NotRunning } from "../../../src/kernel/errors.ts";
import { fakeClock } from "../../support/clock.ts";
import { fakeHost, HANDLED, privateHome, Refusal, TOKEN, testShell, writePrivate } from "./fake-host.ts";

const anything = z.unknown();
const call = (home: string, options: Parameters<typeof testShell>[1] = {}) =>
  makeClient(testShell(home, options)).call("ping", { a: 1 }, anything);

/** A process id that no process has: that of a child that has ended. */
function deadPid(): number {
  return spawnSync(process.execPath, ["-e", "0"]).pid;
}

test("a call carries the token and the input, and gives the answer in the expected form", async () => {
  await using host = await fakeHost({ ping: () => ({ pong: 1, more: true }) });
  const reply = await makeClient(testShell(host.home.path)).call("ping", { a: 1 }, z.object({ pong: z.number() }));
  expect(reply).toEqual({ pong: 1 });
  expect(host.calls).toMatchObject([{ verb: "ping", input: { a: 1 }, authorization: `Bearer ${TOKEN}` }]);
});

test("the token is LANEWAY_TOKEN, else the one of the settings, else the home's own file", async () => {
  await using host = await fakeHost({ ping: () => ({}) });
  await call(host.home.path);
  await writePrivate(host.home, "laneway.yaml", "gateway: { token: token-of-the-settings-012345 }\n");
  await call(host.home.path);
  await call(host.home.path, { env: { LANEWAY_TOKEN: "token-of-the-environment-01" } });
  const tokens = host.calls.map(({ authorization }) => authorization?.replace("Bearer ", ""));
  expect(tokens).toEqual([TOKEN, "token-of-the-settings-012345", "token-of-the-environment-01"]);
});

test("settings that cannot be used now do not keep people from the host", async () => {
  await using host = await fakeHost({ ping: () => ({}) });
  await writePrivate(host.home, "laneway.yaml", "gateway: { token: $" + "{NOT_SET_HERE} }\nnonsense: 1\n");
  await expect(call(host.home.path)).resolves.toEqual({});
});

test("without a token the error says where one was expected, and none is made", async () => {
  await using host = await fakeHost();
  await rm(host.home.at("token"));
  await expect(call(host.home.path)).rejects.toThrow(ConfigError);
  expect(await readdir(host.home.path)).toEqual(["host.json"]);
});

test("a token file that others can read is refused (SEC-R2)", async () => {
  await using host = await fakeHost({ ping: () => ({}) });
  await chmod(host.home.at("token"), 0o644);
  await expect(call(host.home.path)).rejects.toMatchObject({ exitCode: EXIT.settingsRefused });
  expect(host.calls).toEqual([]);
});

test("no host.json: not running, and the hint names the command that starts one", async () => {
  await using home = await privateHome();
  await expect(call(home.path)).rejects.toMatchObject({
    name: "NotRunning",
    exitCode: 69,
    message: `no host runs on ${home.path}`,
    hint: "Start one with `laneway start`.",
  });
});

test("a host.json whose process is dead counts as not running, whoever has its port now", async () => {
  await using host = await fakeHost({ ping: () => ({}) });
  await writePrivate(
    host.home,
    "host.json",
    JSON.stringify({ pid: deadPid(), address: host.address, startedAt: "2026-01-01T00:00:00.000Z" }),
  );
  await expect(call(host.home.path)).rejects.toThrow(NotRunning);
  expect(host.calls).toEqual([]);
});

test("a refused connection counts as not running", async () => {
  await using home = await privateHome();
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await writePrivate(
    home,
    "host.json",
    JSON.stringify({ pid: process.pid, address: `http://127.0.0.1:${port}`, startedAt: "2026-01-01T00:00:00.000Z" }),
  );
  await writePrivate(home, "token", TOKEN);
  await expect(call(home.path)).rejects.toThrow(NotRunning);
});

test.each([
  ["{", "cannot be read"],
  [JSON.stringify({ pid: process.pid, address: "ftp://x" }), "cannot be read"],
  [JSON.stringify({ pid: process.pid, startedAt: "2026-01-01T00:00:00.000Z" }), "still starting"],
])("host.json %s: not running, and the message says why", async (content, why) => {
  await using home = await privateHome();
  await writePrivate(home, "host.json", content);
  await expect(call(home.path)).rejects.toThrow(why);
  await expect(call(home.path)).rejects.toThrow(NotRunning);
});

test("a connection that breaks before the answer is told apart: the host may have acted", async () => {
  await using host = await fakeHost({
    ping: (_, { response }) => {
      response.destroy();
      return HANDLED;
    },
  });
  await expect(call(host.home.path)).rejects.toThrow(AnswerLost);
});

test("an answer that breaks off in the middle counts as lost", async () => {
  await using host = await fakeHost({
    ping: (_, { response }) => {
      response.writeHead(200, { "content-length": 100 }).write('{"a":');
      response.socket?.end();
      return HANDLED;
    },
  });
  await expect(call(host.home.path)).rejects.toThrow(AnswerLost);
});

test("a host that does not answer in time is given up, and nothing keeps the process alive", async () => {
  const asked = Promise.withResolvers<void>();
  await using host = await fakeHost({
    ping: () => {
      asked.resolve();
      return HANDLED;
    },
  });
  const clock = fakeClock();
  const outcome = expect(call(host.home.path, { clock })).rejects.toThrow("did not answer within 30 s");
  await asked.promise;
  await clock.advance(30_000);
  await outcome;
  expect(clock.waiting()).toBe(0);
});

test("a signal ends a call at once", async () => {
  await using host = await fakeHost({ ping: () => HANDLED });
  const stop = new AbortController();
  const calling = makeClient(testShell(host.home.path)).call("ping", {}, anything, { signal: stop.signal });
  stop.abort("enough");
  await expect(calling).rejects.toThrow(Aborted);
});

test.each([
  [400, "invalid_input", EXIT.usage],
  [404, "not_found", EXIT.workFailed],
  [429, "queue_full", EXIT.workFailed],
  [503, "store_unavailable", EXIT.workFailed],
])(
  "an error of the host with status %i and code %s keeps message and hint and exits %i",
  async (status, code, exitCode) => {
    await using host = await fakeHost({ ping: () => new Refusal(status, { code, message: "what", hint: "do" }) });
    await expect(call(host.home.path)).rejects.toMatchObject({
      name: "HostRefused",
      status,
      code,
      message: "what",
      hint: "do",
      exitCode,
    });
  },
);

test("a token that the host does not accept is said in our words, with what to set", async () => {
  await using host = await fakeHost({
    ping: () => new Refusal(401, { code: "unauthorized", message: "expected a cookie" }),
  });
  await expect(call(host.home.path)).rejects.toMatchObject({
    message: "the host does not accept this token",
    exitCode: 1,
  });
});

test.each(["not json", "[]"])("an answer of another form (%s) names the verb", async (body) => {
  await using host = await fakeHost({
    ping: (_, { response }) => {
      response.end(body);
      return HANDLED;
    },
  });
  const calling = makeClient(testShell(host.home.path)).call("ping", {}, z.object({ a: z.number() }));
  await expect(calling).rejects.toThrow("answer to ping has another form");
});

test("only what passes by itself is worth another try", () => {
  const refused = (status: number) => new HostRefused(status, { code: "x", message: "x" });
  expect([new NotRunning("x"), new AnswerLost("x"), refused(503)].map(isPassing)).toEqual([true, true, true]);
  expect([refused(400), refused(401), refused(429), new Error("x")].map(isPassing)).toEqual([
    false,
    false,
    false,
    false,
  ]);
  expect([refused(429), refused(503)].map(isFull)).toEqual([true, false]);
});
