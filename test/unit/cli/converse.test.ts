import { once } from "node:events";
import { expect, test, vi } from "vitest";
import { run } from "../../../src/cli/program.ts";
import { makeOutput } from "../../../src/cli/shell.ts";
import {
  type Call,
  type FakeHost,
  fakeHost,
  HANDLED,
  keyboard,
  Refusal,
  sendEvents,
  testShell,
  writePrivate,
} from "./fake-host.ts";
import { terminal } from "./terminal.ts";

const AT = "2026-01-01T00:00:00.000Z";

interface Conversation {
  readonly host: FakeHost;
  /** The newest event stream, by hand. */
  send(event: string, data: unknown, id?: number): void;
  type(text: string): void;
  /** Resolves when the screen, below the greeting, shows these lines. */
  shows(lines: readonly string[]): Promise<void>;
  lines(): string[];
  readonly streams: Call[];
  readonly ended: Promise<number>;
}

/** A conversation at a terminal with a host whose events the test sends. */
async function converse(host: FakeHost, items: readonly object[] = []): Promise<Conversation> {
  const streams: Call[] = [];
  const writers: ReturnType<typeof sendEvents>[] = [];
  host.verbs["history"] ??= () => ({ items, more: false });
  host.verbs["ack"] ??= () => ({ acknowledged: 1 });
  host.verbs["send"] ??= () => ({ command: 100, seq: 100, duplicate: false });
  host.verbs["events"] ??= (_, call) => {
    streams.push(call);
    writers.push(sendEvents(call.response));
    writers.at(-1)?.("host", { version: "1", latest: 1_000 });
    return HANDLED;
  };
  const shown = terminal(60);
  const keys = keyboard();
  const shell = testShell(host.home.path, { input: keys, env: { NO_COLOR: "1" } });
  const ended = run(["chat"], { ...shell, out: makeOutput(shown.stream, { NO_COLOR: "1" }) });
  const lines = () => shown.lines().slice(2);
  const conversation = {
    host,
    send: (event: string, data: unknown, id?: number) => writers.at(-1)?.(event, data, id),
    type: (text: string) => void keys.write(text),
    async shows(expected: readonly string[]) {
      await until(() => expect(lines()).toEqual(expected));
    },
    lines,
    streams,
    ended,
  };
  await until(() => expect(streams, shell.text.err()).toHaveLength(1));
  return conversation;
}

/** Waits until the expectation holds; the time is a hang guard. */
function until(expectation: () => void): Promise<void> {
  return vi.waitFor(expectation, { timeout: 9_000, interval: 5 });
}

const part = (seq: number, command: number, text: string, kind = "answer") => {
  return { kind: "part", seq, command, text, at: AT, state: "ready", class: kind };
};
const person = (seq: number, text: string, state = "queued") => ({
  kind: "person",
  seq,
  command: seq,
  text,
  at: AT,
  state,
});

async function quit(chat: Conversation, code = 0): Promise<void> {
  chat.type("/quit\r");
  expect(await chat.ended).toBe(code);
}

test("a message is sent, its answer grows, and the final text is the same text, once", async () => {
  await using host = await fakeHost();
  const chat = await converse(host);
  chat.type("hello\r");
  await until(() => expect(host.inputsOf("send")).toHaveLength(1));
  expect(host.inputsOf("send")).toMatchObject([{ channel: "terminal", chat: "main", text: "hello" }]);
  chat.send("item", person(100, "hello"), 100);
  chat.send("state", { command: 100, state: "running" });
  chat.send("stream", { command: 100, text: "" });
  chat.send("delta", { command: 100, text: "Good " });
  chat.send("delta", { command: 100, text: "mor" });
  await chat.shows(["> hello", "Good mor"]);
  chat.send("delta", { command: 100, text: "ning" });
  chat.send("item", part(101, 100, "Good morning.\n"), 101);
  chat.send("state", { command: 100, state: "done" });
  await chat.shows(["> hello", "Good morning.", ">"]);
  await quit(chat);
});

test("a final text that is another one than what grew is shown whole", async () => {
  await using host = await fakeHost();
  const chat = await converse(host);
  chat.send("stream", { command: 100, text: "draft" });
  chat.send("item", part(101, 100, "The answer."), 101);
  await chat.shows(["draft", "The answer.", ">"]);
  await quit(chat);
});

