import { expect, test } from "vitest";
import { run } from "../../../src/cli/program.ts";
import { fakeClock } from "../../support/clock.ts";
import { type FakeHost, fakeHost, testShell } from "./fake-host.ts";

const AT = "2026-01-01T00:00:00.000Z";
const LATER = "2026-01-01T00:00:05.000Z";

const COMMAND = {
  id: 7,
  state: "running",
  lane: "main",
  priority: 1,
  session: "agent:main:terminal:default:main",
  source: "chat",
  acceptedAt: AT,
  startedAt: LATER,
  waitedMs: 5_000,
  strikes: 0,
  preview: "hello\n\x1b[31mred",
};
const PART = {
  id: 9,
  chat: "terminal:default:main",
  command: 7,
  class: "answer",
  state: "ready",
  attempts: 0,
  createdAt: AT,
  preview: "hi",
};
const STATUS = {
  version: "1.2.3",
  generation: 4,
  pid: 12,
  startedAt: AT,
  uptimeMs: 90_000,
  settings: { state: "last-good", path: "/x/laneway.yaml", problem: "lanes.mian: unknown key" },
  lanes: [{ lane: "main", size: 8, running: 1, queued: 2, oldestWaitMs: 3_000 }],
  channels: [{ name: "web", state: "up" }],
  backends: [{ name: "opus", kind: "anthropic", model: "m", state: "cooling", class: "rate-limit", until: LATER }],
  store: { paused: true },
  counts: { queued: 2, running: 1, outbox: { ready: 3 } },
};

async function laneway(host: FakeHost, args: readonly string[], columns?: number) {
  const clock = fakeClock(Date.parse(AT) + 60_000);
  const shell = testShell(
    host.home.path,
    columns === undefined ? { clock } : { clock, columns, env: { NO_COLOR: "1" } },
  );
  const code = await run(args, shell);
  expect(shell.text.err()).toBe("");
  return { code, out: shell.text.out() };
}
const parsed = (out: string) =>
  out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test("status --json is one object, as the host says it", async () => {
  await using host = await fakeHost({ status: () => STATUS });
  const { code, out } = await laneway(host, ["status", "--json"]);
  expect(code).toBe(0);
  expect(parsed(out)).toEqual([STATUS]);
});

test("status says for people what is wrong: refused settings, a disk that cannot be written", async () => {
  await using host = await fakeHost({ status: () => STATUS });
  const { out } = await laneway(host, ["status"]);
  expect(out).toContain("The settings file is not used: lanes.mian: unknown key");
  expect(out).toContain("The disk cannot be written");
  expect(out).toMatch(/^main +1 +8 +2 +3 s$/m);
  expect(out).toMatch(/^opus +anthropic +m +cooling +rate-limit$/m);
});

test("lanes --json: one object a line, with the lane as id", async () => {
  await using host = await fakeHost({
    lanes: () => ({ lanes: [...STATUS.lanes, { ...STATUS.lanes[0], lane: "cron" }] }),
  });
  const { out } = await laneway(host, ["lanes", "--json"]);
  expect(parsed(out).map(({ id, lane, oldestWaitMs }) => [id, lane, oldestWaitMs])).toEqual([
    ["main", "main", 3_000],
    ["cron", "cron", 3_000],
  ]);
});

test("queue list --json: id, state, ISO times, durations in ms; what the host adds passes through", async () => {
  await using host = await fakeHost({ "queue.list": () => ({ commands: [{ ...COMMAND, added: 1 }] }) });
  const { out } = await laneway(host, ["queue", "list", "--json", "--all", "--lane", "main", "--limit", "5"]);
  expect(parsed(out)).toEqual([{ ...COMMAND, added: 1 }]);
  expect(host.inputsOf("queue.list")).toEqual([{ all: true, lane: "main", limit: 5 }]);
});

test("times are ISO 8601 in JSON, whichever way the host writes them", async () => {
  await using host = await fakeHost({
    "queue.list": () => ({ commands: [{ ...COMMAND, acceptedAt: Date.parse(AT) }] }),
  });
  const { out } = await laneway(host, ["queue", "list", "--json"]);
  expect(parsed(out)[0]).toMatchObject({ acceptedAt: AT });
});

test("times are relative on a terminal and ISO 8601 in a pipe; no message can act on either", async () => {
  await using host = await fakeHost({ "queue.list": () => ({ commands: [COMMAND] }) });
  const piped = await laneway(host, ["queue", "list"]);
  const shown = await laneway(host, ["queue", "list"], 200);
  expect(piped.out).toContain(AT);
  expect(shown.out).toContain("1 min ago");
  for (const { out } of [piped, shown]) expect(out).toContain("hello\\n\\u{1b}[31mred");
});

