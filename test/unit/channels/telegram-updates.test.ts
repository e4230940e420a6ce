import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ChannelEvent } from "../../../src/channels/port.ts";
import type { Bot } from "../../../src/channels/telegram/schema.ts";
import { normalise } from "../../../src/channels/telegram/updates.ts";

const BOT: Bot = { id: 77, username: "Laneway_Bot", first_name: "Laneway" };
const ADA = { id: 101, is_bot: false, first_name: "Ada", last_name: "Lovelace", username: "ada" };
const DM = { id: 101, type: "private", first_name: "Ada" };
const GROUP = { id: -100_555, type: "supergroup", title: "Team", is_forum: true };
const SELF = { id: 77, is_bot: true, first_name: "Laneway", username: "Laneway_Bot" };
const OTHER_BOT = { id: 88, is_bot: true, first_name: "Other", username: "other_bot" };

let nextUpdate = 500;
const update = (body: object) => ({ update_id: nextUpdate++, ...body });
const message = (over: object) =>
  update({ message: { message_id: 9, date: 1_700_000_000, chat: DM, from: ADA, ...over } });

function event(raw: unknown): ChannelEvent {
  const found = normalise(raw, BOT);
  if (found === undefined || "problem" in found) throw new Error(`expected an event, got ${JSON.stringify(found)}`);
  return found;
}

/** The entities that Telegram would find for mentions and commands. */
function withEntities(text: string) {
  const found = [...text.matchAll(/(?<=^|\s)(?:@\w+|\/\w+(?:@\w+)?)/g)].map((match) => ({
    type: match[0].startsWith("@") ? "mention" : "bot_command",
    offset: match.index,
    length: match[0].length,
  }));
  return { text, entities: found };
}

test("a text in a private chat", () => {
  expect(event(message({ text: "hello" }))).toEqual({
    key: "m:101:9",
    rawHash: expect.stringMatching(/^[\w-]{43}$/),
    ...{ chat: "101", thread: undefined, chatKind: "private", addressed: "none", ref: "9", kind: "message" },
    sender: { id: "101", name: "Ada Lovelace", bot: false },
    ...{ text: "hello", quoted: undefined, attachments: [], album: undefined, full: false },
  });
});

test("the same event has the same key and hash whatever id it comes under and however its fields are ordered (G2)", () => {
  const first = event({ update_id: 1, message: { message_id: 9, date: 1, chat: DM, from: ADA, text: "x" } });
  const second = event({ message: { text: "x", from: ADA, chat: DM, date: 1, message_id: 9 }, update_id: 99 });
  expect([second.key, second.rawHash]).toEqual([first.key, first.rawHash]);
});

test("different events never share a key, also under one update id: messages, chats, edits, presses, messages without an id (G2)", () => {
  const at = { message_id: 9, date: 1, chat: DM, from: ADA };
  const edit = (over: object) => ({ update_id: 1, edited_message: { ...at, edit_date: 5, text: "x", ...over } });
  const keys = [
    { update_id: 1, message: { ...at, text: "x" } },
    { update_id: 1, message: { ...at, message_id: 10, text: "x" } },
    { update_id: 1, message: { ...at, chat: GROUP, text: "x" } },
    edit({}),
    edit({ edit_date: 6 }),
    edit({ text: "y" }),
    { update_id: 1, message: { ...at, message_id: 0, text: "x" } },
    { update_id: 1, message: { ...at, message_id: 0, text: "y" } },
    { update_id: 1, callback_query: { id: "9", from: ADA, data: "stop:", message: at } },
    { update_id: 1, stopped_message_generation: { chat: DM, draft_id: 9 } },
    { update_id: 1, stopped_message_generation: { chat: DM, draft_id: 10 } },
    { update_id: 1, stopped_message_generation: { chat: DM, draft_id: 9, message_thread_id: 3 } },
  ].map((raw) => event(raw).key);
  expect(new Set(keys).size).toBe(keys.length);
});

