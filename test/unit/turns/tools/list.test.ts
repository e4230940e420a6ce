// Proves what `list` shows of a folder it may list. What it may list is proved in workspace.test.ts and confinement.test.ts.
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { makeListTool } from "../../../../src/turns/tools/list.ts";
import { toolSpec } from "../../../../src/turns/tools/port.ts";
import { makePipe, temporaryFolder } from "../../../support/files.ts";
import { callTool } from "../../../support/tools.ts";

const list = makeListTool({ denied: [] });

test("names are sorted, folders end with a slash, files show their size, links only that they are links", async () => {
  await using folder = await temporaryFolder();
  await folder.write("b.txt", "12345");
  await folder.write("a/inner.txt", "");
  await folder.write("C", "1");
  await symlink("/somewhere/CANARY", folder.at("link"));
  await symlink("a", folder.at("a-link"));
  const expected = [".: 5 entries", "C  1", "a/", "a-link -> (link)", "b.txt  5", "link -> (link)"];
  expect(await callTool(list, {}, folder.path)).toEqual({ text: expected.join("\n"), isError: false });
});

test("depth shows what is in the folders, each below its folder, and enters no link", async () => {
  await using folder = await temporaryFolder();
  await folder.write("a/b/c/d.txt", "1");
  await folder.write("a/z.txt", "22");
  await folder.write("a.txt", "333");
  await symlink("a", folder.at("link"));
  const { text } = await callTool(list, { depth: 3 }, folder.path);
  expect(text.split("\n").slice(1)).toEqual(["a/", "a/b/", "a/b/c/", "a/z.txt  2", "a.txt  3", "link -> (link)"]);
  const { text: below } = await callTool(list, { path: "a/", depth: 2 }, folder.path);
  expect(below.split("\n")).toEqual(["a/: 3 entries", "b/", "b/c/", "z.txt  2"]);
});

test("names with line feeds, terminal escapes, control, bidi and zero-width characters are shown escaped (FILE-3, FILE-R3)", async () => {
  await using folder = await temporaryFolder();
  const names = [
    "new\nline",
    "\u001b[2Jclear",
    "bell\u0007",
    "c1\u009b31m",
    "gnp\u202eexe.txt",
    "zero\u200bwidth",
    "tag\u{e0041}",
    "tab\tcr\r",
  ];
  for (const name of names) await folder.write(`sub/${name}`, "");
  for (const input of [{ path: "sub" }, { depth: 2 }]) {
    const { text } = await callTool(list, input, folder.path);
    expect(text).not.toMatch(/[^\n\P{C}]/u);
    for (const shown of [
      "new\\nline",
      "\\u{1b}[2Jclear",
      "bell\\u{7}",
      "c1\\u{9b}31m",
      "gnp\\u{202e}exe.txt",
      "zero\\u{200b}width",
    ]) {
      expect(text).toContain(`${shown}  0`);
    }
  }
});

test("a folder with an escape in its name is shown escaped in the heading and when it cannot be listed (FILE-R3)", async () => {
  await using folder = await temporaryFolder();
  await folder.write("a\u001b[2J/file", "");
  expect((await callTool(list, { path: "a\u001b[2J" }, folder.path)).text).toMatch(/^a\\u\{1b\}\[2J: 1 entry\n/);
  expect((await callTool(list, { path: "b\u001b[2J" }, folder.path)).text).toMatch(/^"b\\u\{1b\}\[2J" does not exist/);
});

test("a name with leading dashes cannot be taken for an option (FILE-3)", async () => {
  await using folder = await temporaryFolder();
  await folder.write("-rf", "");
  await folder.write("--help/-x", "");
  const { text } = await callTool(list, { depth: 2 }, folder.path);
  expect(text.split("\n")).toEqual([".: 3 entries", "./--help/", "./--help/-x  0", "./-rf  0"]);
  expect((await callTool(list, { path: "--help" }, folder.path)).text).toContain("./-x  0");
});

test("at most 1000 entries are shown, the upper level first, and a line says that there is more", async () => {
  await using folder = await temporaryFolder();
  await mkdir(folder.at("a"));
  await Promise.all(Array.from({ length: 1200 }, (_, index) => writeFile(folder.at(`a/${index}`), "")));
  for (const name of ["b", "c"]) await folder.write(name, "");
  const lines = (await callTool(list, { depth: 2 }, folder.path)).text.split("\n");
  expect(lines).toHaveLength(1002);
  expect(lines[0]).toBe(".: 1000 entries");
  expect(lines).toEqual(expect.arrayContaining(["a/", "b  0", "c  0"]));
  expect(lines.at(-1)).toMatch(/^\[stopped at 1000 entries, there is more:/);
  expect((await callTool(list, {}, folder.path)).text).not.toContain("[");
});

test("a listing of long names made of escapes is cut at 256 KiB and says so", async () => {
  await using folder = await temporaryFolder();
  const name = (index: number) => `${index}${"\u0001".repeat(240)}`;
  await Promise.all(Array.from({ length: 400 }, (_, index) => writeFile(folder.at(name(index)), "")));
  const { text } = await callTool(list, {}, folder.path);
  expect(text.length).toBeLessThan(257 * 1024);
  expect(text).toMatch(/\n\[cut at 262144 characters:[^\n]*\]$/);
});

test.runIf(process.platform === "linux")(
  "pipes are shown as such, names that are not UTF-8 as unreadable",
  async () => {
    await using folder = await temporaryFolder();
    makePipe(folder.at("pipe"));
    await writeFile(Buffer.concat([Buffer.from(`${folder.path}/bad`), Buffer.from([0xff])]), "");
    const { text } = await callTool(list, {}, folder.path);
    expect(text.split("\n").slice(1)).toEqual(["bad\u{fffd}  (unreadable)", "pipe  (pipe, socket or device)"]);
  },
);

test.runIf(process.getuid?.() !== 0)(
  "a folder below that cannot be read is named as not listed, the others are",
  async () => {
    await using folder = await temporaryFolder();
    await folder.write("open/file", "");
    await mkdir(folder.at("shut"), { mode: 0 });
    const { text } = await callTool(list, { depth: 2 }, folder.path);
    expect(text.split("\n")).toEqual([".: 3 entries", "open/", "open/file  0", "shut/", "[not listed: shut/]"]);
    const result = await callTool(list, { path: "shut" }, folder.path);
    expect(result).toEqual({ text: '"shut" is not readable for the host.', isError: true });
  },
);

test("an empty folder has no entries; a file is refused with the hint to read it", async () => {
  await using folder = await temporaryFolder();
  await folder.write("file.txt", "");
  await mkdir(folder.at("empty"));
  expect((await callTool(list, { path: "empty" }, folder.path)).text).toBe("empty: 0 entries");
  const result = await callTool(list, { path: "file.txt" }, folder.path);
  expect(result).toEqual({ text: '"file.txt" is a file. Use read to see it.', isError: true });
});

test("listing stops when its signal aborts", async () => {
  await using folder = await temporaryFolder();
  const signal = AbortSignal.abort("stopped");
  await expect(list.run({ path: ".", depth: 1 }, { workspace: folder.path, signal })).rejects.toBe("stopped");
});

test("a depth outside 1 to 3 is refused, and nothing is required in the schema", async () => {
  for (const depth of [0, 4, 1.5]) expect((await callTool(list, { depth }, "/nowhere")).text).toMatch(/does not fit/);
  expect(toolSpec(list).schema).not.toHaveProperty("required");
});
