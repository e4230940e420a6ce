// Proves: the page against a host in small, without a browser: nothing typed is lost or sent under two keys, a lost
// stream is found again where it ended, and only what was seen is acknowledged.
import { expect, test } from "vitest";
import type { Reply } from "../../../src/dashboard/api.js";
import { makeApi } from "../../../src/dashboard/api.js";
import { Conversation } from "../../../src/dashboard/conversation.js";
import { makeOutgoing, storageOr } from "../../../src/dashboard/outgoing.js";
import type { Timeline } from "../../../src/dashboard/timeline.js";
import type { HostInfo, Item } from "../../../src/dashboard/wire.js";
import { fakeClock } from "../../support/clock.ts";

const AT = "2026-01-01T10:00:00.000Z";
const LOST: Reply<never> = { ok: false, status: 0, message: "The host cannot be reached.", retryAfterMs: undefined };
const failure = (status: number, retryAfterMs?: number): Reply<never> => ({
  ok: false,
  status,
  message: "The queue is full.",
  retryAfterMs,
});

/** What the page needs of an EventSource. */
class Source extends EventTarget {
  onopen: (() => void) | undefined;
  onerror: (() => void) | undefined;
  closed = false;
  readonly path: string;
  constructor(path: string) {
    super();
    this.path = path;
  }
  close() {
    this.closed = true;
  }
  tell(name: string, data: unknown) {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }
}

function setUp(store = storageOr(() => sessionStorage)) {
  const clock = { ...fakeClock(), fraction: () => 0.5 };
  const host = {
    items: [] as Item[],
    keys: new Map<string, number>(),
    sent: [] as { text: string; key: string }[],
    acked: [] as number[],
    /** Answers to the next sendings, before the host takes messages normally. */
    trouble: [] as ("lost" | "lost after accepting" | Reply<never>)[],
    history: undefined as Reply<never> | undefined,
  };
  const accept = (text: string, key: string) => {
    const known = host.keys.get(key);
    const seq = known ?? host.items.length + 1;
    if (known === undefined) host.items.push({ seq, kind: "person", command: seq, text, at: AT, state: "queued" });
    host.keys.set(key, seq);
    return { ok: true, value: { command: seq, seq, duplicate: known !== undefined } } as const;
  };
  const api = {
    ...makeApi({ fetch, chat: "main" }),
    history: async (before?: number) =>
      host.history ?? {
        ok: true as const,
        value: { items: host.items.filter(({ seq }) => before === undefined || seq < before), more: false },
      },
    ack: async (seq: number) => {
      host.acked.push(seq);
      return { ok: true as const, value: true };
    },
    send: async (text: string, key: string) => {
      host.sent.push({ text, key });
      const trouble = host.trouble.shift();
      if (trouble === undefined) return accept(text, key);
      if (trouble === "lost after accepting") accept(text, key);
      return typeof trouble === "string" ? LOST : trouble;
    },
  };
  const sources: Source[] = [];
  const seen = { texts: [] as string[], unsent: [] as string[], lost: false, signedOut: 0, edited: "", watched: true };
  const outgoing = makeOutgoing({ store, chat: "main", now: clock.now, random: () => String(Math.random()) });
  const conversation = new Conversation({
    api,
    outgoing,
    clock,
    openSource: (path) => {
      const source = new Source(path);
      sources.push(source);
      return source as unknown as EventSource;
    },
    onFrame: (draw) => clock.after(16, draw),
    screen: {
      render(timeline: Timeline, unsent) {
        seen.texts = timeline.rows().map((row) => (row.kind === "live" ? `~${row.live.text}` : row.item.text));
        seen.unsent = unsent.map(({ text, state }) => `${text} (${state})`);
      },
      lost: (isLost) => {
        seen.lost = isLost;
      },
      host: (_: HostInfo) => {},
      arrived: () => {},
      signedOut: () => {
        seen.signedOut += 1;
      },
      edit: (text) => {
        seen.edited = text;
      },
      toEnd: () => {},
      isAtEnd: () => true,
      isWatched: () => seen.watched,
    },
  });
  const source = () => sources.at(-1) as Source;
  const begin = async () => {
    conversation.start({ items: [...host.items], more: false });
    source().onopen?.();
    await clock.advance(20);
  };
  return { clock, host, sources, source, seen, outgoing, conversation, begin, store };
}

test("a message appears at once and becomes the host's own when it is accepted", async () => {
  const { clock, host, seen, conversation, begin } = setUp();
  host.trouble = [];
  await begin();
  conversation.send("hello");
  conversation.draw();
  await clock.advance(20);
  expect(seen).toMatchObject({ texts: ["hello"], unsent: [] });
});

test("a lost answer is asked for again with the same key, so the host takes the message once", async () => {
  const { clock, host, seen, conversation, begin } = setUp();
  host.trouble = ["lost", "lost after accepting"];
  await begin();
  conversation.send("once");
  await clock.advance(20);
  expect(seen.unsent).toEqual(["once (retrying)"]);
  await clock.advance(5_000);
  expect(host.sent.length).toBe(3);
  expect(new Set(host.sent.map(({ key }) => key)).size).toBe(1);
  expect(seen).toMatchObject({ texts: ["once"], unsent: [] });
});