test("a run that begins anew voids what grew before", async () => {
  await using host = await fakeHost();
  const chat = await converse(host);
  chat.send("stream", { command: 100, text: "half an ans" });
  chat.send("stream", { command: 100, text: "" });
  chat.send("delta", { command: 100, text: "whole" });
  chat.send("item", part(101, 100, "whole"), 101);
  await chat.shows(["half an ans", "(begins anew)", "whole", ">"]);
  await quit(chat);
});

test("an emoji that is cut between two pieces is shown whole", async () => {
  await using host = await fakeHost();
  const chat = await converse(host);
  chat.send("stream", { command: 100, text: "so \u2764" });
  chat.send("delta", { command: 100, text: "\ufe0f!" });
  chat.send("state", { command: 100, state: "done" });
  await chat.shows(["so \u2764\ufe0f!", ">"]);
  await quit(chat);
});

test("parts that nobody acknowledged are shown first with what they answer, and acknowledged", async () => {
  await using host = await fakeHost();
  const chat = await converse(host, [person(5, "an old question", "done"), part(6, 5, "an old answer")]);
  await chat.shows(["While you were away:", "↳ an old question", "an old answer", ">"]);
  await until(() => expect(host.inputsOf("ack")).not.toEqual([]));
  expect(host.inputsOf("ack")).toMatchObject([{ channel: "terminal", chat: "main", seq: 6 }]);
  expect(chat.streams[0]?.input["after"]).toBe("6");
  await quit(chat);
});

test("no part is shown twice, however often its row comes", async () => {
  await using host = await fakeHost();
  const chat = await converse(host, [part(6, 5, "once")]);
  chat.send("item", part(6, 5, "once"), 6);
  chat.send("item", part(7, 5, "new", "notice"), 7);
  chat.send("item", part(7, 5, "new", "notice"), 7);
  chat.send("item", part(8, 5, "end", "notice"), 8);
  await chat.shows(["While you were away:", "once", "new", "end", ">"]);
  await quit(chat);
});

test("after a lost connection the stream goes on after the last row, with one line for the loss and one for its end", async () => {
  await using host = await fakeHost();
  const chat = await converse(host);
  chat.send("item", part(41, 5, "before", "notice"), 41);
  await chat.shows(["before", ">"]);
  chat.streams[0]?.response.destroy();
  await until(() => expect(chat.streams).toHaveLength(2));
  expect(chat.streams[1]?.input["after"]).toBe("41");
  chat.send("item", part(42, 5, "after", "notice"), 42);
  await chat.shows(["before", "connection lost, trying again", "connected again", "after", ">"]);
  await quit(chat);
});

test("a message is sent with the same key until it is answered, through the host's absence (G2)", async () => {
  await using host = await fakeHost();
  let tries = 0;
  host.verbs["send"] = (_, { response }) => {
    if (++tries > 3) return { command: 100, seq: 100, duplicate: true };
    response.destroy();
    return HANDLED;
  };
  const chat = await converse(host);
  chat.type("hello\r");
  await until(() => expect(tries).toBe(4));
  expect(new Set(host.inputsOf("send").map(({ key }) => key)).size).toBe(1);
  await quit(chat);
});

test("what the host refuses is said and not tried again; the next message goes on (G15)", async () => {
  await using host = await fakeHost();
  host.verbs["send"] = ({ text }) => {
    return text === "one"
      ? new Refusal(429, { code: "queue_full", message: "the queue is full", hint: "Wait." })
      : { command: 9, seq: 9, duplicate: false };
  };
  const chat = await converse(host);
  chat.type("one\rtwo\r");
  await until(() => expect(host.inputsOf("send")).toHaveLength(2));
  await chat.shows(["> one", "> two", "Not sent: one: the queue is full. Wait.", ">"]);
  await quit(chat);
});

test("Ctrl-C stops what runs; the second one leaves and says what goes on", async () => {
  await using host = await fakeHost();
  const chat = await converse(host);
  chat.send("state", { command: 100, state: "running" });
  chat.send("item", part(7, 5, "seen", "notice"), 7);
  await chat.shows(["seen", ">"]);
  chat.type("\x03");
  await until(() => expect(host.inputsOf("send")).toHaveLength(1));
  expect(host.inputsOf("send")).toMatchObject([{ text: "/stop" }]);
  chat.type("\x03");
  expect(await chat.ended).toBe(0);
  expect(chat.lines().join(" ")).toContain("1 message still being worked on");
});

