import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ConfigError } from "../../../src/kernel/errors.ts";
import { systemIds } from "../../../src/kernel/ids.ts";
import type { Env } from "../../../src/settings/env.ts";
import { createPrivate } from "../../../src/settings/files.ts";
import type { HomePaths } from "../../../src/settings/home.ts";
import { settingsSchema } from "../../../src/settings/schema.ts";
import { deriveKey, readToken } from "../../../src/settings/token.ts";
import { testHome } from "./home-fixture.ts";

const tokenOf = (paths: HomePaths, env: Env = {}, gateway = {}) =>
  readToken({ settings: settingsSchema.parse({ gateway }), paths, env, ids: systemIds() });

test("the first start makes a strong private token, later starts keep it (SEC-R2)", async () => {
  await using home = await testHome();
  const token = tokenOf(home.paths);
  expect(token).toMatch(/^[\w-]{43}$/);
  expect(tokenOf(home.paths)).toBe(token);
  expect(readFileSync(home.paths.token, "utf8")).toBe(`${token}\n`);
  expect(statSync(home.paths.token).mode & 0o777).toBe(0o600);
  expect(readdirSync(home.paths.home)).toEqual(["token"]);
});

test("LANEWAY_TOKEN goes before the settings, and the settings before the home's own", async () => {
  await using home = await testHome();
  const gateway = { token: "settings-token-0123" };
  expect(tokenOf(home.paths, { LANEWAY_TOKEN: "env-token-0123456" }, gateway)).toBe("env-token-0123456");
  expect(tokenOf(home.paths, { LANEWAY_TOKEN: " " }, gateway)).toBe("settings-token-0123");
  expect(readdirSync(home.paths.home)).toEqual([]);
});

test("a token file that others can read refuses the start (SEC-2)", async () => {
  await using home = await testHome();
  tokenOf(home.paths);
  for (const mode of [0o644, 0o640, 0o604]) {
    chmodSync(home.paths.token, mode);
    expect(() => tokenOf(home.paths)).toThrow(ConfigError);
    expect(() => tokenOf(home.paths)).toThrow(/only its owner can read, but .* has mode 06/);
  }
});

test("a weak token is refused and not shown", async () => {
  await using home = await testHome();
  for (const weak of ["hunter2", "hunter2 hunter2 hunter2"]) {
    for (const read of [() => tokenOf(home.paths, { LANEWAY_TOKEN: weak }), () => fromFile(home.paths, weak)]) {
      expect(read).toThrow(ConfigError);
      expect(read).not.toThrow(/hunter2/);
    }
  }
});

function fromFile(paths: HomePaths, token: string): string {
  writeFileSync(paths.token, token, { mode: 0o600 });
  return tokenOf(paths);
}

test("of two processes that make the token at once the first one wins", async () => {
  await using home = await testHome();
  expect(createPrivate(home.paths.token, "first-0123456789ab\n")).toBe(true);
  expect(createPrivate(home.paths.token, "second-0123456789a\n")).toBe(false);
  expect(tokenOf(home.paths)).toBe("first-0123456789ab");
  expect(readdirSync(home.paths.home)).toEqual(["token"]);
});

test("keys for different purposes and tokens differ, and are the same after a restart", () => {
  const key = (token: string, purpose: string) => Buffer.from(deriveKey(token, purpose)).toString("hex");
  expect(key("a", "cookie")).toHaveLength(64);
  expect(key("a", "cookie")).toBe(key("a", "cookie"));
  expect(key("a", "cookie")).not.toBe(key("a", "code"));
  expect(key("a", "cookie")).not.toBe(key("b", "cookie"));
});
