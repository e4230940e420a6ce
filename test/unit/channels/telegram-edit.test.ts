import { expect, test } from "vitest";
import type { OutgoingPart, SendResult } from "../../../src/channels/port.ts";
import { broken } from "../../support/telegram/raw.ts";
import type { FakeTelegram } from "../../support/telegram/telegram.ts";
import { part, type Rig, rigWith } from "./telegram-rig.ts";

const never = new AbortController().signal;
const GROUP = -1_000_000_000_555;
const BOLD = JSON.stringify({ entities: [{ type: "bold", offset: 0, length: 4 }] });

/** A group in which the preview of an answer stands. */
async function withPreview() {
  const rig = await rigWith();
  const ada = rig.telegram.user({ id: 101, name: "Ada" });
  const group = rig.telegram.group({ id: GROUP, title: "Team", members: [ada] });
  const preview = await settled(rig, part(group, "bold …"));
  if (preview.kind !== "sent") throw new Error("the preview was not sent");
  const more = (over: Partial<OutgoingPart> = {}) => part(group, "bold move", { editRef: preview.ref, ...over });
  return { rig, telegram: rig.telegram, group, ref: preview.ref, more };
}

async function settled(rig: Rig, outgoing: OutgoingPart, begin?: () => Promise<void>): Promise<SendResult> {
  let result: SendResult | undefined;
  void rig.channel.send(outgoing, never, begin).then((said) => {
    result = said;
  });
  await rig.until(() => result);
  return result as SendResult;
}

const texts = (telegram: FakeTelegram) => telegram.messages(GROUP).map(({ text }) => text);

test("a part becomes the message in which it grew, with its markup, after it was begun", async () => {
  const { rig, telegram, ref, more } = await withPreview();
  let calls: number | undefined;
  const result = await settled(rig, more({ extra: BOLD }), async () => {
    calls = telegram.callsOf("editMessageText").length;
  });
  expect(result).toEqual({ kind: "sent", ref });
  expect(calls).toBe(0);
  const [message, ...others] = telegram.messages(GROUP);
  expect(message).toMatchObject({ text: "bold move", edits: 1, linkPreview: { is_disabled: true } });
  expect(message?.entities).toEqual([{ type: "bold", offset: 0, length: 4 }]);
  expect(others).toEqual([]);
  expect(broken(telegram)).toEqual([]);
});

test("an edit that is not to begin makes no call", async () => {
  const { rig, telegram, more } = await withPreview();
  const result = await settled(rig, more(), () => Promise.reject(new Error("not now")));
  expect(result.kind).toBe("later");
  expect(telegram.callsOf("editMessageText")).toEqual([]);
});

test("an edit that was made already counts as sent, and is seen once (G5)", async () => {
  const { rig, telegram, ref, more } = await withPreview();
  telegram.dropAfterAccept("editMessageText");
  expect((await settled(rig, more())).kind).toBe("ambiguous");
  expect(await settled(rig, more())).toEqual({ kind: "sent", ref });
  expect(texts(telegram)).toEqual(["bold move"]);
});

test("markup that Telegram refuses leads to exactly one plain edit (Q7.2)", async () => {
  const { rig, telegram, more } = await withPreview();
  const failure = { status: 400, description: "Bad Request: can't parse entities: no end" };
  telegram.failNext("editMessageText", failure);
  expect((await settled(rig, more({ extra: BOLD }))).kind).toBe("sent");
  expect(telegram.messages(GROUP)).toMatchObject([{ text: "bold move", entities: [] }]);
  telegram.failNext("editMessageText", failure, 2);
  expect((await settled(rig, more({ extra: BOLD, text: "other" }))).kind).toBe("refused");
  expect(telegram.callsOf("editMessageText")).toHaveLength(4);
});

const TEAM = { id: GROUP, kind: "supergroup", title: "Team", forum: false } as const;

const gone: [string, (telegram: FakeTelegram, ref: string) => void][] = [
  ["somebody deleted it", (telegram, ref) => telegram.deletes(TEAM, Number(ref))],
  [
    "it can't be edited",
    (telegram) =>
      telegram.failNext("editMessageText", { status: 400, description: "Bad Request: message can't be edited" }),
  ],
  [
    "the group has moved, where its number may be another message's",
    (telegram) => void telegram.migrates(TEAM, -1_000_000_000_777),
  ],
];
test.each(gone)("`unedited` after one call, nothing being sent, when %s", async (_what, lose) => {
  const { rig, telegram, ref, more } = await withPreview();
  lose(telegram, ref);
  const sends = telegram.callsOf("sendMessage").length;
  expect((await settled(rig, more())).kind).toBe("unedited");
  expect(telegram.callsOf("editMessageText")).toHaveLength(1);
  expect(telegram.callsOf("sendMessage")).toHaveLength(sends);
});

test("a part that is a file takes its preview away and is `unedited`, also when that was gone", async () => {
  const { rig, telegram, more } = await withPreview();
  const file = more({ extra: JSON.stringify({ file: { name: "code-1.ts" } }) });
  expect((await settled(rig, file)).kind).toBe("unedited");
  expect(texts(telegram)).toEqual([]);
  expect((await settled(rig, file)).kind).toBe("unedited");
  expect(telegram.callsOf("sendDocument")).toEqual([]);
});

test("a 429 is waited out, and a chat that is closed is refused for good", async () => {
  const { rig, telegram, more } = await withPreview();
  telegram.failNext("editMessageText", {
    ...{ status: 429, description: "Too Many Requests: retry after 9", parameters: { retry_after: 9 } },
  });
  expect(await settled(rig, more())).toMatchObject({ kind: "later", afterMs: 9_000, wholeAccount: true });
  await rig.pass(9_000);
  telegram.failNext("editMessageText", { status: 403, description: "Forbidden: bot was kicked" });
  expect((await settled(rig, more())).kind).toBe("refused");
  expect(broken(telegram)).toEqual([]);
});
