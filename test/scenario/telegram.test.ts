import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { botTexts, expectNoSecret, FRIENDS, startStage, type TelegramStage, talk, written } from "./telegram-stage.ts";

// Private chats: what people send. One host; each test has a person of its own.

let stage: TelegramStage;

beforeAll(async () => {
  const transcribe = `media: { transcribe: { command: [ "sh", "-c", "wc -c" ] } }`;
  stage = await startStage({ telegram: FRIENDS, backend: "vision: true", more: transcribe });
});
afterAll(async () => {
  if (stage === undefined) return;
  await expectNoSecret(stage);
  expect(stage.telegram.violations).toEqual([]);
  await stage[Symbol.asyncDispose]();
});

describe.concurrent("a message", () => {
  test("is answered once, in reply to it, with previews of links off", async () => {
    const { telegram } = stage;
    const { user, chat } = stage.friend();
    const asked = telegram.says(chat, user, "hello **there** https://example.org");
    const [answer] = await written(telegram, chat, 1);
    expect(answer).toMatchObject({
      text: "echo: hello there https://example.org",
      replyTo: asked.message_id,
      linkPreview: { is_disabled: true },
    });
    expect(answer?.entities).toContainEqual({ type: "bold", offset: 12, length: 5 });
  });

  test("that answers another one brings its words along, marked as another's (Q14.4)", async () => {
    const { telegram, model } = stage;
    const { user, chat } = stage.friend();
    const first = await talk(telegram, { user, chat }, "the sky is green");
    telegram.says(chat, user, "are you sure?", { replyTo: first.id });
    await written(telegram, chat, 2);
    expect(model.asked).toContain('[Answers Laneway: "echo: the sky is green"]\nare you sure?');
  });

  test("with a picture is shown to a model that sees, with its caption", async () => {
    const { telegram } = stage;
    const { user, chat } = stage.friend();
    telegram.says(chat, user, "what is this?", { photo: new Uint8Array(3_000).fill(7) });
    const [answer] = await written(telegram, chat, 1);
    expect(answer?.text).toBe("echo: <image/jpeg, 3000 bytes>\nwhat is this?");
  });

  test("without words, only a picture, is one too", async () => {
    const { telegram } = stage;
    const { user, chat } = stage.friend();
    telegram.says(chat, user, "", { photo: new Uint8Array(2_000) });
    const [answer] = await written(telegram, chat, 1);
    expect(answer?.text).toBe("echo: <image/jpeg, 2000 bytes>");
  });

  test("that is a voice note is heard by the command of the settings", async () => {
    const { telegram } = stage;
    const { user, chat } = stage.friend();
    telegram.says(chat, user, "", { voice: { bytes: new Uint8Array(1_234) } });
    const [answer] = await written(telegram, chat, 1);
    expect(answer?.text).toBe("echo: [voice, transcribed] 1234");
  });

  test("with a picture that is too large, and with a file that nobody can read, says so to the model (Q7.5)", async () => {
    const { telegram } = stage;
    const { user, chat } = stage.friend();
    const large = { bytes: new Uint8Array(10), size: 30 * 1_048_576, name: "big.png", type: "image/png" };
    telegram.says(chat, user, "look", { document: large });
    const [first] = await written(telegram, chat, 1);
    expect(first?.text).toMatch(/^echo: look\n\[image big\.png, 30720 KB: it could not be fetched: /);
    telegram.says(chat, user, "read", { document: { bytes: new Uint8Array(10), name: "a.bin" } });
    const [, second] = await written(telegram, chat, 2);
    expect(second?.text).toBe("echo: read\n[document a.bin, 1 KB: this kind of file cannot be read yet]");
  });
});

describe.concurrent("what belongs together", () => {
  test("an album is one message with all its pictures (Q7.5, Q1.7)", async () => {
    const { telegram, model } = stage;
    const { user, chat } = stage.friend();
    const first = telegram.says(chat, user, "three of us", { album: "trip", photo: new Uint8Array(1_001) });
    telegram.says(chat, user, "", { album: "trip", photo: new Uint8Array(1_002) });
    telegram.says(chat, user, "", { album: "trip", photo: new Uint8Array(1_003) });
    const [answer] = await written(telegram, chat, 1);
    const images = [1_001, 1_002, 1_003].map((bytes) => `<image/jpeg, ${bytes} bytes>`);
    const words = [...images, "three of us"].join("\n");
    expect(answer).toMatchObject({ text: `echo: ${words}`, replyTo: first.message_id });
    expect(model.asked.filter((asked) => /<image\/jpeg, 100\d bytes>/.test(asked))).toEqual([words]);
  });

  test("a long paste that the app has cut is put together again, and answered once", async () => {
    const { telegram, model } = stage;
    const { user, chat } = stage.friend();
    const pieces = ["one ".repeat(1_000).trim(), "two ".repeat(1_000).trim(), "and the end"];
    for (const piece of pieces) telegram.says(chat, user, piece);
    await telegram.until(() => botTexts(telegram, chat).join(" ").endsWith("and the end"));
    expect(model.asked.filter((words) => /^(one|two) |and the end/.test(words))).toEqual([pieces.join("\n")]);
  });
});

describe.concurrent("an edit", () => {
  test("changes a message that nobody has begun", async () => {
    const { telegram, model } = stage;
    const { user, chat } = stage.friend();
    const slow = model.slow("hold the session");
    telegram.says(chat, user, "hold the session");
    await slow.asked;
    const waiting = telegram.says(chat, user, "buy mlik");
    telegram.says(chat, user, "buy milk", { edit: waiting.message_id });
    await telegram.until(() => telegram.pending.length === 0);
    await slow.says("done");
    await slow.ends();
    const [, answer] = await written(telegram, chat, 2);
    expect(answer).toMatchObject({ text: "echo: buy milk", replyTo: waiting.message_id });
    expect(model.asked).not.toContain("buy mlik");
  });

  test("of an answered message is answered anew, and one that changes no word is none (Q6.1)", async () => {
    const { telegram, model } = stage;
    const { user, chat } = stage.friend();
    const asked = telegram.says(chat, user, "capital of Frence?");
    await written(telegram, chat, 1);
    telegram.says(chat, user, "capital of France?", { edit: asked.message_id });
    const [, anew] = await written(telegram, chat, 2);
    expect(anew).toMatchObject({ text: "echo: (Edited) capital of France?", replyTo: asked.message_id });
    const known = telegram.says(chat, user, "same words");
    await written(telegram, chat, 3);
    telegram.says(chat, user, "same words", { edit: known.message_id });
    expect((await talk(telegram, { user, chat }, "next")).text).toBe("echo: next");
    expect(model.asked.filter((words) => words.endsWith("same words"))).toHaveLength(1);
  });
});

describe.concurrent("chat commands", () => {
  test("are registered with Telegram by name, all of the one table", async () => {
    const { body } = await stage.world.host().api("commands");
    const call = await stage.telegram.until(() => stage.telegram.callsOf("setMyCommands").at(-1));
    const raw = call.params["commands"];
    const registered = (typeof raw === "string" ? JSON.parse(raw) : raw) as { command: string }[];
    expect(registered.map(({ command }) => command)).toEqual(body.commands.map(({ name }: { name: string }) => name));
    expect(registered.map(({ command }) => command)).toEqual(
      expect.arrayContaining(["help", "status", "new", "stop", "queue", "model", "whoami", "resend"]),
    );
  });

  test("work in Telegram as elsewhere, and cost no model call", async () => {
    const { telegram, model, owner } = stage;
    const says = async (text: string) => (await talk(telegram, owner, text)).text;
    expect(await says("/help")).toContain("/whoami: who you are to this host");
    expect(await says("/status")).toContain("Answers come from model (fake).");
    expect(await says("/queue")).toBe("Nothing runs or waits in this chat.");
    expect(await says("/model")).toContain("model (fake)");
    expect(await says("/model nobody")).toContain("There is no backend nobody.");
    expect(await says("/model model")).toContain("model answers in this conversation");
    expect(await says("/whoami")).toContain("as owner");
    expect(await says("/resend 4711")).toContain("Use /resend N");
    expect(await says("/new")).toBe("A new conversation begins here.");
    expect(await says("/stop")).toBe("Nothing runs here.");
    expect(await says("/stpo")).toContain("Did you mean /stop?");
    expect(await says("/help@laneway_test_bot")).toContain("/whoami");
    expect(model.asked.filter((words) => words.startsWith("/"))).toEqual([]);
  });

  test("/queue tells the place of what waits here, and /stop clears it (Q9.3)", async () => {
    const { telegram, model } = stage;
    const { user, chat } = stage.friend();
    const slow = model.slow("work long");
    telegram.says(chat, user, "work long");
    await slow.asked;
    telegram.says(chat, user, "then this");
    telegram.says(chat, user, "/queue");
    const [queue] = await written(telegram, chat, 1);
    expect(queue?.text).toMatch(/\d+: running, since .*\n.*\d+: waits for .*next in lane main/);
    telegram.says(chat, user, "/stop");
    const [, stopped] = await written(telegram, chat, 2);
    expect(stopped?.text).toBe("Stopped: 1 running, 1 waiting.");
    await slow.gone;
    expect((await talk(telegram, { user, chat }, "hello")).text).toBe("echo: hello");
    expect(model.asked).not.toContain("then this");
  });

  test("/new begins a conversation that knows nothing of the one before", async () => {
    const { telegram, model } = stage;
    const me = stage.friend();
    await talk(telegram, me, "my name is Ada");
    await talk(telegram, me, "/new");
    await talk(telegram, me, "who am I?");
    const heard = model.heard.find((messages) => messages.at(-1)?.words === "who am I?");
    expect(heard?.map(({ role }) => role)).toEqual(["system", "user"]);
  });
});

test("where nothing can see or hear, the model is told so in plain words", async () => {
  await using blind = await startStage();
  const { telegram, owner } = blind;
  telegram.says(owner.chat, owner.user, "what is this?", { photo: new Uint8Array(3_000) });
  const [seen] = await written(telegram, owner.chat, 1);
  expect(seen?.text).toMatch(/^echo: what is this\?\n\[.*image.*\]$/i);
  telegram.says(owner.chat, owner.user, "", { voice: { bytes: new Uint8Array(1_234) } });
  const [, heard] = await written(telegram, owner.chat, 2);
  expect(heard?.text).toMatch(/^echo: \[voice, 2 KB: it cannot be heard here, since no transcription is set up/);
  expect(telegram.violations).toEqual([]);
});
