import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { fakeClock } from "../../support/clock.ts";
import { broken } from "../../support/telegram/raw.ts";
import type { FakeTelegram } from "../../support/telegram/telegram.ts";
import { kept, part, place, type Rig, rigAt, rigWith } from "./telegram-rig.ts";

const never = new AbortController().signal;

/** Sends, letting time pass until the result is there. */
async function sent(rig: Rig, ...parts: Parameters<Rig["channel"]["send"]>[0][]) {
  const results = parts.map((each) => rig.channel.send(each, never));
  let settled = false;
  void Promise.all(results).then(() => {
    settled = true;
  });
  await rig.until(() => settled);
  return Promise.all(results);
}

async function withPeople() {
  const rig = await rigWith();
  const ada = rig.telegram.user({ id: 101, name: "Ada" });
  const chat = rig.telegram.privateChat(ada);
  const group = rig.telegram.group({ id: -1_000_000_000_555, title: "Team", forum: true, members: [ada] });
  return { ...rig, rig, ada, chat, group };
}

const bold = (offset: number, length: number) => JSON.stringify({ entities: [{ type: "bold", offset, length }] });

test("a part goes out with its markup, without a link preview, as an answer in its topic", async () => {
  const { telegram, rig, ada, group } = await withPeople();
  const thread = telegram.topic(group, "Plans");
  const asked = telegram.says(group, ada, "?", { thread });
  const [result] = await sent(
    rig,
    part(group, "see https://example.com", {
      extra: bold(0, 3),
      thread: String(thread),
      replyTo: String(asked.message_id),
    }),
  );
  const message = telegram.messages(group).at(-1)!;
  expect(result).toEqual({ kind: "sent", ref: String(message.id) });
  expect(message).toMatchObject({
    ...{ text: "see https://example.com", thread, replyTo: asked.message_id, linkPreview: { is_disabled: true } },
  });
  expect(message.entities).toContainEqual({ type: "bold", offset: 0, length: 3 });
  expect(broken(telegram)).toEqual([]);
});

test("a part that is a file goes as a document with its text as the content", async () => {
  const { telegram, rig, chat } = await withPeople();
  const extra = JSON.stringify({ file: { name: "code-1.ts" } });
  const [result] = await sent(rig, part(chat, "const pi = 3; // π", { extra, again: true }));
  const message = telegram.messages(chat).at(-1)!;
  expect(result).toEqual({ kind: "sent", ref: String(message.id) });
  expect(message.document?.name).toBe("code-1.ts");
  expect(Buffer.from(message.document!.content).toString()).toBe("const pi = 3; // π");
  expect(message.text).toBe("(sent again: the first try was not confirmed)");
  expect(broken(telegram)).toEqual([]);
});

test("a repeated part says so, and its markup moves with the text; one that is full goes as it is (G5)", async () => {
  const { telegram, rig, chat } = await withPeople();
  await sent(
    rig,
    part(chat, "bold move", { extra: bold(0, 4), again: true }),
    part(chat, "x".repeat(4_096), { again: true }),
  );
  const [short, full] = telegram.messages(chat);
  const [line, text] = short!.text.split("\n");
  expect([line, text]).toEqual(["(sent again: the first try was not confirmed)", "bold move"]);
  const [entity] = short!.entities;
  expect(short!.text.slice(entity!.offset, entity!.offset + entity!.length)).toBe("bold");
  expect(full!.text).toBe("x".repeat(4_096));
});

test("markup that Telegram refuses leads to exactly one plain resend of the same text (Q7.2)", async () => {
  const { telegram, rig, chat } = await withPeople();
  telegram.failNext("sendMessage", {
    status: 400,
    description: "Bad Request: can't parse entities: no end of the entity",
  });
  const [result] = await sent(rig, part(chat, "bold", { extra: bold(0, 4) }));
  expect(result).toMatchObject({ kind: "sent" });
  expect(telegram.callsOf("sendMessage")).toHaveLength(2);
  expect(telegram.messages(chat)).toMatchObject([{ text: "bold", entities: [] }]);

  telegram.failNext("sendMessage", { status: 400, description: "Bad Request: can't parse entities: still" }, 2);
  const [refused] = await sent(rig, part(chat, "again", { extra: bold(0, 4) }));
  expect(refused).toMatchObject({ kind: "refused" });
  expect(telegram.callsOf("sendMessage")).toHaveLength(4);
});