describe("what is meant for the bot (Q11.3)", () => {
  const replyToBot = { reply_to_message: { message_id: 3, date: 1, chat: GROUP, from: SELF, text: "I said" } };
  const replyToAda = { reply_to_message: { message_id: 3, date: 1, chat: GROUP, from: ADA, text: "she said" } };
  const textMention = { text: "Laneway do it", entities: [{ type: "text_mention", offset: 0, length: 7, user: SELF }] };
  const otherMention = { text: "Otto do it", entities: [{ type: "text_mention", offset: 0, length: 4, user: ADA }] };
  const table: [string, object, ChannelEvent["addressed"], string][] = [
    ["a mention", withEntities("@Laneway_Bot do it"), "mention", "do it"],
    ["a mention in other letters", withEntities("@LANEWAY_bot do it"), "mention", "do it"],
    ["a mention at the end", withEntities("do it @laneway_bot"), "mention", "do it"],
    ["a mention in the middle", withEntities("please @laneway_bot do it"), "mention", "please do it"],
    ["a mention with a comma", withEntities("@laneway_bot , do it"), "mention", "do it"],
    ["only a mention", withEntities("@laneway_bot"), "mention", ""],
    ["a mention of a name that only begins alike", withEntities("@laneway_bot2 do it"), "none", "@laneway_bot2 do it"],
    ["a mention of another bot", withEntities("@other_bot do it"), "none", "@other_bot do it"],
    [
      "the name in code, which is no mention",
      { text: "@laneway_bot do it", entities: [] },
      "none",
      "@laneway_bot do it",
    ],
    ["a mention without a username", textMention, "mention", "do it"],
    ["such a mention of a person", otherMention, "none", "Otto do it"],
    ["a reply to me", { text: "and?", ...replyToBot }, "reply", "and?"],
    ["a reply to a person", { text: "and?", ...replyToAda }, "none", "and?"],
    ["a reply to me by a bot", { text: "and?", from: OTHER_BOT, ...replyToBot }, "reply", "and?"],
    ["a command", withEntities("/status now"), "command", "/status now"],
    ["a command to me", withEntities("/status@laneway_BOT now"), "command", "/status now"],
    ["a command to me, alone", withEntities("/status@Laneway_Bot"), "command", "/status"],
    ["a command to another bot", withEntities("/status@other_bot now"), "none", "/status@other_bot now"],
    [
      "a command to another bot, as a reply to me",
      { ...withEntities("/status@other_bot now"), ...replyToBot },
      "none",
      "/status@other_bot now",
    ],
    ["a command in the middle", withEntities("type /status now"), "none", "type /status now"],
    ["nothing of it", { text: "good morning" }, "none", "good morning"],
    [
      "a mention in a caption",
      {
        caption: "@laneway_bot look",
        caption_entities: withEntities("@laneway_bot look").entities,
        photo: [size("p", 1)],
      },
      "mention",
      "look",
    ],
  ];
  const places: [string, object, string | undefined][] = [
    ["a private chat", { chat: DM }, undefined],
    ["a group", { chat: GROUP }, undefined],
    ["a topic", { chat: GROUP, is_topic_message: true, message_thread_id: 44 }, "44"],
  ];
  for (const [place, where, thread] of places) {
    test.each(table)(`%s in ${place}`, (_what, over, addressed, text) => {
      expect(event(message({ ...where, ...over }))).toMatchObject({ addressed, text, thread });
    });
  }

  test("a message of a topic that the bot made is no reply to it, and quotes nothing", () => {
    const root = { message_id: 44, date: 1, chat: GROUP, from: SELF, forum_topic_created: { name: "Plans" } };
    const found = event(
      message({ chat: GROUP, is_topic_message: true, message_thread_id: 44, text: "hi", reply_to_message: root }),
    );
    expect(found).toMatchObject({ addressed: "none", quoted: undefined, thread: "44" });
  });

  test("a bot without a username is never mentioned by one", () => {
    const found = normalise(message(withEntities("@undefined hi")), { id: 77 });
    expect(found).toMatchObject({ addressed: "none" });
  });
});

