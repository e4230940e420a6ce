import { expect, test } from "vitest";
import { run } from "../../../src/cli/program.ts";
import { fakeHost, privateHome, Refusal, testShell } from "./fake-host.ts";

// The table of commands, in this process. What needs a process of its own is in test/scenario/cli-binary.test.ts.

async function laneway(home: string, args: readonly string[], options: Parameters<typeof testShell>[1] = {}) {
  const shell = testShell(home, options);
  const code = await run(args, shell);
  return { code, out: shell.text.out(), err: shell.text.err() };
}

const NOWHERE = "/nonexistent/laneway";

test("an unknown command is a usage error that names the nearest one", async () => {
  const { code, out, err } = await laneway(NOWHERE, ["lans"]);
  expect({ code, out, err }).toEqual({
    code: 2,
    out: "",
    err: "laneway: unknown command 'lans'\n(Did you mean lanes?)\n",
  });
});

test.each([
  [["lanes", "--jsno"], "(Did you mean --json?)"],
  [["queue", "shw", "1"], "(Did you mean show?)"],
  [["queue", "show"], "missing required argument 'id'"],
  [["queue", "show", "-1"], "Expected a number as the list shows it"],
  [["queue", "show", "x1"], "Expected a number as the list shows it"],
  [["queue", "list", "--limit", "0"], "Expected a number from 1 to 1000"],
  [["agent"], "'-m, --message <text>' not specified"],
  [["agent", "-m", " "], "the message is empty"],
  [["agent", "-m", "x", "--session", "a b"], "expected the name or the key of a session"],
  [["lanes", "extra"], "too many arguments"],
  [["config", "get", "a..b"], "expected a place in the settings"],
])("a usage error exits 2 and says what was expected: %j", async (args, message) => {
  const { code, out, err } = await laneway(NOWHERE, args);
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain(message);
});

test("without a command the help goes to stderr and the exit code is 2; --help goes to stdout with 0", async () => {
  const bare = await laneway(NOWHERE, []);
  const asked = await laneway(NOWHERE, ["--help"]);
  expect({ code: bare.code, out: bare.out }).toEqual({ code: 2, out: "" });
  expect({ code: asked.code, err: asked.err }).toEqual({ code: 0, err: "" });
  expect(bare.err).toBe(asked.out);
});

test("the help has one line a command, in groups", async () => {
  const { out } = await laneway(NOWHERE, ["--help"]);
  const groups = out.split("\n\n").filter((block) => /^(Host|Talk|Work|Settings):$/m.test(block));
  expect(groups.map((group) => group.split("\n")[0])).toEqual(["Host:", "Talk:", "Work:", "Settings:"]);
  const names = groups.flatMap((group) => group.split("\n").slice(1)).map((line) => line.trim().split(" ")[0]);
  expect(names).toEqual([
    "start",
    "status",
    "doctor",
    "link",
    "chat",
    "agent",
    "lanes",
    "queue",
    "outbox",
    "sessions",
    "pairing",
    "config",
  ]);
});

test.each([
  [["status"]],
  [["status", "--json"]],
  [["lanes"]],
  [["queue", "list"]],
  [["queue", "show", "1"]],
  [["queue", "cancel", "1"]],
  [["queue", "retry", "1"]],
  [["outbox", "list"]],
  [["outbox", "resend", "1"]],
  [["outbox", "drop", "1"]],
  [["pairing", "list"]],
  [["pairing", "approve", "abc"]],
  [["pairing", "deny", "telegram:default:1"]],
  [["sessions", "list"]],
  [["sessions", "show", "k"]],
  [["sessions", "export", "k"]],
  [["link"]],
  [["chat"]],
  [["agent", "-m", "hello"]],
  [["agent", "-m", "-", "--wait"]],
])("without a host %j exits 69 and names laneway start", async (args) => {
  const { code, out, err } = await laneway(NOWHERE, args, { input: "hello\n" });
  expect({ code, out }).toEqual({ code: 69, out: "" });
  expect(err).toBe(`laneway: no host runs on ${NOWHERE}\nStart one with \`laneway start\`.\n`);
});

test("an error of the host is shown with its hint, without escapes it may hold", async () => {
  await using host = await fakeHost({
    lanes: () => new Refusal(503, { code: "x", message: "no\x1b[2J", hint: "wait" }),
  });
  const { code, err } = await laneway(host.home.path, ["lanes"]);
  expect({ code, err }).toEqual({ code: 1, err: "laneway: no\\u{1b}[2J\nwait\n" });
});

test("a fault of our own exits 70 without a stack, with one when LANEWAY_DEBUG asks for it", async () => {
  await using home = await privateHome();
  const shell = (env: Record<string, string>) => {
    const made = testShell(home.path, { env });
    const broken = {
      ...made,
      paths: {
        ...made.paths,
        get hostFile(): string {
          throw new TypeError("a fault");
        },
      },
    };
    return { made, broken };
  };
  const plain = shell({});
  expect(await run(["lanes"], plain.broken)).toBe(70);
  expect(plain.made.text.err()).toMatch(/^laneway: a fault\nThis is a fault of Laneway/);
  expect(plain.made.text.err()).not.toContain("    at ");
  const debug = shell({ LANEWAY_DEBUG: "1" });
  expect(await run(["lanes"], debug.broken)).toBe(70);
  expect(debug.made.text.err()).toContain("    at ");
});
