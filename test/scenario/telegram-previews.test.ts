import { expect, test } from "vitest";
import type { Room, SeenMessage } from "../support/telegram/world.ts";
import { allSettled, botMessages, botTexts, outbox, startStage, type TelegramStage } from "./telegram-stage.ts";

// An answer that grows in one message, which its final text takes over. The rhythm of the edits is proved with a fake clock
// (unit/channels/telegram-message-preview); here they come in real time.

const TEAM = -1_000_000_000_555;
const GROUPS = `groups: { "${TEAM}": { mention: false } }`;

/** What the model hears in a group. */
const TOLD = "[Ann] tell";

/** A group in which the owner writes and everything is heard. */
function teamOf({ telegram, owner }: TelegramStage) {
  return telegram.group({ id: TEAM, title: "Team", members: [owner.user] });
}

/** The one message of the bot, as soon as it has this text. */
async function onlyShows({ telegram }: TelegramStage, chat: Room, text: string): Promise<SeenMessage> {
  await telegram.until(() => botTexts(telegram, chat).includes(text));
  expect(botTexts(telegram, chat)).toEqual([text]);
  return botMessages(telegram, chat)[0] as SeenMessage;
}

test("in a group a slow answer grows in one message, which becomes its first part; the others follow (Q7.3)", async () => {
  await using stage = await startStage({ telegram: GROUPS });
  const { telegram, model, owner, world } = stage;
  const team = teamOf(stage);
  const answer = model.slow(TOLD);
  const asked = telegram.says(team, owner.user, "tell");
  await answer.says("The **first**");
  const grown = await onlyShows(stage, team, "The **first** …");
  expect(grown.replyTo).toBe(asked.message_id);
  await answer.says(" words");
  await onlyShows(stage, team, "The **first** words …");
  const paragraph = "word ".repeat(600).trimEnd();
  await answer.says(`\n\n${paragraph}\n\n${paragraph}`);
  await answer.ends();
  await telegram.until(() => botMessages(telegram, team).length === 2);
  await allSettled(world);
  const [first, second] = botMessages(telegram, team);
  expect(first).toMatchObject({ id: grown.id, text: `The first words\n\n${paragraph}` });
  expect(first?.entities).toMatchObject([{ type: "bold" }]);
  expect(second?.text).toBe(paragraph);
  expect(telegram.violations).toEqual([]);
});

test("a turn that goes on after a kill goes on in the same message, and ends in it once (G5)", async () => {
  await using stage = await startStage({ telegram: GROUPS });
  const { telegram, model, owner, world } = stage;
  const team = teamOf(stage);
  const before = model.slow(TOLD);
  telegram.says(team, owner.user, "tell");
  await before.says("half of it");
  await onlyShows(stage, team, "half of it …");
  await before.says(", and more");
  // An edit is made only when the id has been kept.
  const grown = await onlyShows(stage, team, "half of it, and more …");
  await world.host().kill();
  const after = model.slow(TOLD);
  await world.start();
  await after.says("anew");
  await onlyShows(stage, team, "anew …");
  await after.says(" and whole");
  await after.ends();
  const whole = await onlyShows(stage, team, "anew and whole");
  await allSettled(world);
  expect(whole.id).toBe(grown.id);
  expect(telegram.callsOf("sendMessage")).toHaveLength(1);
  expect(telegram.violations).toEqual([]);
});

test("a stop takes the message away", async () => {
  await using stage = await startStage({ telegram: GROUPS });
  const { telegram, model, owner, world } = stage;
  const team = teamOf(stage);
  const answer = model.slow(TOLD);
  telegram.says(team, owner.user, "tell");
  await answer.says("half of it");
  await onlyShows(stage, team, "half of it …");
  telegram.says(team, owner.user, "/stop");
  await answer.gone;
  await telegram.until(() => !botTexts(telegram, team).includes("half of it …"));
  await allSettled(world);
  expect(botTexts(telegram, team)).toEqual([expect.stringMatching(/stopped/i)]);
  expect(telegram.violations).toEqual([]);
});

test("under edit a private answer is an edit too: accepted and cut off it is shown once, unmarked and untold (G4, G5)", async () => {
  await using stage = await startStage({ telegram: "ambiguous: edit" });
  const { telegram, model, owner, world } = stage;
  const answer = model.slow("tell");
  telegram.says(owner.chat, owner.user, "tell");
  await answer.says("the whole");
  const grown = await onlyShows(stage, owner.chat, "the whole …");
  telegram.dropAfterAccept("editMessageText", 2);
  await answer.ends();
  await allSettled(world);
  const whole = await onlyShows(stage, owner.chat, "the whole");
  expect(whole.id).toBe(grown.id);
  expect(telegram.callsOf("editMessageText").map(({ outcome }) => outcome)).toMatchObject([
    { kind: "dropped", accepted: true },
    // Had no effect any more.
    { kind: "dropped", accepted: false },
    { kind: "refused", description: expect.stringContaining("not modified") },
  ]);
  expect(telegram.callsOf("sendMessageDraft")).toEqual([]);
  expect(await outbox(world, true)).toMatchObject([{ state: "sent" }]);
  expect(telegram.violations).toEqual([]);
});

test("an answer that has become a file takes the place of what was shown of it", async () => {
  await using stage = await startStage({ telegram: GROUPS });
  const { telegram, model, owner, world } = stage;
  const team = teamOf(stage);
  const answer = model.slow(TOLD);
  telegram.says(team, owner.user, "tell");
  const code = `\`\`\`ts\n${"let x = 1;\n".repeat(700)}`;
  await answer.says(code);
  await telegram.until(() => botMessages(telegram, team).length === 1);
  await answer.says("```");
  await answer.ends();
  await allSettled(world);
  const messages = botMessages(telegram, team);
  expect(messages.map(({ document }) => document?.name)).toEqual(["code-1.ts"]);
  expect(telegram.callsOf("deleteMessage")).toHaveLength(1);
  expect(telegram.violations).toEqual([]);
});