test("only topics are threads; a chain of replies and the general topic are not", () => {
  expect(event(message({ chat: GROUP, message_thread_id: 44, text: "x" })).thread).toBeUndefined();
  expect(
    event(message({ chat: GROUP, is_topic_message: true, message_thread_id: 1, text: "x" })).thread,
  ).toBeUndefined();
  expect(event(message({ is_topic_message: true, message_thread_id: 1, text: "x" })).thread).toBe("1");
});

describe("who is held to an event (ID-3)", () => {
  const anonymous = { id: 1_087_968_824, is_bot: true, first_name: "Group" };
  const service = { id: 777_000, is_bot: false, first_name: "Telegram" };
  const channelBot = { id: 136_817_688, is_bot: true, first_name: "Channel" };
  const channel = { id: -100_999, type: "channel", title: "News" };
  test.each<[string, object]>([
    ["an anonymous administrator", { from: anonymous, sender_chat: GROUP }],
    ["an anonymous administrator without the chat", { from: anonymous }],
    ["a post of the linked channel", { from: service, sender_chat: channel, is_automatic_forward: true }],
    ["a post of the linked channel without the chat", { from: service }],
    ["a person who writes as a channel", { from: channelBot, sender_chat: channel }],
    ["a person with a chat's name on top", { sender_chat: channel }],
    ["another bot's words through a person", { via_bot: OTHER_BOT }],
    ["no author at all", { from: undefined }],
  ])("nobody for %s", (_what, over) => {
    expect(event(message({ chat: GROUP, text: "/approve 1", ...over })).sender).toBeUndefined();
  });

  test("a forwarded message is its forwarder's, says whose words it has, and is no command", () => {
    const owner = { type: "user", date: 1, sender_user: { id: 1, is_bot: false, first_name: "Owner" } };
    const found = event(message({ ...withEntities("/approve 1"), forward_origin: owner }));
    expect(found.sender?.id).toBe("101");
    expect(found.text).toBe("[forwarded from Owner]\n/approve 1");
    const hidden = { type: "hidden_user", date: 1, sender_user_name: "Someone" };
    expect(event(message({ text: "x", forward_origin: hidden })).text).toBe("[forwarded from Someone]\nx");
    const post = { type: "channel", date: 1, chat: channel, message_id: 4 };
    expect(event(message({ text: "x", forward_origin: post })).text).toBe("[forwarded from News]\nx");
  });

  test("an edit is its editor's, and is no message", () => {
    const edited = update({
      edited_message: { message_id: 9, date: 1, edit_date: 2, chat: DM, from: ADA, text: "new" },
    });
    expect(event(edited)).toMatchObject({ kind: "edit", sender: { id: "101" }, text: "new", ref: "9" });
  });

  test("a press is that of whoever pressed, in the topic of the button", () => {
    const button = { message_id: 12, date: 1, chat: GROUP, from: SELF, is_topic_message: true, message_thread_id: 44 };
    const pressed = update({ callback_query: { id: "q", from: ADA, data: "stop:c7", message: button } });
    expect(event(pressed)).toMatchObject({
      ...{ kind: "stop", text: "c7", sender: { id: "101" }, chat: "-100555", thread: "44", ref: "12" },
    });
  });

  test("the stop button of a draft is the person's whose private chat it is", () => {
    const stopped = update({ stopped_message_generation: { chat: DM, message_thread_id: 3, draft_id: 5 } });
    expect(event(stopped)).toMatchObject({ kind: "stop", sender: { id: "101" }, chat: "101", thread: "3", ref: "5" });
  });

  test("other bots are marked, own messages are ignored", () => {
    expect(event(message({ chat: GROUP, from: OTHER_BOT, text: "beep" })).sender).toMatchObject({ bot: true });
    expect(normalise(message({ chat: GROUP, from: SELF, text: "I" }), BOT)).toBeUndefined();
    expect(
      normalise(update({ edited_message: { message_id: 1, date: 1, chat: DM, from: SELF, text: "I" } }), BOT),
    ).toBeUndefined();
  });
});

