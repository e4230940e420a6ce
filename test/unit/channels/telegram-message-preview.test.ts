import { expect, test } from "vitest";
import type { Preview } from "../../../src/channels/port.ts";
import { broken } from "../../support/telegram/raw.ts";
import { kept, part, place, type Rig, rigWith } from "./telegram-rig.ts";

const never = new AbortController().signal;

async function withGroup(options: Parameters<typeof rigWith>[0] = {}) {
  const rig = await rigWith(options);
  const ada = rig.telegram.user({ id: 101, name: "Ada" });
  const chat = rig.telegram.privateChat(ada);
  const group = rig.telegram.group({ id: -1_000_000_000_555, title: "Team", forum: true, members: [ada] });
  return { ...rig, rig, ada, chat, group };
}

/** What the bot shows in the chat. */
const shown = (telegram: Awaited<ReturnType<typeof withGroup>>["telegram"], chat: { id: number }) =>
  telegram.messages(chat.id).filter(({ byBot }) => byBot);

async function ended(rig: Rig, preview: Preview): Promise<string | undefined> {
  let result: { ref: string | undefined } | undefined;
  void preview.end().then((ref) => {
    result = { ref };
  });
  await rig.until(() => result);
  return result?.ref;
}

test("in a group a growing answer is one message that is edited, marked as unfinished, answering in its topic (Q7.3)", async () => {
  const { telegram, channel, rig, ada, group } = await withGroup();
  const thread = telegram.topic(group, "Plans");
  const asked = telegram.says(group, ada, "?", { thread });
  const refs: string[] = [];
  const preview = channel.preview(
    place(group, { thread: String(thread), replyTo: String(asked.message_id) }),
    async (ref) => refs.push(ref) > 0,
  )!;
  preview.show("   ");
  await rig.pass(5_000);
  expect(shown(telegram, group)).toEqual([]);
  preview.show("one ");
  await rig.until(() => shown(telegram, group).length === 1);
  preview.show("one two");
  await rig.until(() => shown(telegram, group)[0]?.edits === 1);
  const [message] = shown(telegram, group);
  expect(message).toMatchObject({
    ...{ text: "one two …", thread, replyTo: asked.message_id, linkPreview: { is_disabled: true } },
  });
  expect(refs).toEqual([String(message!.id)]);
  expect(await ended(rig, preview)).toBe(String(message!.id));
  preview.show("too late");
  await rig.pass(10_000);
  expect(shown(telegram, group)).toMatchObject([{ text: "one two …" }]);
  expect(broken(telegram)).toEqual([]);
});

test("an answer that is complete within a second costs a group no preview", async () => {
  const { telegram, channel, rig, group } = await withGroup();
  const preview = channel.preview(place(group), kept)!;
  preview.show("quick");
  await rig.pass(500);
  expect(await ended(rig, preview)).toBeUndefined();
  expect(telegram.callsOf("sendMessage")).toEqual([]);
});

test("a group is edited at most every 4 s and ten times a minute, always to the newest text, and answers find room (Q7.3)", async () => {
  const { telegram, clock, channel, rig, group } = await withGroup({ limits: true });
  const preview = channel.preview(place(group), kept)!;
  const answers: Promise<unknown>[] = [];
  for (let second = 1; second <= 120; second++) {
    preview.show(`at ${second}`);
    await rig.pass(1_000);
    if (second % 7 === 0) answers.push(channel.send(part(group, `answer ${second}`), never));
  }
  const instants = [...telegram.callsOf("editMessageText"), ...telegram.callsOf("sendMessage")]
    .filter(({ params }) => String(params["text"]).endsWith("…"))
    .map(({ at }) => at)
    .toSorted((a, b) => a - b);
  for (const [index, at] of instants.slice(1).entries()) expect(at - instants[index]!).toBeGreaterThanOrEqual(4_000);
  for (const from of instants) {
    expect(instants.filter((at) => at >= from && at < from + 60_000).length).toBeLessThanOrEqual(10);
  }
  expect(instants.length).toBeGreaterThan(15);
  // Each call carries the text of its own second, not that of the moment it began to wait.
  const startMs = clock.now() - clock.mono();
  for (const { at, params } of telegram.callsOf("editMessageText")) {
    const second = Number(String(params["text"]).match(/\d+/)?.[0]);
    expect(Math.abs(second - (at - startMs) / 1_000)).toBeLessThan(3);
  }
  await rig.until(() => shown(telegram, group).length === answers.length + 1);
  for (const result of await Promise.all(answers)) expect(result).toMatchObject({ kind: "sent" });
  await ended(rig, preview);
  expect(broken(telegram)).toEqual([]);
});

