import { expect, test } from "vitest";
import { InvalidInput, NotFound } from "../../../src/kernel/errors.ts";
import { broken } from "../../support/telegram/raw.ts";
import { kept, part, place, rigWith } from "./telegram-rig.ts";

const never = new AbortController().signal;

async function withPerson() {
  const rig = await rigWith();
  const ada = rig.telegram.user({ id: 101, name: "Ada" });
  const chat = rig.telegram.privateChat(ada);
  return { ...rig, ada, chat };
}

test("a growing text is shown at most once a second, always the newest, under one id, with a stop button (Q7.3)", async () => {
  const { telegram, channel, pass, until, chat } = await withPerson();
  const preview = channel.preview(place(101), kept)!;
  for (let words = 1; words <= 40; words++) {
    preview.show("word ".repeat(words));
    await pass(250);
  }
  await until(() => telegram.drafts(chat).at(-1)?.text === "word ".repeat(40).trimEnd());
  const drafts = telegram.drafts(chat);
  for (const [index, { shownMs }] of drafts.slice(1).entries()) {
    expect(shownMs - drafts[index]!.shownMs).toBeGreaterThanOrEqual(1_000);
  }
  expect(new Set(drafts.map(({ draftId }) => draftId)).size).toBe(1);
  expect(drafts.every(({ canStop }) => canStop)).toBe(true);
  const shown = drafts.length;
  preview.show("word ".repeat(40));
  await preview.end();
  preview.show("too late");
  await pass(3_000);
  expect(telegram.drafts(chat)).toHaveLength(shown);
  expect(broken(telegram)).toEqual([]);
});

test("the final message comes after the last draft that was in flight, so no draft is left beside it (Q7.3)", async () => {
  const { telegram, channel, until, chat } = await withPerson();
  telegram.latencyMs(400);
  const preview = channel.preview(place(101), kept)!;
  preview.show("half a");
  await until(() => telegram.callsOf("sendMessageDraft").length === 1);
  let isEnded = false;
  const ended = preview.end().then(() => {
    isEnded = true;
  });
  await until(() => isEnded);
  await ended;
  expect(telegram.callsOf("sendMessageDraft")[0]?.outcome?.kind).toBe("ok");
  telegram.latencyMs(0);
  await channel.send(part(chat, "half a sentence"), never);
  expect(telegram.draft(chat)).toBeUndefined();
});

test("a draft too long for a message shows its end", async () => {
  const { telegram, channel, until, chat } = await withPerson();
  const preview = channel.preview(place(101), kept)!;
  preview.show(`${"🦀".repeat(5_000)} the end`);
  await until(() => telegram.drafts(chat).length === 1);
  const [draft] = telegram.drafts(chat);
  expect(draft!.text.length).toBeLessThanOrEqual(4_096);
  expect(draft!.text.endsWith(" the end")).toBe(true);
  await preview.end();
  expect(broken(telegram)).toEqual([]);
});

test("a server that knows no drafts is asked once", async () => {
  const { telegram, channel, until, pass } = await withPerson();
  telegram.failNext("sendMessageDraft", { status: 404, description: "Not Found: method not found" });
  const preview = channel.preview(place(101), kept)!;
  preview.show("one");
  await until(() => telegram.callsOf("sendMessageDraft")[0]?.outcome);
  preview.show("two");
  await pass(5_000);
  expect(telegram.callsOf("sendMessageDraft")).toHaveLength(1);
  await preview.end();
  expect(channel.preview(place(101), kept)).toBeUndefined();
});

test("a draft that fails is dropped and the next one is shown", async () => {
  const { telegram, channel, until, chat } = await withPerson();
  telegram.badGateway("sendMessageDraft");
  const preview = channel.preview(place(101), kept)!;
  preview.show("one");
  await until(() => telegram.callsOf("sendMessageDraft")[0]?.outcome);
  preview.show("two");
  await until(() => telegram.drafts(chat).length === 1);
  expect(telegram.drafts(chat)[0]?.text).toBe("two");
  await preview.end();
});

test("typing is shown soon and again before it fades, until it is stopped", async () => {
  const { telegram, clock, channel, until, pass } = await withPerson();
  const stop = channel.typing("101", undefined);
  await until(() => telegram.callsOf("sendChatAction").length === 3);
  const instants = telegram.callsOf("sendChatAction").map(({ at }) => at);
  expect(instants[2]! - instants[0]!).toBeLessThanOrEqual(10_000);
  stop();
  await pass(20_000);
  expect(telegram.callsOf("sendChatAction")).toHaveLength(3);
  expect(clock.waiting()).toBe(0);
});