function size(id: string, width: number) {
  return { file_id: id, file_unique_id: id, width, height: width, file_size: width * 10 };
}
const file = (id: string, more: object = {}) => ({ file_id: id, file_unique_id: id, ...more });

describe("what a message holds", () => {
  test.each<[string, object, object]>([
    [
      "the largest photo",
      { photo: [size("s", 1), size("l", 9), size("m", 3)] },
      { kind: "image", ref: "l", bytes: 90 },
    ],
    [
      "a voice note",
      { voice: file("v", { mime_type: "audio/ogg" }) },
      { kind: "voice", ref: "v", mediaType: "audio/ogg" },
    ],
    ["music", { audio: file("a", { file_name: "song.mp3" }) }, { kind: "audio", ref: "a", name: "song.mp3" }],
    ["a video", { video: file("w") }, { kind: "video", ref: "w" }],
    ["a round video", { video_note: file("n") }, { kind: "video", ref: "n" }],
    ["an animation, once", { animation: file("g"), document: file("g") }, { kind: "video", ref: "g" }],
    ["a document", { document: file("d", { mime_type: "application/pdf" }) }, { kind: "document", ref: "d" }],
    ["a picture as a file", { document: file("i", { mime_type: "image/png" }) }, { kind: "image", ref: "i" }],
  ])("%s", (_what, over, attachment) => {
    const found = event(message({ caption: "look", ...over }));
    expect(found.text).toBe("look");
    expect(found.attachments).toHaveLength(1);
    expect(found.attachments[0]).toMatchObject(attachment);
  });

  test.each<[object, string]>([
    [{ sticker: file("s", { emoji: "🎉" }) }, "[sticker: 🎉]"],
    [{ sticker: file("s") }, "[sticker]"],
    [{ dice: { emoji: "🎲", value: 4 } }, "[dice: 🎲 shows 4]"],
    [{ location: { latitude: 52.5, longitude: 13.4 } }, "[location: 52.5, 13.4]"],
    [
      {
        location: { latitude: 1, longitude: 2 },
        venue: { title: "Café", address: "Road 1", location: { latitude: 1, longitude: 2 } },
      },
      "[venue: Café, Road 1 (1, 2)]",
    ],
    [{ contact: { first_name: "Bob", last_name: "B", phone_number: "+1" } }, "[contact: Bob B, +1]"],
    [{ poll: { id: "1", question: "Tea?", options: [{ text: "yes" }, { text: "no" }] } }, "[poll: Tea? (yes) (no)]"],
  ])("%j becomes a line", (over, text) => {
    expect(event(message(over)).text).toBe(text);
  });

  test("an album's messages carry its id", () => {
    expect(event(message({ photo: [size("a", 1)], media_group_id: "13" })).album).toBe("13");
  });

  test("what is answered or quoted comes along", () => {
    const replied = { message_id: 3, date: 1, chat: DM, from: SELF, text: "the whole answer" };
    expect(event(message({ text: "?", reply_to_message: replied })).quoted).toEqual({
      ...{ author: "Laneway", text: "the whole answer" },
    });
    const quote = { text: "whole", position: 4 };
    expect(event(message({ text: "?", reply_to_message: replied, quote })).quoted?.text).toBe("whole");
    const photo = { message_id: 3, date: 1, chat: DM, from: ADA, photo: [size("p", 1)] };
    expect(event(message({ text: "?", reply_to_message: photo })).quoted).toEqual({
      author: "Ada Lovelace",
      text: "[image]",
    });
    const origin = { type: "channel", date: 1, message_id: 1, chat: { id: -1, type: "channel", title: "News" } };
    expect(event(message({ text: "?", external_reply: { origin }, quote })).quoted).toEqual({
      author: "News",
      text: "whole",
    });
  });

  test("a text near the limit may have a rest", () => {
    expect(event(message({ text: "x".repeat(4_096) })).full).toBe(true);
    expect(event(message({ text: "x".repeat(4_000) })).full).toBe(true);
    expect(event(message({ text: "x".repeat(1_000) })).full).toBe(false);
  });
});

