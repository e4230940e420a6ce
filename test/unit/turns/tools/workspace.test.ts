// Proves which paths of a workspace open and which do not, by name: FILE-R1 with its case FILE-1 (G25), and the product's own files.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { link, mkdir, open, readdir, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { makeListTool } from "../../../../src/turns/tools/list.ts";
import { makeReadTool } from "../../../../src/turns/tools/read.ts";
import { makePipe, type TemporaryFolder, temporaryFolder } from "../../../support/files.ts";
import { callTool } from "../../../support/tools.ts";

const OUTSIDE = /is outside the workspace/;
const MISSING = /does not exist in the workspace/;
const CLOSED = /belongs to the host itself/;
const SPECIAL = /neither a file nor a folder/;
const onLinux = process.platform === "linux";

/** `ws` is the workspace; `outside` and `ws-other` are not. Each secret.txt holds CANARY, the other files INSIDE. */
async function planted(): Promise<TemporaryFolder> {
  const base = await temporaryFolder();
  await base.write("outside/deep/secret.txt", "CANARY");
  await base.write("outside/secret.txt", "CANARY");
  await base.write("ws-other/secret.txt", "CANARY");
  await base.write("ws/in.txt", "INSIDE");
  await base.write("ws/a/b/in.txt", "INSIDE");
  return base;
}

