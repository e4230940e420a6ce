// Proves FILE-R1 (G25) for reading by attack: random trees and paths, and folders that change while they are opened.
import { mkdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { makeListTool } from "../../../../src/turns/tools/list.ts";
import { makeReadTool } from "../../../../src/turns/tools/read.ts";
import { temporaryFolder } from "../../../support/files.ts";
import { whileSwapping } from "../../../support/race.ts";
import { callTool } from "../../../support/tools.ts";

/** In every file outside, and in names outside that no path of a test ever says. */
const CANARY = "CANARY";
const HANG_GUARD_MS = 120_000;

/** BASE stands for the folder that holds the workspace `ws` and what lies outside it. */
const FRAGMENTS = [
  ...["..", "..", "..", ".", "", "a", "b", "c", "link", "link2", "secret.txt", "deep", "outside", "ws", "ws-sibling"],
  ...[
    "BASE",
    "BASE/ws",
    "BASE/outside",
    "BASE/ws-sibling",
    "BASE/ws/../outside",
    "/proc/self/root/BASE",
    "/proc/self/cwd",
  ],
  ...[
    "~",
    "~root",
    "$HOME",
    "%2e%2e",
    "%2f",
    "..%2f..",
    "\0",
    "..\0",
    "..\\",
    "\\..\\",
    "．．",
    "…",
    "..;",
    ". .",
    " ..",
    ".. ",
  ],
  ...["/etc/passwd", "/dev/stdin", "-", "--", "*", "a".repeat(300), "\u202e..", "\ud800"],
];
const nastyPath = fc
  .array(fc.constantFrom(...FRAGMENTS), { minLength: 1, maxLength: 7 })
  .chain((parts) => fc.constantFrom("/", "//", "/./").map((separator) => parts.join(separator)));
const PLACES = ["a", "b", "a/b", "a/c", "a/b/c", "link", "link2", "a/link", "a/b/link", "secret.txt", "a/secret.txt"];
/** Tried in each tree: one that must be read, two that must be refused. */
const KNOWN = ["known/secret.txt", "known/out/secret.txt", "known/out/deep"];
const planted = fc.record({
  at: fc.constantFrom(...PLACES),
  as: fc.oneof(
    fc.constant("folder"),
    fc.constant("file"),
    nastyPath.map((target) => ({ target })),
  ),
});
const attack = fc.record({
  tree: fc.array(planted, { maxLength: 10 }),
  paths: fc.array(nastyPath, { minLength: 5, maxLength: 20 }),
  viaLink: fc.boolean(),
});

async function plant(base: string, tree: readonly { at: string; as: string | { target: string } }[]) {
  for (const folder of ["outside/deep", "ws-sibling/deep"]) {
    await mkdir(path.join(base, folder), { recursive: true });
    await writeFile(path.join(base, folder, "secret.txt"), CANARY);
    await writeFile(path.join(base, path.dirname(folder), "secret.txt"), CANARY);
    await writeFile(path.join(base, folder, `${CANARY}-name`), "");
  }
  await writeFile(path.join(base, `${CANARY}-beside`), "");
  await mkdir(path.join(base, "ws"));
  await symlink("ws", path.join(base, "ws-link"));
  await mkdir(path.join(base, "ws/known"));
  await writeFile(path.join(base, "ws/known/secret.txt"), "INSIDE");
  await symlink("../../outside", path.join(base, "ws/known/out"));
  for (const { at, as } of tree) {
    const where = path.join(base, "ws", at);
    // Two may want one place, or a place below a file: the first wins.
    if (as === "folder") await mkdir(where, { recursive: true }).catch(() => {});
    else if (as === "file") await writeFile(where, "INSIDE").catch(() => {});
    else if (typeof as === "object") await symlink(as.target.replaceAll("BASE", base), where).catch(() => {});
  }
}

describe.each(["descriptor", "realpath"] as const)("by %s", (means) => {
  const read = makeReadTool({ denied: [], means });
  const list = makeListTool({ denied: [], means });

  async function attackBoth(wanted: string, workspace: string): Promise<string> {
    const got = await callTool(read, { path: wanted }, workspace);
    const listed = await callTool(list, { path: wanted, depth: 3 }, workspace);
    expect(got.text + listed.text).not.toContain(CANARY);
    expect(got.text).not.toContain("root:");
    if (!got.isError) expect(got.text).toBe("INSIDE");
    return got.text;
  }

  test("no tree of links and no way to write a path shows anything from outside (FILE-R1)", {
    timeout: HANG_GUARD_MS,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(attack, async ({ tree, paths, viaLink }) => {
        await using base = await temporaryFolder();
        await plant(base.path, tree);
        const workspace = base.at(viaLink ? "ws-link" : "ws");
        for (const wanted of [...paths, ...PLACES]) await attackBoth(wanted.replaceAll("BASE", base.path), workspace);
        const [inside, ...outside] = await Promise.all(KNOWN.map((wanted) => attackBoth(wanted, workspace)));
        expect(inside).toBe("INSIDE");
        for (const text of outside) expect(text).toContain("is outside the workspace");
      }),
      { numRuns: 40 },
    );
  });
});

/** `ws/taken` is in turn a folder of the workspace and a link to `outside`, which holds the same names. */
async function swappable(base: string) {
  for (const [folder, content] of [
    ["ws/folder/deep", "INSIDE"],
    ["outside/deep", CANARY],
  ] as const) {
    await mkdir(path.join(base, folder), { recursive: true });
    await writeFile(path.join(base, folder, "file.txt"), content);
    await writeFile(path.join(base, folder, `${content}-name`), "");
  }
  await symlink("../outside", path.join(base, "ws/link"));
  const at = (name: string) => path.join(base, "ws", name);
  return { name: at("taken"), folder: at("folder"), link: at("link") };
}

describe.runIf(process.platform === "linux")("while a folder is swapped for a link that leads outside", () => {
  test("read gives the file inside or refuses, never the one outside (FILE-R1)", {
    timeout: HANG_GUARD_MS,
  }, async () => {
    await using base = await temporaryFolder();
    const swap = await swappable(base.path);
    const read = makeReadTool({ denied: [] });
    const results = await whileSwapping(swap, 2000, () =>
      callTool(read, { path: "taken/deep/file.txt" }, base.at("ws")),
    );
    expect(new Set(results.filter((one) => !one.isError).map((one) => one.text))).toEqual(new Set(["INSIDE"]));
    // Both sides of the swap were met, so that the race was run.
    expect(results.some((one) => one.text.includes("is outside the workspace"))).toBe(true);
  });

  test("list names what is inside or refuses, never what is outside (FILE-R1)", {
    timeout: HANG_GUARD_MS,
  }, async () => {
    await using base = await temporaryFolder();
    const swap = await swappable(base.path);
    const list = makeListTool({ denied: [] });
    const paths = [{ path: "taken/deep" }, { path: ".", depth: 3 }];
    const results = await whileSwapping(swap, 300, () =>
      Promise.all(paths.map((one) => callTool(list, one, base.at("ws")))),
    );
    const text = results
      .flat()
      .map((one) => one.text)
      .join("\n");
    expect(text).not.toContain(CANARY);
    expect(text).toContain("INSIDE-name");
    expect(text).toContain("taken -> (link)");
  });
});
