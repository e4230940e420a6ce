import { once } from "node:events";
import { chmod } from "node:fs/promises";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { run } from "../../../src/cli/program.ts";
import { takeLock } from "../../../src/store/lock.ts";
import type { TemporaryFolder } from "../../support/files.ts";
import { fakeHost, privateHome, Refusal, testShell, writePrivate } from "./fake-host.ts";

interface Row {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly detail: string;
  readonly hint?: string;
}

async function doctor(home: TemporaryFolder | string, ...args: string[]) {
  const shell = testShell(typeof home === "string" ? home : home.path);
  const code = await run(["doctor", "--json", ...args], shell);
  expect(shell.text.err()).toBe("");
  const rows = shell.text
    .out()
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Row);
  return { code, rows, of: (name: string) => rows.find((row) => row.name === name) };
}

const anyPort = (home: TemporaryFolder) => writePrivate(home, "laneway.yaml", "gateway: { port: 0 }\n");

test("a good home without a host: everything is ok and the exit code is 0", async () => {
  await using home = await privateHome();
  await anyPort(home);
  const { code, rows } = await doctor(home);
  expect(code).toBe(0);
  expect(rows.map(({ id, state }) => [id, state])).toEqual([
    ["node", "ok"],
    ["home", "ok"],
    ["files", "ok"],
    ["file system", "ok"],
    ["settings", "ok"],
    ["host", "ok"],
    ["port", "ok"],
    ["lock", "ok"],
  ]);
});

test("no home yet is a warning, not a failure", async () => {
  await using home = await privateHome();
  const shell = testShell(home.at("new"));
  await writePrivate(home, "any-port.yaml", "gateway: { port: 0 }\n");
  expect(await run(["doctor", "--config", home.at("any-port.yaml")], shell)).toBe(0);
  expect(shell.text.out()).toMatch(/^home +warn .*The first `laneway start` makes it\.$/m);
});

test("a home that others can enter fails, with the command that closes it (SEC-R2)", async () => {
  await using home = await privateHome();
  await anyPort(home);
  await chmod(home.path, 0o755);
  const { code, of } = await doctor(home);
  expect(code).toBe(1);
  expect(of("home")).toMatchObject({ state: "fail", hint: `chmod 700 ${home.path}` });
});

test("a token that others can read fails; settings without a secret only warn (SEC-R2)", async () => {
  await using home = await privateHome();
  await anyPort(home);
  await chmod(home.at("laneway.yaml"), 0o644);
  const warned = await doctor(home);
  expect(warned.code).toBe(0);
  expect(warned.of("files")).toMatchObject({ state: "warn" });
  await writePrivate(home, "token", "x".repeat(40));
  await chmod(home.at("token"), 0o640);
  const failed = await doctor(home);
  expect(failed.code).toBe(1);
  expect(failed.of("files")).toMatchObject({ state: "fail", detail: expect.stringContaining("token") });
});

test("refused settings fail with the first problem and the way to all of them", async () => {
  await using home = await privateHome();
  await writePrivate(home, "laneway.yaml", "gateway: { port: 0 }\nlanes: { mian: 1 }\nnonsense: 1\n");
  const { code, of } = await doctor(home, "--config", home.at("laneway.yaml"));
  expect(code).toBe(1);
  expect(of("settings")?.detail).toMatch(/lanes\.mian \(line 2\).*\(and 1 more\)/);
  expect(of("settings")?.hint).toContain("config check");
});

test("a port that another program has fails", async () => {
  await using home = await privateHome();
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  await writePrivate(home, "laneway.yaml", `gateway: { port: ${port} }\n`);
  const { code, of } = await doctor(home);
  server.close();
  expect(code).toBe(1);
  expect(of("port")).toMatchObject({ state: "fail", detail: `another program listens on 127.0.0.1:${port}` });
});

test("a lock that another process holds fails, and looking does not take it away", async () => {
  await using home = await privateHome();
  await anyPort(home);
  const release = takeLock(home.at("lock.db"), () => undefined);
  const held = await doctor(home);
  expect(held.of("lock")).toMatchObject({ state: "fail" });
  expect(() => takeLock(home.at("lock.db"), () => undefined)).toThrow("another Laneway");
  release();
  expect((await doctor(home)).of("lock")).toMatchObject({ state: "ok" });
});

test("looking makes no lock file and no database", async () => {
  const { readdir } = await import("node:fs/promises");
  await using home = await privateHome();
  await anyPort(home);
  await doctor(home);
  expect((await readdir(home.path)).filter((name) => name.endsWith(".db"))).toEqual([]);
});

test("with a host its own checks are asked for, and port and lock are its business", async () => {
  await using host = await fakeHost({
    doctor: () => ({
      checks: [
        { name: "database", ok: true, detail: "ok" },
        { name: "outbox", ok: false, detail: "3 parts wait" },
      ],
    }),
  });
  const { code, rows, of } = await doctor(host.home);
  expect(code).toBe(1);
  expect(of("host")).toMatchObject({ state: "ok", detail: `process ${process.pid} answers at ${host.address}` });
  expect(of("outbox")).toMatchObject({ state: "fail", detail: "3 parts wait" });
  expect(rows.some(({ name }) => name === "port" || name === "lock")).toBe(false);
});

test("a host that does not answer as it should fails", async () => {
  await using host = await fakeHost({ doctor: () => new Refusal(500, { code: "internal", message: "broken" }) });
  const { code, of } = await doctor(host.home);
  expect(code).toBe(1);
  expect(of("host")).toMatchObject({ state: "fail", detail: expect.stringContaining("broken") });
});