test("several topics of one group share its room for previews", async () => {
  const { telegram, channel, rig, group } = await withGroup({ limits: true });
  const threads = ["a", "b", "c"].map((name) => String(telegram.topic(group, name)));
  const previews = threads.map((thread) => channel.preview(place(group, { thread }), kept)!);
  for (let second = 1; second <= 60; second++) {
    for (const preview of previews) preview.show(`at ${second}`);
    await rig.pass(1_000);
  }
  const calls = telegram.callsOf("editMessageText").length + telegram.callsOf("sendMessage").length;
  expect(calls).toBeLessThanOrEqual(11);
  expect(shown(telegram, group)).toHaveLength(3);
  for (const preview of previews) await ended(rig, preview);
  expect(broken(telegram)).toEqual([]);
});

test("privately, as a message: from the first word on, then at most once a second", async () => {
  const { telegram, channel, rig, chat } = await withGroup({ limits: true });
  const preview = channel.preview(place(chat, { asMessage: true }), kept)!;
  preview.show("word");
  await rig.until(() => shown(telegram, chat).length === 1);
  expect(rig.clock.mono()).toBeLessThanOrEqual(500);
  for (let words = 2; words <= 20; words++) {
    preview.show("word ".repeat(words));
    await rig.pass(250);
  }
  await rig.until(() => shown(telegram, chat)[0]?.text === `${"word ".repeat(20)}…`);
  const instants = telegram.callsOf("editMessageText").map(({ at }) => at);
  for (const [index, at] of instants.slice(1).entries()) expect(at - instants[index]!).toBeGreaterThanOrEqual(1_000);
  expect(telegram.callsOf("sendMessageDraft")).toEqual([]);
  await ended(rig, preview);
  expect(broken(telegram)).toEqual([]);
});

test("of a text longer than a message the beginning is shown, once; the same text is not edited", async () => {
  const { telegram, channel, rig, group } = await withGroup();
  const preview = channel.preview(place(group), kept)!;
  preview.show("🦀".repeat(3_000));
  await rig.until(() => shown(telegram, group).length === 1);
  const { text } = shown(telegram, group)[0]!;
  expect(text.length).toBeLessThanOrEqual(4_096);
  expect(text.length).toBeGreaterThan(4_090);
  expect(text.isWellFormed() && text.endsWith("🦀 …")).toBe(true);
  preview.show("🦀".repeat(4_000));
  await rig.pass(20_000);
  expect(telegram.callsOf("editMessageText")).toEqual([]);
  await ended(rig, preview);
});

test("a turn that goes on after a crash goes on in its message, also privately", async () => {
  const { telegram, channel, rig, group, chat } = await withGroup();
  for (const where of [group, chat]) {
    const result = channel.send(part(where, "before …"), never);
    await rig.until(() => shown(telegram, where).length === 1);
    const { ref } = (await result) as { ref: string };
    const preview = channel.preview(place(where, { ref }), kept)!;
    preview.show("after");
    await rig.until(() => shown(telegram, where)[0]?.edits === 1);
    expect(shown(telegram, where)).toMatchObject([{ text: "after …" }]);
    expect(await ended(rig, preview)).toBe(ref);
  }
});

test("a message that is not kept is shown no further, and is taken away when it is discarded", async () => {
  const { telegram, channel, rig, group } = await withGroup();
  const preview = channel.preview(place(group), async () => false)!;
  preview.show("one");
  await rig.until(() => shown(telegram, group).length === 1);
  preview.show("two");
  await rig.pass(10_000);
  expect(telegram.callsOf("editMessageText")).toEqual([]);
  await ended(rig, preview);
  await preview.discard();
  expect(shown(telegram, group)).toEqual([]);
  expect(broken(telegram)).toEqual([]);
});

