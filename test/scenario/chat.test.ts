import type { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EventStream, openEvents, type StreamMessage } from "./event-stream.ts";
import {
  ask,
  ended,
  freshKey,
  last,
  oneBackend,
  requestsFor,
  send,
  startMock,
  startWorld,
  type World,
} from "./world.ts";

// One host, one chat a test: a message in, its answer out, and what a client sees that comes late or asks twice.

let mock: LLMock;
let world: World;

beforeAll(async () => {
  mock = await startMock();
  world = await startWorld(oneBackend(mock));
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await mock?.stop();
});

const isPartOf = (command: number) => (message: StreamMessage) =>
  message.event === "item" && message.data.kind === "part" && message.data.command === command;

function items(stream: EventStream) {
  return stream.heard.filter((message) => message.event === "item").map((message) => message.data);
}

async function partState(seq: number): Promise<string> {
  const { body } = await world.host().api("outbox.list", { all: true, limit: 1_000 });
  return body.parts.find((part: { id: number }) => part.id === seq).state;
}

test("an answer streams as deltas, becomes one part, and is `sent` once a client has acknowledged it (G4)", async () => {
  const text = "Six pieces of text, at least, and one part.";
  mock.onMessage("stream this", { content: text });
  const stream = await openEvents(world.host().address, { chat: "stream" });
  const command = await send(world.host(), "stream this", { chat: "stream" });
  const part = await stream.until(isPartOf(command));
  await stream.until((message) => message.event === "state" && message.data.state === "done");

  const deltas = stream.heard.filter((message) => message.event === "delta" && message.data.command === command);
  expect(deltas.length).toBeGreaterThan(2);
  expect(deltas.map((delta) => delta.data.text).join("")).toBe(text);
  expect(stream.heard.indexOf(last(deltas))).toBeLessThan(stream.heard.indexOf(part));
  expect(items(stream)).toMatchObject([
    { kind: "person", seq: command, text: "stream this" },
    { kind: "part", command, text, class: "answer", state: "ready" },
  ]);
  expect(part.id).toBe(part.data.seq);

  expect(await partState(part.data.seq)).toBe("ready");
  const { body } = await world.host().api("ack", { chat: "stream", seq: part.data.seq });
  expect(body).toEqual({ acknowledged: 1 });
  expect(await partState(part.data.seq)).toBe("sent");
  expect((await world.host().api("ack", { chat: "stream", seq: part.data.seq })).body).toEqual({ acknowledged: 0 });
  await stream.close();
});

test("parts that nobody acknowledged hold back nothing and come again after the last id that a client had (G1)", async () => {
  mock.onMessage("first unread", { content: "answer one" });
  mock.onMessage("second unread", { content: "answer two" });
  const first = await ask(world.host(), "first unread", { chat: "unread" });
  const second = await ask(world.host(), "second unread", { chat: "unread" });
  expect([first.text, second.text]).toEqual(["answer one", "answer two"]);

  const stream = await openEvents(world.host().address, { chat: "unread" });
  await stream.until(isPartOf(second.command));
  expect(items(stream).map((item) => item.text)).toEqual(["first unread", "answer one", "second unread", "answer two"]);
  await stream.close();

  const seen = first.parts[0]?.seq ?? 0;
  const resumed = await openEvents(world.host().address, { chat: "unread", after: 0, lastEventId: seen });
  await resumed.until(isPartOf(second.command));
  expect(items(resumed).map((item) => item.text)).toEqual(["second unread", "answer two"]);
  await resumed.close();
});

test("a backlog larger than what one client may leave unread still arrives whole and in order (G1, NET-R6)", async () => {
  const long = "y".repeat(90_000);
  mock.onMessage(/^long x+$/, { content: long }, { chunkSize: 90_000 });
  const asked: number[] = [];
  for (let i = 0; i < 14; i += 1)
    asked.push((await ask(world.host(), `long ${"x".repeat(90_000)}`, { chat: "backlog" })).command);
  const stream = await openEvents(world.host().address, { chat: "backlog" });
  await stream.until(isPartOf(last(asked)));
  const got = items(stream);
  expect(got.filter((item) => item.kind === "part").map((item) => item.command)).toEqual(asked);
  expect(got.map((item) => item.seq)).toEqual(got.map((item) => item.seq).toSorted((a, b) => a - b));
  await stream.close();
});

test("an answer that is larger than what a client may leave unread reaches one that joins, and what follows it too (G1)", async () => {
  mock.onMessage("a huge one", { content: "z".repeat(2_500_000) }, { chunkSize: 250_000 });
  mock.onMessage("a small one", { content: "small" });
  const huge = await ask(world.host(), "a huge one", { chat: "huge" });
  const small = await ask(world.host(), "a small one", { chat: "huge" });
  const stream = await openEvents(world.host().address, { chat: "huge" });
  await stream.until(isPartOf(small.command));
  expect(items(stream).map((item) => item.text.length)).toEqual([10, huge.text.length, 11, 5]);
  await stream.close();
});

