import { expect, test } from "vitest";
import { run } from "../../../src/cli/program.ts";
import { fakeClock } from "../../support/clock.ts";
import { type FakeHost, fakeHost, HANDLED, Refusal, testShell } from "./fake-host.ts";

const accepted = { command: 7, seq: 7, duplicate: false };
const answer = { seq: 8, class: "answer", text: "the answer" };
const done = { command: 7, state: "done", final: true, outcome: { reason: "answered" }, parts: [answer] };
const nothingElse = {
  items: [{ kind: "part", ...answer, command: 7, at: "2026-01-01T00:00:00.000Z", state: "ready" }],
  more: false,
};

async function agent(host: FakeHost, args: readonly string[], options: Parameters<typeof testShell>[1] = {}) {
  const shell = testShell(host.home.path, options);
  const code = await run(["agent", ...args], shell);
  return { code, out: shell.text.out(), err: shell.text.err() };
}

test("without --wait it prints the number of the command, for scripts", async () => {
  await using host = await fakeHost({ send: () => accepted });
  expect(await agent(host, ["-m", "hello"])).toEqual({ code: 0, out: "7\n", err: "" });
  expect(host.inputsOf("send")).toMatchObject([{ channel: "terminal", chat: "main", text: "hello" }]);
});

test.each([
  ["work", { channel: "terminal", chat: "work" }],
  ["agent:main:web:default:main", { channel: "web", chat: "main" }],
  ["agent:main:terminal:default:a.b", { channel: "terminal", chat: "a.b" }],
])("--session %s is a chat of its own", async (session, place) => {
  await using host = await fakeHost({ send: () => accepted });
  await agent(host, ["-m", "hello", "--session", session]);
  expect(host.inputsOf("send")).toMatchObject([place]);
});

test("-m - takes the whole of stdin, lines and all", async () => {
  await using host = await fakeHost({ send: () => accepted });
  await agent(host, ["-m", "-"], { input: "two\nlines\n" });
  expect(host.inputsOf("send")).toMatchObject([{ text: "two\nlines\n" }]);
});

test("--wait asks until the command has ended and prints its answer", async () => {
  let polls = 0;
  await using host = await fakeHost({
    send: () => accepted,
    wait: () => (++polls < 3 ? { ...done, state: "running", final: false, parts: [] } : done),
    history: () => nothingElse,
    ack: () => ({ acknowledged: 1 }),
  });
  expect(await agent(host, ["-m", "hello", "--wait"])).toEqual({ code: 0, out: "the answer\n", err: "" });
  expect(polls).toBe(3);
  expect(host.inputsOf("ack")).toMatchObject([{ seq: 8 }]);
});

test("an answer is not acknowledged over the head of a part that nobody has seen", async () => {
  const unseen = { ...nothingElse.items[0], seq: 3, command: 2, text: "unseen" };
  await using host = await fakeHost({
    send: () => accepted,
    wait: () => done,
    history: () => ({ items: [unseen, ...nothingElse.items], more: false }),
  });
  expect((await agent(host, ["-m", "hello", "--wait"])).code).toBe(0);
  expect(host.inputsOf("ack")).toEqual([]);
});

test.each(["failed", "dead", "cancelled"])(
  "a command that ends %s exits 1 and says why on stderr only",
  async (state) => {
    const parts = [{ seq: 8, class: "failure", text: "no backend answered" }];
    await using host = await fakeHost({
      send: () => accepted,
      wait: () => ({ command: 7, state, final: true, parts, outcome: { reason: "backends-failed" } }),
      history: () => ({ items: [], more: false }),
      ack: () => ({ acknowledged: 1 }),
    });
    const err = `laneway: command 7 ended ${state}: no backend answered\n`;
    expect(await agent(host, ["-m", "hello", "--wait"])).toEqual({ code: 1, out: "", err });
  },
);

test("--json gives one object with id, state, parts and outcome", async () => {
  await using host = await fakeHost({ send: () => accepted, wait: () => done, history: () => nothingElse });
  const queued = await agent(host, ["-m", "hello", "--json"]);
  expect(JSON.parse(queued.out)).toEqual({ id: 7, state: "queued", seq: 7, duplicate: false });
  const ended = await agent(host, ["-m", "hello", "--wait", "--json"]);
  expect(JSON.parse(ended.out)).toEqual({
    id: 7,
    state: "done",
    final: true,
    outcome: { reason: "answered" },
    parts: [answer],
  });
});

test("an acceptance whose answer was lost is asked for again with the same key, so nothing runs twice (G2)", async () => {
  let tries = 0;
  await using host = await fakeHost({
    send: (_, { response }) => {
      if (++tries > 2) return { ...accepted, duplicate: true };
      response.destroy();
      return HANDLED;
    },
  });
  expect((await agent(host, ["-m", "hello"])).out).toBe("7\n");
  const keys = host.inputsOf("send").map(({ key }) => key);
  expect(keys).toHaveLength(3);
  expect(new Set(keys).size).toBe(1);
});

test("two messages never share a key", async () => {
  await using host = await fakeHost({ send: () => accepted });
  await agent(host, ["-m", "hello"]);
  await agent(host, ["-m", "hello"]);
  expect(new Set(host.inputsOf("send").map(({ key }) => key)).size).toBe(2);
});

test("a full queue is said at once and exits 1; nothing is tried behind the person's back (G15)", async () => {
  await using host = await fakeHost({
    send: () => new Refusal(429, { code: "queue_full", message: "full", hint: "later" }),
  });
  expect(await agent(host, ["-m", "hello"])).toEqual({ code: 1, out: "", err: "laneway: full\nlater\n" });
  expect(host.inputsOf("send")).toHaveLength(1);
});

test("when the host stays away during the wait, the exit code is 69 and the message says that nothing is lost", async () => {
  const clock = fakeClock();
  await using host = await fakeHost({
    send: () => accepted,
    wait: (_, { response }) => {
      response.destroy();
      return HANDLED;
    },
  });
  const ending = agent(host, ["-m", "hello", "--wait"], { clock });
  let ended = false;
  void ending.finally(() => {
    ended = true;
  });
  while (!ended) await clock.advance(1_000);
  const { code, err } = await ending;
  expect(code).toBe(69);
  expect(err).toContain("the host went away while command 7 was being worked on");
  expect(err).toContain("laneway queue show 7");
});

test("on a terminal a wait of over a second shows a line that goes away again; in a pipe it never does", async () => {
  const clock = fakeClock();
  const polled = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  await using host = await fakeHost({
    send: () => accepted,
    wait: async () => {
      polled.resolve();
      await release.promise;
      return done;
    },
    history: () => nothingElse,
    ack: () => ({ acknowledged: 1 }),
  });
  const shell = testShell(host.home.path, { clock, columns: 80, env: { NO_COLOR: "1" } });
  const running = run(["agent", "-m", "hello", "--wait"], shell);
  await polled.promise;
  await clock.advance(999);
  expect(shell.text.err()).toBe("");
  await clock.advance(1);
  expect(shell.text.err()).toContain("command 7: queued (1 s)");
  release.resolve();
  await running;
  expect(shell.text.err().endsWith("\r\x1b[2K")).toBe(true);
  expect(clock.waiting()).toBe(0);
});