test("after a stop has worked, Ctrl-C stops the next work too instead of leaving", async () => {
  await using host = await fakeHost();
  const chat = await converse(host);
  for (const command of [100, 200]) {
    chat.send("state", { command, state: "running" });
    chat.send("item", part(command + 1, 5, `${command} runs`, "notice"), command + 1);
    await until(() => expect(chat.lines()).toContain(`${command} runs`));
    const before = host.inputsOf("send").length;
    chat.type("\x03");
    await until(() => expect(host.inputsOf("send")).toHaveLength(before + 1));
    chat.send("state", { command, state: "cancelled" });
    chat.send("item", part(command + 2, 5, `${command} stopped`, "notice"), command + 2);
    await until(() => expect(chat.lines()).toContain(`${command} stopped`));
  }
  expect(host.inputsOf("send").map(({ text }) => text)).toEqual(["/stop", "/stop"]);
  chat.type("\x03");
  expect(await chat.ended).toBe(0);
});

test("Ctrl-D leaves with 0 and gives the terminal back", async () => {
  await using host = await fakeHost();
  const chat = await converse(host);
  chat.type("\x04");
  expect(await chat.ended).toBe(0);
  expect(chat.lines()).toEqual([""]);
});

test("a message that is on its way when its writer leaves is still accepted", async () => {
  await using host = await fakeHost();
  const release = Promise.withResolvers<void>();
  host.verbs["send"] = async () => {
    await release.promise;
    return { command: 100, seq: 100, duplicate: false };
  };
  const chat = await converse(host);
  chat.type("important\r");
  await until(() => expect(host.inputsOf("send")).toHaveLength(1));
  const left = once(chat.streams[0]!.response, "close");
  chat.type("/quit\r");
  await left;
  release.resolve();
  expect(await chat.ended).toBe(0);
  expect(chat.lines().join("\n")).not.toContain("Not sent");
});

test("what could not be sent before leaving is said, and the exit code is 1", async () => {
  await using host = await fakeHost();
  host.verbs["send"] = (_, { response }) => {
    response.destroy();
    return HANDLED;
  };
  const chat = await converse(host);
  chat.type("important\r");
  await until(() => expect(host.inputsOf("send")).not.toEqual([]));
  await quit(chat, 1);
  expect(chat.lines()).toContain("Not sent: important");
});

test("a token that is no longer accepted ends it with a sentence instead of trying for ever", async () => {
  await using host = await fakeHost();
  const chat = await converse(host);
  host.verbs["events"] = () => new Refusal(401, { code: "unauthorized", message: "no" });
  chat.streams[0]?.response.destroy();
  expect(await chat.ended).toBe(1);
});

test("rows of a restored backup, whose numbers begin lower, are shown", async () => {
  await using host = await fakeHost();
  const chat = await converse(host, [part(500, 5, "newest")]);
  host.verbs["events"] = (_, call) => {
    const send = sendEvents(call.response);
    send("host", { latest: 20 });
    send("item", part(21, 5, "after the restore", "notice"), 21);
    return HANDLED;
  };
  chat.streams[0]?.response.destroy();
  await until(() => expect(chat.lines()).toContain("after the restore"));
  await until(() => expect(host.inputsOf("ack")).not.toEqual([]));
  await quit(chat);
});

test("a host that comes back on another port is found again", async () => {
  await using host = await fakeHost();
  const chat = await converse(host);
  await using other = await fakeHost();
  other.verbs["events"] = (_, call) => {
    sendEvents(call.response)("item", part(7, 5, "from the new port", "notice"), 7);
    return HANDLED;
  };
  other.verbs["ack"] = () => ({ acknowledged: 1 });
  await writePrivate(
    host.home,
    "host.json",
    JSON.stringify({ pid: process.pid, address: other.address, startedAt: new Date(0).toISOString() }),
  );
  chat.streams[0]?.response.destroy();
  await until(() => expect(chat.lines()).toContain("from the new port"));
  await quit(chat);
});