describe.each(["descriptor", "realpath"] as const)("by %s", (means) => {
  const read = makeReadTool({ denied: [], means });
  const list = makeListTool({ denied: [], means });

  const outsidePaths: readonly (readonly [what: string, path: string])[] = [
    ["dots that climb out", "../outside/secret.txt"],
    ["dots that climb to the root of the file system", `${"../".repeat(40)}etc/passwd`],
    ["dots after a folder", "a/../../outside/secret.txt"],
    ["an absolute path", "BASE/outside/secret.txt"],
    ["an absolute path that begins inside", "BASE/ws/../outside/secret.txt"],
    ["a sibling that shares the prefix", "../ws-other/secret.txt"],
    ["a sibling that shares the prefix, absolute", "BASE/ws-other/secret.txt"],
    ["a NUL byte", "in.txt\0"],
    ["a NUL byte behind dots", "../outside/secret.txt\0.md"],
    ["the folder above", ".."],
    ["the root of the file system", "/"],
    ["another process's view", `/proc/self/root/BASE/outside/secret.txt`],
  ];

  test.each(outsidePaths)("%s is refused as outside (FILE-1)", async (_what, wanted) => {
    await using base = await planted();
    const path = wanted.replace("BASE", base.path);
    for (const tool of [read, list]) {
      const result = await callTool(tool, { path }, base.at("ws"));
      expect(result).toEqual({ text: expect.stringMatching(OUTSIDE), isError: true });
    }
  });

  test.each([
    "~",
    "~/secret.txt",
    "~root/secret.txt",
    "%2e%2e/outside/secret.txt",
    "..%2foutside",
    "..\\outside\\secret.txt",
    "．．/outside",
  ])("%s is taken literally and does not exist (FILE-1)", async (path) => {
    await using base = await planted();
    expect(await callTool(read, { path }, base.at("ws"))).toEqual({
      text: expect.stringMatching(MISSING),
      isError: true,
    });
  });

  test("names that look like tricks are ordinary names when they exist (FILE-1)", async () => {
    await using base = await planted();
    for (const path of ["~", "%2e%2e/x", "..x", "...", "-rf", " .. "]) {
      await base.write(`ws/${path}`, "INSIDE");
      expect(await callTool(read, { path }, base.at("ws"))).toEqual({ text: "INSIDE", isError: false });
    }
  });

  test("links that lead outside are refused at any depth, however they are written (FILE-R1)", async () => {
    await using base = await planted();
    const links: readonly (readonly [at: string, target: string])[] = [
      ["file", "../outside/secret.txt"],
      ["absolute", base.at("outside/secret.txt")],
      ["a/b/deep", "../../../outside/secret.txt"],
      ["a/chain", "../file"],
      ["up", ".."],
      ["a/self", "/proc/self/root"],
      ["prefix", base.at("ws-other/secret.txt")],
    ];
    for (const [at, target] of links) await symlink(target, base.at(`ws/${at}`));
    await symlink("../outside", base.at("ws/folder"));
    const below = ["folder/secret.txt", "folder/deep/secret.txt", "a/../folder/secret.txt", "up/outside/secret.txt"];
    for (const path of [...links.map(([at]) => at), ...below, `a/self${base.path}/outside/secret.txt`]) {
      const result = await callTool(read, { path }, base.at("ws"));
      expect(result).toEqual({ text: expect.stringMatching(OUTSIDE), isError: true });
    }
    expect((await callTool(list, { path: "folder" }, base.at("ws"))).text).toMatch(OUTSIDE);
  });

  test("the answer does not tell whether something outside exists (FILE-R1)", async () => {
    await using base = await planted();
    await symlink("../outside", base.at("ws/folder"));
    await symlink("../outside/missing", base.at("ws/dangling"));
    await symlink("../outside/secret.txt", base.at("ws/pointing"));
    const answers = [
      "folder/secret.txt",
      "folder/missing",
      "folder/missing/x",
      "dangling",
      "pointing",
      "../outside",
      "../missing",
    ].map(async (path) => (await callTool(read, { path }, base.at("ws"))).text.replace(`"${path}"`, "it"));
    expect(new Set(await Promise.all(answers)).size).toBe(1);
  });

  test("links and absolute paths that stay inside are followed, also when the root is a link itself", async () => {
    await using base = await planted();
    await symlink("ws", base.at("root-link"));
    await symlink("a/b/in.txt", base.at("ws/relative"));
    await symlink("../../in.txt", base.at("ws/a/b/up"));
    await symlink(base.at("ws/a"), base.at("ws/absolute"));
    await symlink(base.at("root-link/a"), base.at("ws/by-root-link"));
    const paths = ["in.txt", "./a//b/./in.txt", "a/b/../../in.txt", "relative", "a/b/up", "absolute/b/in.txt"];
    const whole = ["ws/a/b/in.txt", "ws/./absolute/b/in.txt"].map((name) => base.at(name));
    for (const root of ["ws", "root-link"]) {
      for (const path of [...paths, ...whole, base.at(`${root}/in.txt`)]) {
        expect(await callTool(read, { path }, base.at(root))).toEqual({ text: "INSIDE", isError: false });
      }
    }
    expect((await callTool(read, { path: "by-root-link/b/in.txt" }, base.at("root-link"))).text).toBe("INSIDE");
  });

  test("a loop of links and a path of too many steps end with a plain answer", async () => {
    await using base = await planted();
    await symlink("loop-b", base.at("ws/loop-a"));
    await symlink("loop-a", base.at("ws/loop-b"));
    for (const path of ["loop-a", "loop-a/x", `${"a/../".repeat(600)}missing`, "x".repeat(300), "in.txt/x"]) {
      expect((await callTool(read, { path }, base.at("ws"))).isError).toBe(true);
    }
  });

  test.runIf(onLinux)("pipes, sockets and devices are refused without being opened (FILE-R1)", async () => {
    await using base = await planted();
    makePipe(base.at("ws/pipe"));
    const server = createServer().listen(base.at("ws/socket"));
    await once(server, "listening");
    try {
      for (const path of ["pipe", "socket"]) {
        expect((await callTool(read, { path }, base.at("ws"))).text).toMatch(SPECIAL);
        expect((await callTool(list, { path }, base.at("ws"))).text).toMatch(SPECIAL);
      }
      expect((await callTool(read, { path: "zero" }, "/dev")).text).toMatch(SPECIAL);
    } finally {
      server.close();
    }
  });

  test.runIf(onLinux)(
    "what the kernel shows under /proc is closed even when the workspace is the whole machine (SEC-R1)",
    async () => {
      await using base = await planted();
      await using secret = await open(base.at("outside/secret.txt"));
      for (const path of [
        "proc/self/environ",
        "/proc/self/environ",
        "/proc/self/../self/environ",
        "proc/1/environ",
        "sys/kernel",
      ]) {
        expect((await callTool(read, { path }, "/")).text).toMatch(CLOSED);
      }
      // The link of an open descriptor, by which a process reaches a file whose folder it could not.
      await symlink(`/proc/self/fd/${secret.fd}`, base.at("ws/descriptor"));
      expect((await callTool(read, { path: "descriptor" }, base.at("ws"))).text).toMatch(OUTSIDE);
    },
  );

  test.runIf(onLinux)("no call leaves a descriptor open", async () => {
    await using base = await planted();
    await symlink("../outside", base.at("ws/folder"));
    await base.write("ws/data.bin", new Uint8Array([0, 1]));
    const before = (await readdir("/proc/self/fd")).length;
    for (const path of [
      "in.txt",
      "a/b/in.txt",
      "folder/secret.txt",
      "missing/x",
      "../x",
      "a",
      "data.bin",
      "in.txt/x",
    ]) {
      await callTool(read, { path }, base.at("ws"));
      await callTool(list, { path, depth: 3 }, base.at("ws"));
    }
    expect((await readdir("/proc/self/fd")).length).toBe(before);
  });
});