test("a message outlives a reload and is sent by the next page with its old key", async () => {
  const first = setUp();
  first.host.trouble = ["lost after accepting", "lost", "lost", "lost"];
  await first.begin();
  first.conversation.send("survivor");
  await first.clock.advance(20);
  const second = setUp(first.store);
  second.host.items = first.host.items;
  second.host.keys = first.host.keys;
  await second.begin();
  await second.clock.advance(20);
  expect(second.host.sent).toEqual([first.host.sent[0]]);
  expect(second.seen).toMatchObject({ texts: ["survivor"], unsent: [] });
});

test("a full queue is waited for as the host asks, and later messages keep their order", async () => {
  const { clock, host, conversation, begin } = setUp();
  host.trouble = [failure(429, 7_000)];
  await begin();
  conversation.send("one");
  conversation.send("two");
  await clock.advance(6_900);
  expect(host.sent.map(({ text }) => text)).toEqual(["one"]);
  await clock.advance(200);
  expect(host.items.map(({ text }) => text)).toEqual(["one", "two"]);
});

test("a refused message does not hold up later ones and can be taken back to be edited", async () => {
  const { clock, host, seen, outgoing, conversation, begin } = setUp();
  host.trouble = [failure(413)];
  await begin();
  conversation.send("too long");
  conversation.send("short");
  await clock.advance(20);
  expect(seen).toMatchObject({ texts: ["short"], unsent: ["too long (refused)"] });
  conversation.act("edit", outgoing.list()[0]?.key ?? "");
  await clock.advance(20);
  expect(seen).toMatchObject({ edited: "too long", unsent: [] });
});

test("a lost stream is opened again after its last item, with growing pauses, and the line about it vanishes", async () => {
  const { clock, host, sources, source, seen, begin } = setUp();
  host.items.push({ seq: 1, kind: "person", command: 1, text: "q", at: AT, state: "running" });
  await begin();
  source().tell("item", { seq: 4, kind: "part", command: 1, text: "a", at: AT, state: "ready", class: "answer" });
  host.history = LOST;
  source().onerror?.();
  expect(seen.lost).toBe(true);
  await clock.advance(10_000);
  expect(sources.length).toBe(1);
  expect(sources[0]?.closed).toBe(true);
  host.history = undefined;
  await clock.advance(20_000);
  expect(source().path).toBe("/api/events?chat=main&after=4");
  source().onopen?.();
  expect(seen.lost).toBe(false);
  await clock.advance(60_000);
  expect(sources.length).toBe(2);
});

test("a stream that never opens is given up and tried again", async () => {
  const { clock, sources, seen, conversation } = setUp();
  conversation.start({ items: [], more: false });
  await clock.advance(16_000);
  expect(seen.lost).toBe(true);
  expect(sources.length).toBe(2);
});

test("a browser that the host no longer knows is signed out and stops trying", async () => {
  const { clock, host, sources, source, seen, begin } = setUp();
  await begin();
  host.history = failure(401);
  source().onerror?.();
  await clock.advance(120_000);
  expect(seen.signedOut).toBe(1);
  expect(sources.length).toBe(1);
});

test("parts are acknowledged once they were on a screen that is looked at", async () => {
  const { clock, host, source, seen, conversation, begin } = setUp();
  await begin();
  seen.watched = false;
  source().tell("item", { seq: 3, kind: "part", text: "a", at: AT, state: "ready", class: "answer" });
  await clock.advance(20);
  expect(host.acked).toEqual([]);
  seen.watched = true;
  conversation.draw();
  await clock.advance(20);
  conversation.draw();
  await clock.advance(20);
  expect(host.acked).toEqual([3]);
});

test("stop is sent once while something runs, before messages that wait, and not at all when nothing runs", async () => {
  const { clock, host, source, conversation, begin } = setUp();
  await begin();
  conversation.stop();
  source().tell("state", { command: 9, state: "running" });
  host.trouble = [failure(503)];
  conversation.send("later");
  await clock.advance(20);
  conversation.stop();
  conversation.stop();
  await clock.advance(20);
  expect(host.items.map(({ text }) => text)).toEqual(["/stop", "later"]);
});

test("a host with other data makes the page begin anew, once for each of its lives", async () => {
  const { clock, host, sources, source, seen, begin } = setUp();
  host.items.push({
    seq: 90,
    kind: "part",
    command: undefined,
    text: "old life",
    at: AT,
    state: "sent",
    class: "answer",
  });
  await begin();
  host.items = [{ seq: 5, kind: "part", command: undefined, text: "restored", at: AT, state: "sent", class: "answer" }];
  const info = { version: "1", agent: "main", backends: [], generation: 7, latest: 5 };
  source().tell("host", info);
  await clock.advance(20);
  expect(seen.texts).toEqual(["restored"]);
  expect(source().path).toBe("/api/events?chat=main&after=5");
  source().tell("host", { ...info, latest: 1 });
  await clock.advance(20);
  expect(sources.length).toBe(2);
});

test("the final part of an answer that streams replaces it in the same frame", async () => {
  const { clock, host, source, seen, begin } = setUp();
  host.items.push({ seq: 1, kind: "person", command: 1, text: "q", at: AT, state: "running" });
  await begin();
  source().tell("stream", { command: 1, text: "Hel" });
  source().tell("delta", { command: 1, text: "lo" });
  await clock.advance(20);
  expect(seen.texts).toEqual(["q", "~Hello"]);
  source().tell("state", { command: 1, state: "done" });
  await clock.advance(20);
  source().tell("item", { seq: 2, kind: "part", command: 1, text: "Hello", at: AT, state: "ready", class: "answer" });
  await clock.advance(20);
  expect(seen.texts).toEqual(["q", "Hello"]);
});