test("markup that cannot be read is left away and the text goes out", async () => {
  const { telegram, rig, chat } = await withPeople();
  await sent(rig, part(chat, "one", { extra: "{" }), part(chat, "two", { extra: '{"entities":"all"}' }));
  expect(telegram.messages(chat).map(({ text }) => text)).toEqual(["one", "two"]);
});

test("a topic or a message to answer that is gone is given up once", async () => {
  const { telegram, rig, group, chat } = await withPeople();
  const [topicGone] = await sent(rig, part(group, "to a topic", { thread: "999" }));
  expect(topicGone).toMatchObject({ kind: "sent" });
  expect(telegram.messages(group).at(-1)).toMatchObject({ text: "to a topic", thread: undefined });
  telegram.failNext("sendMessage", { status: 400, description: "Bad Request: message to be replied not found" });
  const [replyGone] = await sent(rig, part(chat, "an answer", { replyTo: "12345" }));
  expect(replyGone).toMatchObject({ kind: "sent" });
  expect(telegram.callsOf("sendMessage").at(-1)?.params).not.toHaveProperty("reply_parameters");
  expect(broken(telegram)).toEqual([]);
});

test("a group that became a supergroup gets the message under its new id", async () => {
  const { telegram, rig, ada } = await withPeople();
  const old = telegram.group({ id: -4_321, title: "Small", members: [ada] });
  const now = telegram.migrates(old, -1_000_000_004_321);
  const [result] = await sent(rig, part(old, "moved"));
  expect(result).toMatchObject({ kind: "sent" });
  expect(telegram.messages(now).at(-1)).toMatchObject({ text: "moved", byBot: true });
});

const refusals: [string, number, string][] = [
  ["the person blocked the bot", 403, "Forbidden: bot was blocked by the user"],
  ["the bot was thrown out", 403, "Forbidden: bot was kicked from the supergroup chat"],
  ["the account is gone", 403, "Forbidden: user is deactivated"],
  ["the chat does not exist", 400, "Bad Request: chat not found"],
  ["the text is too long", 400, "Bad Request: message is too long"],
  ["the topic is closed", 400, "Bad Request: TOPIC_CLOSED"],
];
test.each(refusals)("refused for good after one call when %s (Q1.5)", async (_what, status, description) => {
  const { telegram, rig, chat } = await withPeople();
  telegram.failNext("sendMessage", { status, description });
  const [result] = await sent(rig, part(chat, "hi", { extra: bold(0, 2), thread: "7", replyTo: "1" }));
  expect(result).toEqual({ kind: "refused", reason: `${status}: ${description}` });
  expect(telegram.callsOf("sendMessage")).toHaveLength(1);
});

const unclear: [string, (telegram: FakeTelegram) => void][] = [
  ["the connection breaks after the request", (telegram) => telegram.dropAfterAccept("sendMessage")],
  ["the connection breaks, who knows when", (telegram) => telegram.dropBefore("sendMessage")],
  ["no answer comes", (telegram) => telegram.hang("sendMessage", { accepted: true })],
  ["a proxy answers with a page", (telegram) => telegram.badGateway("sendMessage")],
  ["the answer is cut", (telegram) => telegram.garbage("sendMessage", { accepted: true })],
  [
    "the server is in trouble",
    (telegram) => telegram.failNext("sendMessage", { status: 500, description: "Internal Server Error" }),
  ],
];
test.each(unclear)("ambiguous after one call when %s", async (_what, fail) => {
  const { telegram, rig, clock, chat } = await withPeople();
  fail(telegram);
  const before = clock.mono();
  const [result] = await sent(rig, part(chat, "hi"));
  expect(result).toMatchObject({ kind: "ambiguous" });
  expect(telegram.callsOf("sendMessage")).toHaveLength(1);
  expect(clock.mono() - before).toBeLessThan(32_000);
  expect(JSON.stringify(result)).not.toContain(telegram.token.split(":")[1]);
});