/** A home of the product that is, by a mistake of the owner, the workspace too. */
async function homeAsWorkspace() {
  const base = await temporaryFolder();
  const own = ["laneway.db", "laneway.db-wal", "laneway.db-shm", "lock.db", "token", "laneway.yaml", "logs/today.log"];
  for (const name of own) await base.write(`home/${name}`, "CANARY");
  await base.write("home/workspace/note.txt", "INSIDE");
  const denied = ["laneway.db", "lock.db", "token", "laneway.yaml", "logs"].map((name) => base.at(`home/${name}`));
  return { base, own, denied };
}

describe.each(["descriptor", "realpath"] as const)("the product's own files, by %s", (means) => {
  test("are closed when the workspace is the home folder, whatever name leads to them (FILE-R1, SEC-R1)", async () => {
    const { base, own, denied } = await homeAsWorkspace();
    await using _ = base;
    await symlink("token", base.at("home/link"));
    await symlink("../logs", base.at("home/workspace/logs-link"));
    await link(base.at("home/token"), base.at("home/workspace/hard"));
    await link(base.at("home/laneway.db-wal"), base.at("home/workspace/hard-wal"));
    await symlink("home", base.at("home-link"));
    const read = makeReadTool({ denied, means });
    const names = [
      "link",
      "workspace/../token",
      "workspace/logs-link/today.log",
      "workspace/hard",
      "workspace/hard-wal",
    ];
    for (const path of [...own, ...names, base.at("home/token")]) {
      for (const root of ["home", "home-link"]) {
        expect(await callTool(read, { path }, base.at(root))).toEqual({
          text: expect.stringMatching(CLOSED),
          isError: true,
        });
      }
    }
    expect((await callTool(read, { path: "workspace/note.txt" }, base.at("home"))).text).toBe("INSIDE");
  });

  test("are closed when the settings name them through a link, and a file that replaces one is closed too", async () => {
    const { base } = await homeAsWorkspace();
    await using _ = base;
    await symlink("home", base.at("home-link"));
    const read = makeReadTool({ denied: [base.at("home-link/token"), base.at("home-link/later")], means });
    await writeFile(base.at("home/later"), "CANARY");
    for (const path of ["token", "later"])
      expect((await callTool(read, { path }, base.at("home"))).text).toMatch(CLOSED);
  });

  test("are named in a listing as closed, without their size, and their folders are not entered", async () => {
    const { base, denied } = await homeAsWorkspace();
    await using _ = base;
    const { text } = await callTool(makeListTool({ denied, means }), { depth: 3 }, base.at("home"));
    expect(text).toContain("token  (closed to tools)\n");
    expect(text).toContain("logs  (closed to tools)\n");
    expect(text).not.toContain("today.log");
  });
});

test.each(["descriptor", "realpath"] as const)(
  "reading and listing by %s, the lock of a database stays held, also through its hard links (G13)",
  async (means) => {
    await using base = await temporaryFolder();
    const file = base.at("lock.db");
    const database = new Database(file);
    try {
      database.exec("CREATE TABLE held (x); BEGIN EXCLUSIVE");
      await mkdir(base.at("sub"));
      await link(file, base.at("sub/hard.db"));
      await symlink("lock.db", base.at("link.db"));
      expect(tryLock(file)).toBe("SQLITE_BUSY");
      const deps = { denied: [file], means };
      for (const path of ["lock.db", "sub/hard.db", "link.db", "sub/../lock.db", file]) {
        expect((await callTool(makeReadTool(deps), { path }, base.path)).text).toMatch(CLOSED);
        await callTool(makeListTool(deps), { path, depth: 3 }, base.path);
      }
      await callTool(makeListTool(deps), { depth: 3 }, base.path);
      expect(tryLock(file)).toBe("SQLITE_BUSY");
    } finally {
      database.close();
    }
  },
);

/** What another process gets when it wants the lock: locks of one's own process do not count. */
function tryLock(file: string): string {
  const library = createRequire(import.meta.url).resolve("better-sqlite3");
  const program = `
    const database = new (require(process.argv[1]))(process.argv[2], { timeout: 0 });
    try { database.exec("BEGIN EXCLUSIVE"); console.log("locked"); } catch (thrown) { console.log(thrown.code); }`;
  return execFileSync(process.execPath, ["-e", program, library, file], { encoding: "utf8" }).trim();
}
