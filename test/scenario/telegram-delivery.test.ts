import { describe, expect, test } from "vitest";
import {
  allSettled,
  botMessages,
  botTexts,
  expectNoSecret,
  FRIENDS,
  outbox,
  pageTexts,
  startStage,
  type TelegramStage,
  talk,
  written,
} from "./telegram-stage.ts";
import { eventually, type Json } from "./world.ts";

// What becomes of messages when Telegram, the network or the host fails. A host for each test: most of them kill it.

const AGAIN = "(sent again: the first try was not confirmed)";
const HOLD = `${FRIENDS}, ambiguous: hold`;

async function restart({ world }: TelegramStage): Promise<void> {
  await world.host().kill();
  await world.start();
}

function sendsTo(stage: TelegramStage, chat: { id: number }) {
  return stage.telegram.callsOf("sendMessage").filter(({ params }) => Number(params["chat_id"]) === chat.id);
}

describe.concurrent("delivery", () => {
  test("429: no call goes out inside the window that Telegram names, also after a restart within it; then it arrives once (G4, Q1.5, Q7.3)", async () => {
    await using stage = await startStage({ telegram: FRIENDS });
    const { telegram, model } = stage;
    const { user, chat } = stage.friend();
    const refusal = { status: 429, description: "Too Many Requests: retry after 12", parameters: { retry_after: 12 } };
    telegram.failNext("sendMessage", refusal);
    telegram.says(chat, user, "be patient");
    const refused = await telegram.until(() => sendsTo(stage, chat).find(({ outcome }) => outcome?.kind === "refused"));
    await eventually("the window is in the outbox", async () =>
      (await outbox(stage.world)).some(({ state, reason }: Json) => state === "ready" && /429/.test(reason)),
    );
    await restart(stage);
    // A turn within the window: neither typing nor a draft may go out for it.
    const slow = model.slow("and this");
    telegram.says(chat, user, "and this");
    await slow.asked;
    await slow.says("echo: and this");
    await written(telegram, chat, 1);
    await slow.ends();
    const answers = await written(telegram, chat, 2);
    expect(answers.map(({ text }) => text)).toEqual(["echo: be patient", "echo: and this"]);
    const [, second, ...more] = sendsTo(stage, chat);
    expect(more).toHaveLength(1);
    expect((second?.at ?? 0) - refused.at).toBeGreaterThanOrEqual(12_000);
    await allSettled(stage.world);
    expect(telegram.violations).toEqual([]);
  });

  test("a person who has blocked the bot: one call, failed, one notice to the owner, and nothing at the next start (Q1.5)", async () => {
    await using stage = await startStage({ telegram: FRIENDS });
    const { telegram, model, owner } = stage;
    const { user, chat } = stage.friend();
    const slow = model.slow("bye");
    telegram.says(chat, user, "bye");
    await slow.asked;
    telegram.blocks(chat);
    await slow.says("too late");
    await slow.ends();
    const [notice] = await written(telegram, owner.chat, 1);
    expect(notice?.text).toMatch(
      new RegExp(`telegram:default:${chat.id} was not delivered: 403.*bot was blocked.*/resend \\d+`),
    );
    expect(sendsTo(stage, chat)).toHaveLength(1);
    await allSettled(stage.world);
    await restart(stage);
    expect((await talk(telegram, owner, "/queue")).text).toBe("Nothing runs or waits in this chat.");
    expect(sendsTo(stage, chat)).toHaveLength(1);
    expect(botMessages(telegram, owner.chat)).toHaveLength(2);
    expect((await outbox(stage.world, true)).filter(({ state }: Json) => state === "failed")).toHaveLength(1);

    telegram.unblocks(chat);
    const number = /\/resend (\d+)/.exec(notice?.text ?? "")?.[1];
    expect((await talk(telegram, owner, `/resend ${number}`)).text).toContain("goes out again");
    expect((await written(telegram, chat, 1))[0]?.text).toContain("too late");
  });

  test("an answer that was taken and never confirmed goes once more, marked, under the policy resend (G4)", async () => {
    await using stage = await startStage({ telegram: FRIENDS });
    const { telegram } = stage;
    const { user, chat } = stage.friend();
    telegram.dropAfterAccept("sendMessage");
    telegram.says(chat, user, "did you get it?");
    const [first, second] = await written(telegram, chat, 2);
    expect([first?.text, second?.text]).toEqual(["echo: did you get it?", `${AGAIN}\necho: did you get it?`]);
    await allSettled(stage.world);
    expect((await talk(telegram, { user, chat }, "next")).text).toBe("echo: next");
    expect(botTexts(telegram, chat)).toHaveLength(3);
  });

  test("the resend happens once: when it is not confirmed either the owner is told (G4)", async () => {
    await using stage = await startStage({ telegram: FRIENDS });
    const { telegram, owner } = stage;
    const { user, chat } = stage.friend();
    telegram.dropAfterAccept("sendMessage", 2);
    telegram.says(chat, user, "twice lost");
    const [notice] = await written(telegram, owner.chat, 1);
    expect(notice?.text).toMatch(/may not have arrived: .*\/resend \d+/);
    expect(sendsTo(stage, chat)).toHaveLength(2);
    expect(await outbox(stage.world)).toMatchObject([{ state: "unknown" }]);
  });

  test("under the policy hold it is never sent twice by itself: it is unknown, the owner is told, /resend sends it (G4)", async () => {
    await using stage = await startStage({ telegram: HOLD });
    const { telegram, owner } = stage;
    const { user, chat } = stage.friend();
    telegram.dropAfterAccept("sendMessage");
    telegram.says(chat, user, "only once");
    const [notice] = await written(telegram, owner.chat, 1);
    const number = /may not have arrived: .*\/resend (\d+)/.exec(notice?.text ?? "")?.[1];
    expect(await outbox(stage.world)).toMatchObject([{ id: Number(number), state: "unknown" }]);
    await restart(stage);
    expect(await outbox(stage.world)).toMatchObject([{ id: Number(number), state: "unknown" }]);
    expect((await talk(telegram, { user, chat }, "/whoami")).text).toContain("as user");
    expect(sendsTo(stage, chat)).toHaveLength(2);
    expect((await talk(telegram, owner, `/resend ${number}`)).text).toBe(`Message ${number} goes out again.`);
    await written(telegram, chat, 3);
    await allSettled(stage.world);
    expect((await talk(telegram, owner, `/resend ${number}`)).text).toContain("there is nothing to send again");
  });

  test("someone else's message cannot be sent again by a stranger to it (Q14.2)", async () => {
    await using stage = await startStage({ telegram: HOLD });
    const { telegram, owner } = stage;
    const [mine, theirs] = [stage.friend(), stage.friend()];
    telegram.dropAfterAccept("sendMessage");
    telegram.says(mine.chat, mine.user, "private words");
    const [notice] = await written(telegram, owner.chat, 1);
    const number = /\/resend (\d+)/.exec(notice?.text ?? "")?.[1];
    expect((await talk(telegram, theirs, `/resend ${number}`)).text).toContain("with the number from the notice");
    expect(sendsTo(stage, mine.chat)).toHaveLength(1);
    telegram.says(mine.chat, mine.user, `/resend ${number}`);
    const texts = (await written(telegram, mine.chat, 3)).map(({ text }) => text);
    expect(texts).toContain(`Message ${number} goes out again.`);
    expect(texts.filter((text) => text.endsWith("echo: private words"))).toHaveLength(2);
  });

  test("a host that is killed with a send in flight sends it again once, marked, within a minute of its start (G4, Q6.2)", async () => {
    await using stage = await startStage({ telegram: FRIENDS });
    const { telegram } = stage;
    const { user, chat } = stage.friend();
    telegram.hang("sendMessage", { accepted: true });
    telegram.says(chat, user, "in flight");
    await telegram.until(() => sendsTo(stage, chat)[0]?.outcome?.kind === "hung");
    await restart(stage);
    const [first, second] = await written(telegram, chat, 2);
    expect([first?.text, second?.text]).toEqual(["echo: in flight", `${AGAIN}\necho: in flight`]);
    await allSettled(stage.world);
    await restart(stage);
    expect((await talk(telegram, { user, chat }, "/stop")).text).toBe("Nothing runs here.");
    expect(stage.model.asked).toEqual(["in flight"]);
  });

  test("killed under the policy hold it lists each unknown message to the owner, in one notice (G4)", async () => {
    await using stage = await startStage({ telegram: HOLD });
    const { telegram, owner } = stage;
    const people = [stage.friend(), stage.friend()];
    telegram.hang("sendMessage", { accepted: true, times: 2 });
    for (const { chat, user } of people) telegram.says(chat, user, "in flight");
    await telegram.until(() => telegram.callsOf("sendMessage").filter(({ outcome }) => outcome?.kind === "hung")[1]);
    await restart(stage);
    const [notice] = await written(telegram, owner.chat, 1);
    const unknown = (await outbox(stage.world)).filter(({ state }: Json) => state === "unknown");
    expect(unknown).toHaveLength(2);
    for (const { id } of unknown) expect(notice?.text).toContain(`/resend ${id}`);
    for (const { chat } of people) expect(botTexts(telegram, chat)).toHaveLength(1);
    await eventually("nothing is on its way", async () =>
      (await outbox(stage.world)).every(({ state }: Json) => state !== "sending" && state !== "ready"),
    );
    await restart(stage);
    expect((await talk(telegram, owner, "/whoami")).text).toContain("as owner");
    expect(botTexts(telegram, owner.chat)).toHaveLength(2);
  });

  test("a broken gateway in front of Telegram is no refusal: what it may have let through is in doubt, not failed (Q1.5)", async () => {
    await using stage = await startStage({ telegram: FRIENDS });
    const { telegram } = stage;
    const { user, chat } = stage.friend();
    telegram.badGateway("sendMessage");
    telegram.says(chat, user, "through the gateway");
    expect((await written(telegram, chat, 1))[0]?.text).toBe(`${AGAIN}\necho: through the gateway`);
  });

  test("while the network is away nothing is lost: answers wait, unmarked, and what people wrote meanwhile is answered later (G1, Q1.8)", async () => {
    await using stage = await startStage({ telegram: FRIENDS });
    const { telegram, model } = stage;
    const [one, two] = [stage.friend(), stage.friend()];
    const slow = model.slow("asked before");
    telegram.says(one.chat, one.user, "asked before");
    await slow.asked;
    await telegram.offline(true);
    await slow.says("answered meanwhile");
    await slow.ends();
    await eventually("the answer waits", async () => {
      const parts = await outbox(stage.world);
      return parts.length === 1 && parts[0].state === "ready";
    });
    telegram.says(two.chat, two.user, "written meanwhile");
    await restart(stage);
    const { body } = await stage.world.host().api("status");
    expect(body.channels.find(({ name }: Json) => name === "telegram:default").state).not.toBe("up");
    await telegram.offline(false);
    expect((await written(telegram, one.chat, 1))[0]?.text).toBe("answered meanwhile");
    expect((await written(telegram, two.chat, 1))[0]?.text).toBe("echo: written meanwhile");
    await allSettled(stage.world);
  });

  test("what runs when the host is told to stop is answered before it ends, or by the next host, once (G17, Q4.9)", async () => {
    await using stage = await startStage({ telegram: FRIENDS });
    const { telegram, model, world } = stage;
    const { user, chat } = stage.friend();
    const slow = model.slow("last words");
    telegram.says(chat, user, "last words");
    await slow.asked;
    const stopped = world.host().stop();
    await slow.says("of the old host");
    await slow.ends();
    expect(await stopped).toBe(0);
    telegram.says(chat, user, "anybody there?");
    await world.start();
    expect((await written(telegram, chat, 2)).map(({ text }) => text)).toEqual([
      "of the old host",
      "echo: anybody there?",
    ]);
    expect(model.asked.filter((words) => words === "last words")).toHaveLength(1);
    await expectNoSecret(stage);
  });

  test("the owner hears of trouble with his own chat on no loop: a notice that fails causes no further one", async () => {
    await using stage = await startStage();
    const { telegram, owner, world } = stage;
    telegram.says(owner.chat, owner.user, "and I block you");
    await telegram.until(() => telegram.pending.length === 0);
    telegram.blocks(owner.chat);
    await eventually("nothing is on its way", async () =>
      (await outbox(stage.world)).every(({ state }: Json) => state !== "ready" && state !== "sending"),
    );
    expect(sendsTo(stage, owner.chat).length).toBeLessThanOrEqual(2);
    expect(await pageTexts(world)).toEqual([]);
  });
});