test("the same key makes one command, one model call and one answer, one after the other and at once (G2)", async () => {
  mock.onMessage("only once", { content: "once" });
  const body = { text: "only once", key: freshKey(), chat: "twice" };
  const together = await Promise.all([1, 2, 3].map(() => world.host().api("send", body)));
  const command = together[0]?.body.command;
  expect(together.map((answer) => [answer.status, answer.body.command])).toEqual([1, 2, 3].map(() => [202, command]));
  expect(together.filter((answer) => !answer.body.duplicate)).toHaveLength(1);
  await ended(world.host(), command);
  const later = await world.host().api("send", body);
  expect(later).toMatchObject({ status: 202, body: { command, duplicate: true } });

  const { body: page } = await world.host().api("history", { chat: "twice" });
  expect(page.items.map((item: { kind: string }) => item.kind)).toEqual(["person", "part"]);
  expect(requestsFor(mock.getRequests(), "only once")).toHaveLength(1);
});

test("a key that comes again with another text is refused: the second message is not lost without a word (Q1.4, G2)", async () => {
  mock.onMessage("first text", { content: "first answer" });
  const body = { text: "first text", key: freshKey(), chat: "reused" };
  const { body: accepted } = await world.host().api("send", body);
  for (const text of ["second text", "/status"]) {
    const again = await world.host().api("send", { ...body, text });
    expect([again.status, again.body.error.code]).toEqual([409, "key_reused"]);
  }
  expect((await ended(world.host(), accepted.command)).text).toBe("first answer");
  const { body: page } = await world.host().api("history", { chat: "reused" });
  expect(page.items.map((item: { text: string }) => item.text)).toEqual(["first text", "first answer"]);
});

test("the messages of a chat are answered in the order in which they came, each seeing those before it (G5)", async () => {
  mock.onMessage(/^ordered \d$/, (request) => ({ content: `answer to ${last(request.messages).content}` }));
  const texts = [1, 2, 3, 4, 5].map((n) => `ordered ${n}`);
  const commands: number[] = [];
  for (const text of texts) commands.push(await send(world.host(), text, { chat: "ordered" }));
  const ends = await Promise.all(commands.map((command) => ended(world.host(), command)));
  expect(ends.map((end) => end.text)).toEqual(texts.map((text) => `answer to ${text}`));
  const seqs = ends.map((end) => end.parts[0]?.seq ?? 0);
  expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));

  for (const [i, text] of texts.entries()) {
    const [request] = requestsFor(mock.getRequests(), text);
    const people = request?.filter((message) => message.role === "user").map((message) => message.content);
    expect(people).toEqual(texts.slice(0, i + 1));
  }
});

test("other chats do not wait for one whose model is slow (Q2.3)", async () => {
  const asked = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  mock.onMessage("slow one", async () => {
    asked.resolve();
    await release.promise;
    return { content: "late" };
  });
  mock.onMessage("quick one", { content: "quick" });
  const slow = await send(world.host(), "slow one", { chat: "slow" });
  await asked.promise;
  expect((await ask(world.host(), "quick one", { chat: "quick" })).text).toBe("quick");
  release.resolve();
  expect((await ended(world.host(), slow)).text).toBe("late");
});

test("history gives the newest items first and the older ones page by page", async () => {
  mock.onMessage(/^page \d$/, { content: "ok" });
  for (const n of [1, 2, 3]) await ask(world.host(), `page ${n}`, { chat: "pages" });
  const newest = (await world.host().api("history", { chat: "pages", limit: 4 })).body;
  expect(newest.items.map((item: { text: string }) => item.text)).toEqual(["page 2", "ok", "page 3", "ok"]);
  expect(newest.more).toBe(true);
  const older = (await world.host().api("history", { chat: "pages", limit: 4, before: newest.items[0].seq })).body;
  expect(older.items.map((item: { text: string }) => item.text)).toEqual(["page 1", "ok"]);
  expect(older.more).toBe(false);
});

test("a message that cannot be used is refused and nothing is accepted", async () => {
  const refused = await world.host().api("send", { text: " \n ", key: freshKey(), chat: "refused" });
  expect(refused).toMatchObject({ status: 400, body: { error: { code: "invalid_input" } } });
  const tooLong = await world.host().api("send", { text: "x".repeat(100_001), key: freshKey(), chat: "refused" });
  expect(tooLong).toMatchObject({
    status: 400,
    body: { error: { message: expect.stringContaining("100001 characters") } },
  });
  expect((await world.host().api("history", { chat: "refused" })).body.items).toEqual([]);
});