test("not sent, to be repeated, when the connection is refused or the name is unknown", async () => {
  const { telegram, rig, chat } = await withPeople();
  await telegram.offline(true);
  expect(await sent(rig, part(chat, "hi"))).toEqual([
    { kind: "later", afterMs: 1_000, wholeAccount: false, reason: "could not connect (ECONNREFUSED)" },
  ]);
  const nowhere = rigAt("http://nowhere.invalid", telegram.token, fakeClock());
  const [result] = await sent(nowhere, part(1, "hi"));
  expect(result).toMatchObject({
    kind: "later",
    reason: expect.stringMatching(/could not connect \((ENOTFOUND|EAI_AGAIN)\)/),
  });
  expect(JSON.stringify(result)).not.toContain(telegram.token.split(":")[1]);
});

test("ambiguous when the connection is reset after the request was written", async () => {
  const server = createServer((socket) => socket.once("data", () => socket.resetAndDestroy()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  const rig = rigAt(`http://127.0.0.1:${port}`, "1:secret-of-the-bot", fakeClock());
  const [result] = await sent(rig, part(1, "hi"));
  expect(result).toEqual({ kind: "ambiguous", reason: "the connection failed (ECONNRESET)" });
});

test("not sent when TLS cannot be agreed on, however the connection ends before that", async () => {
  // It takes the connection and hangs up at the first byte of the handshake.
  const server = createServer((socket) => socket.once("data", () => socket.resetAndDestroy()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  const rig = rigAt(`https://127.0.0.1:${port}`, "1:secret-of-the-bot", fakeClock());
  const [result] = await sent(rig, part(1, "hi"));
  expect(result).toMatchObject({ kind: "later", reason: expect.stringContaining("could not connect") });
});

test("not sent when the connection is not made within 10 s", async () => {
  // It takes the connection and says nothing to the handshake.
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  const rig = rigAt(`https://127.0.0.1:${port}`, "1:secret-of-the-bot", fakeClock());
  const before = rig.clock.mono();
  const [result] = await sent(rig, part(1, "hi"));
  expect(result).toMatchObject({ kind: "later", reason: "could not connect (CONNECT_TIMEOUT)" });
  expect(rig.clock.mono() - before).toBeLessThan(12_000);
});

test("after a 429 nothing of the account goes out before the stated wait ends, whatever it is (Q7.3)", async () => {
  const { telegram, rig, clock, ada, chat, group } = await withPeople();
  telegram.failNext("sendMessage", {
    status: 429,
    description: "Too Many Requests: retry after 9",
    parameters: { retry_after: 9 },
  });
  const [result] = await sent(rig, part(chat, "hi"));
  expect(result).toMatchObject({ kind: "later", afterMs: 9_000, wholeAccount: true });
  const refusedAt = clock.mono();
  const calls = telegram.calls.length;

  const stopTyping = rig.channel.typing(String(group.id), undefined);
  const preview = rig.channel.preview(place(ada), kept);
  preview?.show("growing");
  const [held] = await sent(rig, part(group, "to another chat"));
  expect(held).toMatchObject({ kind: "later", wholeAccount: true, reason: "Telegram asked to wait" });
  await rig.pass(8_000 - (clock.mono() - refusedAt));
  expect(telegram.calls.length).toBe(calls);
  await rig.pass(1_500);
  stopTyping();
  await preview?.end();
  const [after] = await sent(rig, part(chat, "hi"));
  expect(after).toMatchObject({ kind: "sent" });
  expect(broken(telegram)).toEqual([]);
});

test("what waits for its turn when a 429 comes is given back at once, not sent", async () => {
  const { telegram, rig, chat } = await withPeople();
  telegram.failNext("sendMessage", { status: 429, description: "Too Many Requests", parameters: { retry_after: 600 } });
  const before = rig.clock.mono();
  const results = await sent(rig, ...["a", "b", "c", "d", "e"].map((text) => part(chat, text)));
  expect(results.map(({ kind }) => kind)).toContain("later");
  expect(results.filter(({ kind }) => kind === "later").length).toBeGreaterThanOrEqual(3);
  expect(rig.clock.mono() - before).toBeLessThan(5_000);
});

test("a refused token means later, not never: the message is as good as before", async () => {
  const { telegram, rig, chat } = await withPeople();
  telegram.revokeToken();
  const [result] = await sent(rig, part(chat, "hi"));
  expect(result).toMatchObject({ kind: "later", wholeAccount: true });
});

test("messages to one chat keep their order and the platform's limits; other chats do not wait for them", async () => {
  const rig = await rigWith({ limits: true });
  const { telegram, clock } = rig;
  const ada = telegram.user({ id: 101, name: "Ada" });
  const chat = telegram.privateChat(ada);
  const group = telegram.group({ id: -1_000_000_000_555, title: "Team", members: [ada] });
  const texts = Array.from({ length: 24 }, (_, index) => String(index));
  const many = Promise.all(texts.map((text) => rig.channel.send(part(group, text), never)));
  const [other] = await sent(rig, part(chat, "me too"));
  expect(other).toMatchObject({ kind: "sent" });
  expect(clock.mono()).toBeLessThan(1_000);
  let results: Awaited<typeof many> | undefined;
  void many.then((done) => {
    results = done;
  });
  await rig.until(() => results);
  // What did not get its turn within 30 s was not sent and comes back later.
  const sentCount = results!.filter(({ kind }) => kind === "sent").length;
  expect(sentCount).toBeGreaterThanOrEqual(20);
  expect(results!.slice(sentCount).every(({ kind }) => kind === "later")).toBe(true);
  expect(telegram.messages(group).map(({ text }) => text)).toEqual(texts.slice(0, sentCount));
  expect(telegram.calls.some(({ outcome }) => outcome?.kind === "refused")).toBe(false);
});

test("the host hears that a part goes when its turn has come, before any byte leaves, and once (G4)", async () => {
  const { telegram, rig, chat } = await withPeople();
  const seen: number[] = [];
  const begin = async () => {
    seen.push(telegram.callsOf("sendMessage").length);
  };
  telegram.failNext("sendMessage", { status: 400, description: "Bad Request: can't parse entities: no" });
  expect(await rig.channel.send(part(chat, "one", { extra: bold(0, 3) }), never, begin)).toMatchObject({
    kind: "sent",
  });
  expect(seen).toEqual([0]);
  await sent(rig, part(chat, "two"));
  // The pace makes the next one wait; nothing has begun then.
  let result: unknown;
  void rig.channel.send(part(chat, "three"), never, begin).then((settled) => {
    result = settled;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(seen).toEqual([0]);
  await rig.until(() => result);
  expect(seen).toEqual([0, 3]);
});

test("a part that the host does not let go is not sent (G4)", async () => {
  const { telegram, rig, chat } = await withPeople();
  const refuse = () => Promise.reject(new Error("disk full"));
  const result = await rig.channel.send(part(chat, "one"), never, refuse);
  expect(result).toMatchObject({ kind: "later", wholeAccount: false, reason: "it was not to be sent any more" });
  expect(telegram.calls).toEqual([]);
});

test("a send that is told to stop before its turn was not sent; one in flight is ambiguous", async () => {
  const { telegram, rig, chat } = await withPeople();
  expect(await rig.channel.send(part(chat, "hi"), AbortSignal.abort())).toMatchObject({ kind: "later" });
  telegram.hang("sendMessage");
  const stop = new AbortController();
  const sending = rig.channel.send(part(chat, "hi"), stop.signal);
  await rig.until(() => telegram.callsOf("sendMessage").length === 1);
  stop.abort();
  expect(await sending).toMatchObject({ kind: "ambiguous" });
});

test("a stop of the channel waits for a send in flight, but not for one that hangs", async () => {
  const { telegram, rig, host, chat } = await withPeople();
  const { stop } = rig.channel.start(host);
  await rig.until(() => telegram.openPolls === 1);
  telegram.hang("sendMessage");
  const sending = rig.channel.send(part(chat, "hi"), never);
  await rig.until(() => telegram.callsOf("sendMessage").length === 1);
  const stopped = stop();
  let isStopped = false;
  void stopped.then(() => {
    isStopped = true;
  });
  const before = rig.clock.mono();
  await rig.until(() => isStopped);
  expect(rig.clock.mono() - before).toBeLessThanOrEqual(2_000);
  expect(await sending).toMatchObject({ kind: "ambiguous" });
  expect(await rig.channel.send(part(chat, "late"), never)).toMatchObject({ kind: "later" });
});
