import { describe, expect, test } from "vitest";
import { approve, deny } from "../../../src/gateway/pairing.ts";
import { openTestStore } from "../../support/store.ts";
import { nextLife } from "../queue/rig.ts";
import { fixedIds, from, type IntakeRig, makeIntakeRig, message, OWNER_ID, person } from "./intake-rig.ts";

// Who is taken in, in which role, and what a stranger costs (ID-R1 … ID-R6, ID-1, ID-3, ID-4, G22).

const HOUR_MS = 3_600_000;

const pairing = (host: IntakeRig) => ({ store: host.rig.store, clock: host.rig.clock, ids: fixedIds() });
const codeFor = (host: IntakeRig, id: string) => /`([0-9a-f]{12,})`/.exec(host.parts(id).at(-1)?.text ?? "")?.[1] ?? "";
const commands = (host: IntakeRig) => host.rig.store.read.commands.recent(Number.MAX_SAFE_INTEGER, 1_000);

describe("strangers", () => {
  test("make no command, whatever they write, and get one line an hour (ID-1, ID-4, G22)", async () => {
    await using host = await makeIntakeRig();
    const all = ["hello", "/stop all", "/model x", "run rm -rf"].map((text) => from("5", text));
    await host.take([...all, from("5", "edited", { kind: "edit" }), from("5", "", { kind: "stop" })]);
    expect(commands(host)).toEqual([]);
    expect(host.parts("5")).toHaveLength(1);
    await host.rig.pass(HOUR_MS - 1);
    await host.take([from("5", "again")]);
    expect(host.parts("5")).toHaveLength(1);
    await host.rig.pass(1);
    await host.take([from("5", "again")]);
    expect(host.parts("5")).toHaveLength(2);
    expect(commands(host)).toEqual([]);
  });

  test("are answered in at most 20 chats at a time, and the counts hold over a restart (ID-4, ID-2)", async () => {
    await using host = await makeIntakeRig();
    const many = Array.from({ length: 100 }, (_, n) => from(String(1_000 + n), "hello"));
    await host.take(many);
    const told = () => many.filter(({ chat }) => host.parts(chat).length > 0).length;
    expect(told()).toBe(20);
    const again = await nextLife(host.rig);
    await using next = await makeIntakeRig({ host: again.host });
    await next.take(many.map((event) => ({ ...event, key: `${event.key} again` })));
    expect(many.filter(({ chat }) => next.parts(chat).length > 0)).toHaveLength(20);
    expect(again.store.read.peers.pending(again.clock.now())).toHaveLength(20);
    again.kill();
  });

  test("who are let in by the owner are users from the next message on, and shut out again at once (ID-R2)", async () => {
    await using host = await makeIntakeRig();
    await host.take([from("5", "hello")]);
    await approve(codeFor(host, "5"), pairing(host));
    await host.take([from("5", "now")]);
    expect(host.messages()).toMatchObject([
      { text: "now", role: "user", actor: "telegram:default:5", sender: "telegram:default:5" },
    ]);
    await deny("telegram:default:5", pairing(host));
    await host.take([from("5", "and now")]);
    expect(host.messages()).toHaveLength(1);
  });

  test.each([
    { dm: "allowlist", role: undefined, lines: 0 },
    { dm: "off", role: undefined, lines: 0 },
    { dm: "open", role: "guest", lines: 0 },
    { dm: "pairing", role: undefined, lines: 1 },
  ] as const)(
    "under dm: $dm have the role $role and get $lines lines; the owner is always let in",
    async ({ dm, role, lines }) => {
      await using host = await makeIntakeRig({ rules: { dm, allow: ["6"] } });
      await host.take([from("5", "stranger"), from("6", "allowed"), message("owner")]);
      const roles = Object.fromEntries(host.messages().map((one) => [one.text, one.role]));
      expect(roles).toEqual({
        ...(role && { stranger: role }),
        ...(dm !== "off" && { allowed: "user" }),
        owner: "owner",
      });
      expect(host.parts("5")).toHaveLength(lines);
    },
  );

  test("whom the owner approved count only while the settings let people in by approval (ID-R3)", async () => {
    await using host = await makeIntakeRig();
    await host.take([from("5", "hello")]);
    await approve(codeFor(host, "5"), pairing(host));
    host.rules = { ...host.rules, dm: "allowlist" };
    await host.take([from("5", "now")]);
    expect(host.messages()).toEqual([]);
  });
});