test("an answer that is there at once shows neither typing nor a draft: their calls would be in its way", async () => {
  const { telegram, channel, pass } = await withPerson();
  const stop = channel.typing("101", undefined);
  const preview = channel.preview(place(101), kept);
  preview?.show("a quick answer");
  stop();
  await preview?.end();
  await pass(20_000);
  expect(telegram.callsOf("sendChatAction")).toHaveLength(0);
  expect(telegram.callsOf("sendMessageDraft")).toHaveLength(0);
});

test("what an earlier host was told to wait for holds everything that is sent or shown (G4)", async () => {
  const { telegram, channel, pass, until } = await withPerson();
  channel.hold(5_000);
  const stop = channel.typing("101", undefined);
  const preview = channel.preview(place(101), kept)!;
  preview.show("growing");
  await pass(4_000);
  expect(await channel.send(part(101, "early"), never)).toMatchObject({ kind: "later", wholeAccount: true });
  expect(telegram.calls).toEqual([]);
  await until(() => telegram.callsOf("sendChatAction").length === 1);
  stop();
});

test("typing in a chat that is closed to the bot is not tried again", async () => {
  const { telegram, channel, pass, chat } = await withPerson();
  telegram.blocks(chat);
  const stop = channel.typing("101", undefined);
  await pass(20_000);
  stop();
  expect(telegram.callsOf("sendChatAction")).toHaveLength(1);
});

test("an attachment is downloaded whole, also by a later life of the channel; not when it is too large or gone", async () => {
  const { telegram, channel, host, start, until, ada, chat } = await withPerson();
  const bytes = new Uint8Array(300_000).map((_, index) => index % 251);
  start();
  telegram.says(chat, ada, "look", { document: { name: "data.bin", type: "application/octet-stream", bytes } });
  await until(() => host.events().length === 1);
  const [attachment] = host.events()[0]!.attachments;
  const ref = attachment!.ref;
  expect(Buffer.from(await channel.download(ref, 300_000, never)).equals(Buffer.from(bytes))).toBe(true);
  await expect(channel.download(ref, 299_999, never)).rejects.toThrow(InvalidInput);
  await expect(channel.download("no-such-file", 1_000, never)).rejects.toThrow(NotFound);
  await expect(channel.download(ref, 300_000, AbortSignal.abort())).rejects.toThrow();
});

test("a download stops at the limit when there is more than was said, and names no token when it fails (SEC-1)", async () => {
  const { telegram, channel, host, start, until, ada, chat } = await withPerson();
  start();
  const bytes = new Uint8Array(200_000);
  telegram.says(chat, ada, "liar", { document: { name: "a.bin", type: "x/y", bytes, size: 10 } });
  await until(() => host.events().length === 1);
  const ref = host.events()[0]!.attachments[0]!.ref;
  await expect(channel.download(ref, 1_000, never)).rejects.toThrow(InvalidInput);
  await telegram.offline(true);
  const error = await channel.download(ref, 1_000, never).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Error);
  expect(`${String(error)} ${JSON.stringify(error, Object.getOwnPropertyNames(error))}`).not.toContain(
    telegram.token.split(":")[1],
  );
});

test("commands are registered once the bot is known, again when they change, and after failures", async () => {
  const { telegram, channel, start, until } = await withPerson();
  telegram.badGateway("setMyCommands");
  channel.announceCommands([
    { name: "status", about: "What is going on" },
    { name: "Queue", about: "x".repeat(300) },
    { name: "not-a-name", about: "left out" },
  ]);
  expect(telegram.calls).toEqual([]);
  start();
  await until(() => telegram.callsOf("setMyCommands").at(-1)?.outcome?.kind === "ok");
  expect(telegram.callsOf("setMyCommands").at(-1)?.params["commands"]).toEqual([
    { command: "status", description: "What is going on" },
    { command: "queue", description: "x".repeat(256) },
  ]);
  channel.announceCommands([{ name: "new", about: "" }]);
  await until(() => telegram.callsOf("setMyCommands").length === 3);
  expect(telegram.callsOf("setMyCommands").at(-1)?.params["commands"]).toEqual([
    { command: "new", description: "new" },
  ]);
  expect(broken(telegram)).toEqual([]);
});