test("an empty listing is one line for people and none for programs", async () => {
  await using host = await fakeHost({ "queue.list": () => ({ commands: [] }), "outbox.list": () => ({ parts: [] }) });
  expect((await laneway(host, ["queue", "list"])).out).toBe(
    "nothing waits and nothing runs; --all shows what has ended\n",
  );
  expect((await laneway(host, ["queue", "list", "--json"])).out).toBe("");
  expect((await laneway(host, ["outbox", "list", "--json"])).out).toBe("");
});

test("queue show joins the command, its steps and the delivery of its answer", async () => {
  const found = {
    command: {
      ...COMMAND,
      state: "failed",
      claim: 2,
      generation: 4,
      outcome: { reason: "limit", message: "too long" },
    },
    steps: [{ n: 1, kind: "model", name: "opus", state: "done", startedAt: AT, endedAt: LATER }],
    parts: [{ id: 9, state: "sent", class: "failure" }],
  };
  await using host = await fakeHost({ "queue.show": () => found });
  const { out } = await laneway(host, ["queue", "show", "7"]);
  expect(out).toMatch(/^outcome +limit: too long$/m);
  expect(out).toMatch(/^ +1 +model +opus +done +2026-.* +5 s$/m);
  expect(out).toMatch(/^ +9 +failure +sent$/m);
  const json = await laneway(host, ["queue", "show", "7", "--json"]);
  expect(parsed(json.out)).toEqual([{ ...found.command, steps: found.steps, parts: found.parts }]);
});

test("queue cancel exits 0 when the command was stopped, 1 when it had ended before", async () => {
  await using host = await fakeHost({ "queue.cancel": ({ id }) => ({ id, state: id === 7 ? "cancelled" : "done" }) });
  expect(await laneway(host, ["queue", "cancel", "7"])).toEqual({ code: 0, out: "cancelled command 7\n" });
  expect(await laneway(host, ["queue", "cancel", "8"])).toEqual({
    code: 1,
    out: "command 8 had ended before: it is done\n",
  });
});

test("queue retry names the new command", async () => {
  await using host = await fakeHost({ "queue.retry": ({ id }) => ({ id: 12, of: id }) });
  expect((await laneway(host, ["queue", "retry", "7"])).out).toBe("command 12 runs the message of 7 again\n");
  expect(parsed((await laneway(host, ["queue", "retry", "7", "--json"])).out)).toEqual([{ id: 12, of: 7 }]);
});

test("outbox list, resend and drop", async () => {
  await using host = await fakeHost({
    "outbox.list": () => ({ parts: [PART] }),
    "outbox.resend": ({ id }) => ({ id, state: "ready" }),
    "outbox.drop": ({ id }) => ({ id, state: "failed" }),
  });
  expect(parsed((await laneway(host, ["outbox", "list", "--json"])).out)).toEqual([PART]);
  expect((await laneway(host, ["outbox", "resend", "9"])).out).toBe("part 9 is sent again (ready)\n");
  expect((await laneway(host, ["outbox", "drop", "9"])).out).toBe("part 9 is dropped\n");
});

const SESSION = {
  key: "agent:main:web:default:main",
  agent: "main",
  channel: "web",
  chat: "main",
  messages: 2,
  lastAt: AT,
};
const MESSAGES = [
  { id: 1, role: "user", text: "two\nlines", at: AT },
  { id: 2, role: "assistant", text: "\x1b[2Jfine", at: LATER },
];

test("sessions list, show and export", async () => {
  await using host = await fakeHost({
    "sessions.list": () => ({ sessions: [SESSION] }),
    "sessions.show": ({ key }) => ({ session: { key }, messages: MESSAGES }),
  });
  expect(parsed((await laneway(host, ["sessions", "list", "--json"])).out)).toEqual([{ id: SESSION.key, ...SESSION }]);
  const shown = await laneway(host, ["sessions", "show", SESSION.key]);
  expect(shown.out).toBe(`user  ${AT}\ntwo\nlines\n\nassistant  ${LATER}\n\\u{1b}[2Jfine\n`);
  const exported = await laneway(host, ["sessions", "export", SESSION.key]);
  expect(exported.out).toBe(
    `# ${SESSION.key}\n\n## user, ${AT}\n\ntwo\nlines\n\n## assistant, ${LATER}\n\n\\u{1b}[2Jfine\n`,
  );
  expect(parsed((await laneway(host, ["sessions", "export", SESSION.key, "--json"])).out)).toEqual(MESSAGES);
});

test("link prints the address alone, so that a script can take it", async () => {
  await using host = await fakeHost({ link: () => ({ url: "http://127.0.0.1:1/#code" }) });
  expect((await laneway(host, ["link"])).out).toBe("http://127.0.0.1:1/#code\n");
});