describe("groups", () => {
  const group = { chat: "-7", chatKind: "group", addressed: "mention" } as const;

  test("that the settings do not name hear nothing, whoever writes (ID-R3)", async () => {
    await using host = await makeIntakeRig({ rules: { dm: "open", allow: ["5"] } });
    await host.take([
      from("5", "hello", group),
      message("/help", { ...group }),
      from("6", "", { ...group, kind: "stop" }),
    ]);
    expect([commands(host), host.parts("-7")]).toEqual([[], []]);
  });

  test.each([
    { addressed: "none", mention: true, taken: false },
    { addressed: "mention", mention: true, taken: true },
    { addressed: "reply", mention: true, taken: true },
    { addressed: "command", mention: true, taken: true },
    { addressed: "none", mention: false, taken: true },
  ] as const)(
    "addressed by $addressed, mention needed: $mention → taken: $taken (Q11.3)",
    async ({ addressed, mention, taken }) => {
      await using host = await makeIntakeRig({ rules: { groups: { "-7": { mention, allow: undefined } } } });
      await host.take([
        from("5", "hello", { ...group, addressed }),
        from("5", "topic", { ...group, addressed, thread: "3" }),
      ]);
      expect(host.messages().map(({ text }) => text)).toEqual(taken ? ["hello", "topic"] : []);
      expect(host.parts("-7")).toEqual([]);
    },
  );

  test("a list of their own decides; to be let in privately widens it in no way (ID-R3)", async () => {
    await using host = await makeIntakeRig({
      rules: {
        dm: "open",
        allow: ["5"],
        groups: { "-7": { mention: true, allow: ["6"] }, "-8": { mention: true, allow: undefined } },
      },
    });
    const ids = ["5", "6", "8", OWNER_ID];
    for (const chat of ["-7", "-8"]) await host.take(ids.map((id) => from(id, `${id} in ${chat}`, { ...group, chat })));
    expect(host.messages().map(({ text, role }) => `${text}: ${role}`)).toEqual([
      ...["6 in -7: user", `${OWNER_ID} in -7: owner`],
      ...["5 in -8: guest", "6 in -8: guest", "8 in -8: guest", `${OWNER_ID} in -8: owner`],
    ]);
  });

  test("whom the owner approved privately is a stranger there (ID-R3)", async () => {
    await using host = await makeIntakeRig({ rules: { groups: { "-7": { mention: true, allow: ["6"] } } } });
    await host.take([from("5", "hello")]);
    await approve(codeFor(host, "5"), pairing(host));
    await host.take([from("5", "in the group", group)]);
    expect([host.messages(), host.parts("-7")]).toEqual([[], []]);
  });

  test("nobody who cannot be held to it is taken: anonymous administrators, channels, bots (ID-3, Q12.4)", async () => {
    await using host = await makeIntakeRig({
      rules: { dm: "open", groups: { "-7": { mention: false, allow: undefined } } },
    });
    const bot = { ...person("77"), bot: true };
    await host.take([
      ...[message("anonymous", { ...group, sender: undefined }), message("bot", { ...group, sender: bot })],
      ...[
        message("bot, privately", { chat: "77", sender: bot }),
        message("the owner's id", { sender: { ...person(OWNER_ID), bot: true } }),
      ],
    ]);
    expect([commands(host), host.parts("-7"), host.parts("77")]).toEqual([[], [], []]);
  });

  test("what is said there carries its author's name, in which nothing is hidden (INJ-3)", async () => {
    await using host = await makeIntakeRig({ rules: { groups: { "-7": { mention: true, allow: undefined } } } });
    await host.take([from("5", "hello", { ...group, sender: person("5", "Bob\u202e\nAnn") }), message("private")]);
    const [inGroup, privately] = host.messages();
    expect(host.extraOf(inGroup).author).toBe("Bob\\u{202e}\\nAnn");
    expect(host.extraOf(privately).author).toBeUndefined();
  });
});

test("a name that an object has by nature is no group (NET-5)", async () => {
  await using host = await makeIntakeRig({ rules: { dm: "off" } });
  for (const chat of ["__proto__", "constructor", "toString"]) {
    await host.take([from("5", "hello", { chat, chatKind: "group", addressed: "mention" })]);
  }
  expect(commands(host)).toEqual([]);
  await using other = await openTestStore();
  expect(other.store.read.peers.get({ channel: "telegram", account: "default", sender: "__proto__" })).toBeUndefined();
});