test("one that cannot be deleted says that it was stopped; a draft and nothing at all need no call", async () => {
  const { telegram, channel, rig, group, chat } = await withGroup();
  const preview = channel.preview(place(group), kept)!;
  preview.show("one");
  await rig.until(() => shown(telegram, group).length === 1);
  telegram.failNext("deleteMessage", { status: 400, description: "Bad Request: message can't be deleted" });
  await ended(rig, preview);
  const discarded = preview.discard();
  await rig.until(() => shown(telegram, group)[0]?.text === "(stopped)");
  await discarded;
  for (const nothing of [channel.preview(place(group), kept)!, channel.preview(place(chat), kept)!]) {
    expect(await ended(rig, nothing)).toBeUndefined();
    await nothing.discard();
  }
  expect(telegram.callsOf("deleteMessage")).toHaveLength(1);
});

const refusals: [string, number, string, object?][] = [
  ["too many calls", 429, "Too Many Requests: retry after 1", { retry_after: 1 }],
  ["no right to write", 403, "Forbidden: bot was kicked from the supergroup chat"],
  ["a closed topic", 400, "Bad Request: TOPIC_CLOSED"],
];
test.each(refusals)("a first preview that is refused (%s) is the last call of it in this turn", async (...refusal) => {
  const [_, status, description, parameters] = refusal;
  const { telegram, channel, rig, group } = await withGroup();
  telegram.failNext("sendMessage", { status, description, ...(parameters && { parameters }) });
  const preview = channel.preview(place(group), kept)!;
  preview.show("one");
  await rig.until(() => telegram.callsOf("sendMessage")[0]?.outcome);
  preview.show("two");
  await rig.pass(20_000);
  expect(telegram.callsOf("sendMessage")).toHaveLength(1);
  expect(await ended(rig, preview)).toBeUndefined();
  expect(broken(telegram)).toEqual([]);
});

test("a first preview of which nobody knows whether it arrived is never sent a second time", async () => {
  const { telegram, channel, rig, group } = await withGroup();
  telegram.dropAfterAccept("sendMessage");
  const preview = channel.preview(place(group), kept)!;
  preview.show("one");
  await rig.until(() => telegram.callsOf("sendMessage")[0]?.outcome);
  preview.show("two");
  await rig.pass(20_000);
  expect(shown(telegram, group)).toHaveLength(1);
  expect(await ended(rig, preview)).toBeUndefined();
});

test("an edit that is refused ends the preview; one of which no answer comes does not", async () => {
  const { telegram, channel, rig, group } = await withGroup();
  const preview = channel.preview(place(group), kept)!;
  preview.show("one");
  await rig.until(() => shown(telegram, group).length === 1);
  telegram.dropBefore("editMessageText");
  preview.show("two");
  await rig.until(() => telegram.callsOf("editMessageText").length === 1);
  preview.show("three");
  await rig.until(() => shown(telegram, group)[0]?.text === "three …");
  telegram.failNext("editMessageText", {
    status: 429,
    description: "Too Many Requests",
    parameters: { retry_after: 1 },
  });
  preview.show("four");
  await rig.until(() => telegram.callsOf("editMessageText").length === 3);
  preview.show("five");
  await rig.pass(20_000);
  expect(telegram.callsOf("editMessageText")).toHaveLength(3);
  expect(await ended(rig, preview)).toBe(String(shown(telegram, group)[0]?.id));
});

test("the end waits for a preview in flight and for its being kept", async () => {
  const { telegram, channel, rig, group } = await withGroup();
  telegram.latencyMs(700);
  const gate = Promise.withResolvers<boolean>();
  const preview = channel.preview(place(group), () => gate.promise)!;
  preview.show("one");
  await rig.until(() => telegram.callsOf("sendMessage").length === 1);
  let isEnded = false;
  const end = preview.end().then(() => {
    isEnded = true;
  });
  await rig.until(() => telegram.callsOf("sendMessage")[0]?.outcome);
  await rig.pass(500);
  expect(isEnded).toBe(false);
  gate.resolve(true);
  await end;
});
