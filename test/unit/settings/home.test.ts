import { chmodSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { ConfigError } from "../../../src/kernel/errors.ts";
import { homePaths, prepareHome, resolvePath } from "../../../src/settings/home.ts";
import { temporaryFolder } from "../../support/files.ts";

const mask = process.umask();
afterEach(() => {
  process.umask(mask);
});

const modeOf = (path: string) => statSync(path).mode & 0o777;

test("the home is ~/.laneway unless LANEWAY_HOME names another, and every path in it is absolute", () => {
  expect(homePaths({ HOME: "/home/ada" }).home).toBe("/home/ada/.laneway");
  expect(homePaths({ HOME: "/home/ada", LANEWAY_HOME: " " }).home).toBe("/home/ada/.laneway");
  expect(homePaths({}).home).toBe(join(homedir(), ".laneway"));
  expect(homePaths({ HOME: "/home/ada", LANEWAY_HOME: "~/x" }).home).toBe("/home/ada/x");
  expect(homePaths({ LANEWAY_HOME: "relative" }).home).toBe(join(process.cwd(), "relative"));
  expect(homePaths({ LANEWAY_HOME: "/srv/l" })).toEqual({
    home: "/srv/l",
    settings: "/srv/l/laneway.yaml",
    lastGood: "/srv/l/laneway.last-good.yaml",
    db: "/srv/l/laneway.db",
    lockDb: "/srv/l/lock.db",
    workspace: "/srv/l/workspace",
    cache: "/srv/l/cache",
    logs: "/srv/l/logs",
    media: "/srv/l/media",
    token: "/srv/l/token",
    hostFile: "/srv/l/host.json",
  });
});

test("a path a person wrote is relative to its base, absolute, or in the person's own folder", () => {
  expect(resolvePath("/base", "a/b", {})).toBe("/base/a/b");
  expect(resolvePath("/base", "/a", {})).toBe("/a");
  expect(resolvePath("/base", "~", { HOME: "/home/ada" })).toBe("/home/ada");
  expect(resolvePath("/base", "~ada", { HOME: "/home/ada" })).toBe("/base/~ada");
});

test("a home is made with private folders, and what the process writes later is private too (SEC-R2)", async () => {
  await using folder = await temporaryFolder();
  process.umask(0);
  const paths = homePaths({ LANEWAY_HOME: folder.at("a/b/home") });
  prepareHome(paths);
  for (const path of [paths.home, paths.workspace, paths.logs, paths.media, paths.cache])
    expect(modeOf(path)).toBe(0o700);
  expect(modeOf(await folder.write("later", ""))).toBe(0o600);
  prepareHome(paths);
  expect(readdirSync(paths.home).sort()).toEqual(["cache", "logs", "media", "workspace"]);
});

test("an open home that is empty or ours is closed (SEC-R2)", async () => {
  await using folder = await temporaryFolder();
  for (const [name, content] of [
    ["empty", undefined],
    ["volume", "lost+found"],
    ["ours", "laneway.yaml"],
  ] as const) {
    const home = folder.at(name);
    mkdirSync(home);
    if (content !== undefined) await folder.write(`${name}/${content}`, "");
    chmodSync(home, 0o755);
    prepareHome(homePaths({ LANEWAY_HOME: home }));
    expect(modeOf(home)).toBe(0o700);
  }
});

test("an open folder that serves something else is refused and left as it is (SEC-R2)", async () => {
  await using folder = await temporaryFolder();
  await folder.write("site/index.html", "");
  chmodSync(folder.at("site"), 0o755);
  const start = () => prepareHome(homePaths({ LANEWAY_HOME: folder.at("site") }));
  expect(start).toThrow(ConfigError);
  expect(start).toThrow(/to be private \(mode 0700\), but it has mode 0755 and holds other things/);
  expect(modeOf(folder.at("site"))).toBe(0o755);
  expect(readdirSync(folder.at("site"))).toEqual(["index.html"]);
});

test("a home that is a file, lies below a file or holds a file in place of a folder is refused with a clear sentence", async () => {
  await using folder = await temporaryFolder();
  const file = await folder.write("file", "");
  await folder.write("home/logs", "");
  chmodSync(folder.at("home"), 0o700);
  for (const home of [file, join(file, "below"), folder.at("home")]) {
    const start = () => prepareHome(homePaths({ LANEWAY_HOME: home }));
    expect(start).toThrow(ConfigError);
    expect(start).toThrow(/expected a folder at .*, but a file is in the way/);
  }
});

test("a home that cannot be written is refused with a clear sentence", async () => {
  await using folder = await temporaryFolder();
  const closed = folder.at("closed");
  mkdirSync(closed, { mode: 0o500 });
  // Permissions do not bind root: for it the kernel's own folder is the one that takes no files.
  const home = process.getuid?.() === 0 ? "/proc/laneway" : join(closed, "home");
  const start = () => prepareHome(homePaths({ LANEWAY_HOME: home }));
  expect(start).toThrow(ConfigError);
  expect(start).toThrow(/expected to be able to make the folder/);
});
