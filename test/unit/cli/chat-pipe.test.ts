import { PassThrough, Writable } from "node:stream";
import { expect, test } from "vitest";
import { run } from "../../../src/cli/program.ts";
import { makeOutput } from "../../../src/cli/shell.ts";
import { type FakeHost, fakeHost, HANDLED, Refusal, testShell } from "./fake-host.ts";

interface Row {
  readonly seq: number;
  readonly kind: "person" | "part";
  readonly command: number;
  readonly text: string;
  readonly at: string;
  readonly class?: string;
  readonly key?: unknown;
  state: string;
}

/** The rows of one chat, as a host keeps them: a message is answered at once by a part. */
function chatOfRows(end = "done") {
  const rows: Row[] = [];
  const at = "2026-01-01T00:00:00.000Z";
  const add = (row: Omit<Row, "seq" | "at">) => {
    rows.push({ seq: rows.length + 1, at, ...row });
    return rows.length;
  };
  const verbs = {
    history: () => ({ items: rows, more: false }),
    ack: ({ seq }: Record<string, unknown>) => {
      const ready = rows.filter((row) => row.kind === "part" && row.state === "ready" && row.seq <= Number(seq));
      for (const row of ready) row.state = "sent";
      return { acknowledged: ready.length };
    },
    send: ({ text, key }: Record<string, unknown>) => {
      const earlier = rows.find((row) => row.key === key);
      if (earlier !== undefined) return { command: earlier.seq, seq: earlier.seq, duplicate: true };
      const command = rows.length + 1;
      add({ kind: "person", command, text: String(text), state: end, key });
      add({ kind: "part", command, text: `re: ${text}`, state: "ready", class: end === "done" ? "answer" : "failure" });
      return { command, seq: command, duplicate: false };
    },
    wait: ({ command }: Record<string, unknown>) => ({ command, state: end, final: true, parts: [] }),
  };
  return { rows, verbs, add };
}

async function chat(host: FakeHost, input: string, args: readonly string[] = []) {
  const shell = testShell(host.home.path, { input });
  const code = await run(["chat", ...args], shell);
  return { code, out: shell.text.out(), err: shell.text.err() };
}

test("each line is a message, blank ones are not, and it ends when all are answered", async () => {
  const { verbs } = chatOfRows();
  await using host = await fakeHost(verbs);
  const { code, out } = await chat(host, "one\n\ntwo\r\n  \nlast");
  expect({ code, out }).toEqual({ code: 0, out: "re: one\nre: two\nre: last\n" });
  expect(host.inputsOf("send").map(({ text }) => text)).toEqual(["one", "two", "last"]);
});

test("a message is sent when the one before it is answered, so that answers keep their order", async () => {
  const { verbs } = chatOfRows();
  await using host = await fakeHost(verbs);
  await chat(host, "one\ntwo\n");
  const order = host.calls.map(({ verb }) => verb).filter((verb) => verb === "send" || verb === "wait");
  expect(order).toEqual(["send", "wait", "send", "wait"]);
});

test("/quit ends it, and nothing after it is sent", async () => {
  await using host = await fakeHost(chatOfRows().verbs);
  expect((await chat(host, "one\n/quit\ntwo\n")).out).toBe("re: one\n");
});

test("--session names the chat of every call", async () => {
  await using host = await fakeHost(chatOfRows().verbs);
  await chat(host, "one\n", ["--session", "work"]);
  const places = host.calls
    .filter(({ verb }) => verb !== "wait")
    .map(({ input }) => `${input["channel"]}:${input["chat"]}`);
  expect(new Set(places)).toEqual(new Set(["terminal:work"]));
});

test("what came while nobody was there is shown first and acknowledged, once", async () => {
  const { verbs, add } = chatOfRows();
  add({ kind: "part", command: 1, text: "from before", state: "ready", class: "notice" });
  await using host = await fakeHost(verbs);
  expect(await chat(host, "")).toEqual({ code: 0, out: "from before\n", err: "While you were away:\n" });
  expect(await chat(host, "")).toEqual({ code: 0, out: "", err: "" });
});