test.each<[string, object]>([
  ["a kind that is not known", { something_new: { id: 1 } }],
  ["a change of membership", { my_chat_member: { chat: DM, from: ADA, date: 1 } }],
  ["a service message", { message: { message_id: 1, date: 1, chat: GROUP, from: ADA, new_chat_title: "T" } }],
  ["a post of a channel", { message: { message_id: 1, date: 1, chat: { id: -1, type: "channel" }, text: "x" } }],
  [
    "a live location that moves",
    {
      edited_message: {
        message_id: 1,
        date: 1,
        chat: DM,
        from: ADA,
        location: { latitude: 1, longitude: 2, live_period: 60 },
      },
    },
  ],
  [
    "a button that is not ours",
    { callback_query: { id: "1", from: ADA, data: "x", message: { message_id: 1, date: 0, chat: DM } } },
  ],
  ["a press of an inline message", { callback_query: { id: "1", from: ADA, data: "stop:1", inline_message_id: "i" } }],
])("%s is not for the host", (_what, body) => {
  expect(normalise(update(body), BOT)).toBeUndefined();
});

test.each<[string, unknown]>([
  ["a message without a chat", { update_id: 1, message: { message_id: 1, date: 1, text: "x" } }],
  ["a text that is none", { update_id: 1, message: { message_id: 1, date: 1, chat: DM, text: 5 } }],
  ["no object", "hello"],
  ["nothing", null],
])("%s is kept raw under a key of its own that is the same at each redelivery", (_what, raw) => {
  const found = normalise(raw, BOT);
  expect(found).toMatchObject({ raw: expect.any(String), problem: expect.stringMatching(/./) });
  expect(normalise(raw, BOT)).toEqual(found);
});

test("nesting deeper than the stack is kept as unreadable", () => {
  const deep = JSON.parse(`{"update_id":5,"message":${"[".repeat(200_000)}${"]".repeat(200_000)}}`);
  expect(normalise(deep, BOT)).toMatchObject({ problem: expect.any(String) });
});

test("whatever comes, nothing is thrown and every event is whole (property)", () => {
  const id = fc.oneof(fc.integer(), fc.constant(77));
  const person = fc.record(
    { id, first_name: fc.string(), is_bot: fc.boolean() },
    { requiredKeys: ["id", "first_name"] },
  );
  const chat = fc.record({
    id,
    type: fc.constantFrom("private", "group", "supergroup", "channel"),
    title: fc.string(),
  });
  const entity = fc.record({
    ...{
      type: fc.constantFrom("mention", "bot_command", "text_mention", "bold"),
      offset: fc.nat(40),
      length: fc.nat(40),
    },
    user: person,
  });
  const any = fc.anything({ maxDepth: 2 });
  const content = {
    ...{ text: fc.string({ unit: "binary" }), caption: fc.string(), entities: fc.array(entity), from: person },
    ...{ sender_chat: chat, reply_to_message: any, photo: any, document: any, quote: any, forward_origin: any },
  };
  const plausible = fc.record(
    { message_id: id, date: fc.nat(), chat, ...content },
    { requiredKeys: ["message_id", "date", "chat"] },
  );
  const update = fc.oneof(
    fc.anything(),
    fc.record({ update_id: fc.nat(), message: fc.oneof(plausible, any) }),
    fc.record({ update_id: fc.nat(), edited_message: plausible }),
    fc.record({
      update_id: fc.nat(),
      callback_query: fc.record({ id: fc.string(), from: person, data: any, message: any }),
    }),
  );
  fc.assert(
    fc.property(update, (raw) => {
      const found = normalise(raw, BOT);
      if (found === undefined) return;
      expect(found.key).not.toBe("");
      if ("problem" in found) return;
      expect(found.chat).not.toBe("");
      expect(typeof found.text).toBe("string");
    }),
    { numRuns: 2_000 },
  );
});