test("a part that is still unacknowledged at the host is not shown twice", async () => {
  const { verbs } = chatOfRows();
  await using host = await fakeHost({ ...verbs, ack: () => ({ acknowledged: 0 }) });
  expect((await chat(host, "one\ntwo\n")).out).toBe("re: one\nre: two\n");
});

test("a part is acknowledged only after stdout has taken it", async () => {
  const { verbs, rows } = chatOfRows();
  const seen: string[] = [];
  await using host = await fakeHost({
    ...verbs,
    ack: (input) => {
      seen.push(`ack ${input["seq"]}`);
      return verbs.ack(input);
    },
  });
  const shell = testShell(host.home.path, { input: "one\n" });
  const slow = new Writable({
    write(chunk: Buffer, _encoding, done) {
      setImmediate(() => {
        seen.push(chunk.toString().trim());
        done();
      });
    },
  });
  await run(["chat"], { ...shell, out: makeOutput(slow, {}) });
  expect(seen).toEqual(["re: one", "ack 2"]);
  expect(rows.map(({ state }) => state)).toEqual(["done", "sent"]);
});

test("when nobody reads stdout any more, nothing is acknowledged", async () => {
  const { verbs } = chatOfRows();
  await using host = await fakeHost(verbs);
  const shell = testShell(host.home.path, { input: "one\n" });
  const closed = new PassThrough();
  closed.destroy(Object.assign(new Error("gone"), { code: "EPIPE" }));
  expect(await run(["chat"], { ...shell, out: makeOutput(closed, {}) })).toBe(0);
  expect(host.inputsOf("ack")).toEqual([]);
});

test("through broken connections each message is accepted once and each answer shown once (G2)", async () => {
  const { verbs, rows } = chatOfRows();
  const breaks = new Map<string, number>();
  /** Every verb does its work, then its first two answers are lost. */
  const lossy = Object.entries(verbs).map(([name, verb]) => {
    const wrapped = (input: Record<string, unknown>, { response }: { response: { destroy(): unknown } }) => {
      const reply = verb(input);
      const times = (breaks.get(name) ?? 0) + 1;
      breaks.set(name, times);
      if (times > 2 || (name === "history" && times === 1)) return reply;
      response.destroy();
      return HANDLED;
    };
    return [name, wrapped] as const;
  });
  await using host = await fakeHost(Object.fromEntries(lossy));
  const { code, out, err } = await chat(host, "one\ntwo\n");
  expect({ code, out }).toEqual({ code: 0, out: "re: one\nre: two\n" });
  expect(rows.filter(({ kind }) => kind === "person")).toHaveLength(2);
  expect(err.split("\n")[0]).toBe("connection lost, trying again");
});

test("at a full queue the line waits for its turn instead of being lost", async () => {
  const { verbs } = chatOfRows();
  let refusals = 0;
  await using host = await fakeHost({
    ...verbs,
    send: (input) => (++refusals <= 2 ? new Refusal(429, { code: "queue_full", message: "full" }) : verbs.send(input)),
  });
  const { out, err } = await chat(host, "one\n");
  expect(out).toBe("re: one\n");
  expect(err).toBe("the queue is full, trying again\n");
});

test("a message that failed makes the exit code 1, and the next ones are still sent", async () => {
  await using host = await fakeHost(chatOfRows("failed").verbs);
  expect(await chat(host, "one\ntwo\n")).toEqual({ code: 1, out: "re: one\nre: two\n", err: "" });
});

test("an answer cannot act on the terminal, and keeps its lines", async () => {
  const { verbs, add } = chatOfRows();
  add({ kind: "part", command: 1, text: "a\n\x1b]0;title\x07b\n", state: "ready", class: "answer" });
  await using host = await fakeHost(verbs);
  expect((await chat(host, "")).out).toBe("a\n\\u{1b}]0;title\\u{7}b\n");
});
