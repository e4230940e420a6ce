import { expect, test } from "vitest";
import { approve, deny, invite } from "../../../src/gateway/pairing.ts";
import { Forbidden, InvalidInput, NotFound } from "../../../src/kernel/errors.ts";
import { systemIds } from "../../../src/kernel/ids.ts";
import type { PeerKey } from "../../../src/store/peers.ts";
import { type FakeClock, fakeClock } from "../../support/clock.ts";
import { openTestStore, type TempHome, type TestStore, tempHome } from "../../support/store.ts";

// How a stranger is let in: codes, tries and time (ID-2, ID-4, ID-R2, ID-R4).

const MINUTE_MS = 60_000;
const key = (sender: string, channel = "telegram"): PeerKey => ({ channel, account: "default", sender });

type Host = TestStore<FakeClock>;
const deps = ({ store, clock }: Host) => ({ store, clock, ids: systemIds() });

async function ask(host: Host, sender: string, channel?: string): Promise<string> {
  const text = await host.store.write("ask", (tx) => invite(tx, key(sender, channel), `Person ${sender}`, deps(host)));
  return /`([^`]+)`/.exec(text ?? "")?.[1] ?? "";
}

const wrong = (host: Host) => expect(approve("000000000000", deps(host))).rejects.toThrow(NotFound);
const stateOf = (host: Host, sender: string) => host.store.read.peers.get(key(sender))?.state;
const audited = (host: Host) => host.opened.db.prepare("select action from audit order by id").pluck().all();

async function reopened(home: TempHome, before: Host): Promise<Host> {
  before.store.close();
  return openTestStore({ home, clock: fakeClock(before.clock.now()) });
}

test("a code has at least 40 bit, is another one each time, and is no option of a command line (ID-2)", async () => {
  await using host = await openTestStore();
  const codes: string[] = [];
  for (let n = 0; n < 20; n++) codes.push(await ask(host, String(n)));
  for (const code of codes) expect(code).toMatch(/^[0-9a-f]{10,}$/);
  expect(new Set(codes).size).toBe(20);
});

test("the owner's word on a code lets its sender in, once, with an audit row in the same transaction (ID-R4, G26)", async () => {
  await using host = await openTestStore();
  const code = await ask(host, "5");
  expect(await approve(code, deps(host))).toMatchObject({ sender: "5", state: "approved" });
  expect([stateOf(host, "5"), audited(host)]).toEqual(["approved", ["pairing.approve"]]);
  await expect(approve(code, deps(host))).rejects.toThrow(NotFound);
});

test("a code that is approved twice at the same moment lets in once, and one approval is in the audit", async () => {
  await using host = await openTestStore();
  const code = await ask(host, "5");
  const both = await Promise.allSettled([approve(code, deps(host)), approve(code, deps(host))]);
  expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect(audited(host).filter((action) => action === "pairing.approve")).toHaveLength(1);
});

test("an audit row that cannot be written lets nobody in (G26)", async () => {
  await using host = await openTestStore();
  const code = await ask(host, "5");
  host.opened.db.exec("create temp trigger planted before insert on audit begin select raise(abort, 'planted'); end");
  await expect(approve(code, deps(host))).rejects.toThrow("planted");
  expect(stateOf(host, "5")).toBe("pending");
});

test.each([
  { ms: 10 * MINUTE_MS - 1, holds: true },
  { ms: 10 * MINUTE_MS, holds: false },
])("after $ms ms a code holds: $holds (ID-2)", async ({ ms, holds }) => {
  await using host = await openTestStore();
  const code = await ask(host, "5");
  await host.clock.advance(ms);
  const approved = await approve(code, deps(host)).then(
    () => true,
    () => false,
  );
  expect([approved, stateOf(host, "5")]).toEqual([holds, holds ? "approved" : "pending"]);
});

test.each([
  { tries: 4, holds: true },
  { tries: 5, holds: false },
])("after $tries wrong tries a code holds: $holds, also over a restart (ID-2)", async ({ tries, holds }) => {
  await using home = await tempHome();
  const first = await openTestStore({ home });
  const code = await ask(first, "5");
  for (let n = 0; n < tries; n++) await wrong(first);
  await using next = await reopened(home, first);
  await expect(
    approve(code, deps(next)).then(
      () => true,
      () => false,
    ),
  ).resolves.toBe(holds);
});

test("wrong codes that come at the same moment count like those that come one by one (ID-2)", async () => {
  await using host = await openTestStore();
  const code = await ask(host, "5");
  const guesses = Array.from({ length: 30 }, (_, n) => approve(String(n), deps(host)));
  const last = approve(code, deps(host));
  await Promise.allSettled(guesses);
  await expect(last).rejects.toThrow();
  expect(stateOf(host, "5")).toBe("pending");
});

test("ten wrong codes within an hour block the channel, also over a restart; an hour later it takes codes again (ID-2)", async () => {
  await using home = await tempHome();
  const first = await openTestStore({ home });
  await ask(first, "5");
  for (let n = 0; n < 5; n++) await wrong(first);
  await ask(first, "6");
  for (let n = 0; n < 5; n++) await wrong(first);
  await using next = await reopened(home, first);
  const blocked = await ask(next, "7");
  await expect(approve(blocked, deps(next))).rejects.toThrow(Forbidden);
  expect(stateOf(next, "7")).toBe("pending");
  await next.clock.advance(60 * MINUTE_MS);
  const later = await ask(next, "8");
  expect((await approve(later, deps(next))).state).toBe("approved");
});

test("a code is bound to its sender and channel: it lets in nobody else (ID-2)", async () => {
  await using host = await openTestStore();
  await ask(host, "5");
  const code = await ask(host, "5", "discord");
  expect(await approve(code, deps(host))).toMatchObject({ channel: "discord", sender: "5" });
  expect(stateOf(host, "5")).toBe("pending");
});

test("a stranger is told once an hour; a new request makes the old code void (ID-4)", async () => {
  await using host = await openTestStore();
  const old = await ask(host, "5");
  expect(await ask(host, "5")).toBe("");
  await host.clock.advance(60 * MINUTE_MS);
  const fresh = await ask(host, "5");
  expect(fresh).not.toBe("");
  await expect(approve(old, deps(host))).rejects.toThrow(NotFound);
  expect((await approve(fresh, deps(host))).state).toBe("approved");
});

test("a 21st stranger gets no code while twenty wait, and one when a code of theirs has run out (ID-4)", async () => {
  await using host = await openTestStore();
  for (let n = 0; n < 20; n++) expect(await ask(host, String(n))).not.toBe("");
  expect(await ask(host, "20")).toBe("");
  await host.clock.advance(10 * MINUTE_MS);
  expect(await ask(host, "20")).not.toBe("");
});

test.each([{ approved: false }, { approved: true }])(
  "deny shuts out one who was approved: $approved, with an audit row",
  async ({ approved }) => {
    await using host = await openTestStore();
    const code = await ask(host, "5");
    if (approved) await approve(code, deps(host));
    await deny("telegram:default:5", deps(host));
    expect(stateOf(host, "5")).toBe("denied");
    expect(audited(host).at(-1)).toBe("pairing.deny");
    await expect(approve(code, deps(host))).rejects.toThrow(NotFound);
  },
);

test("deny says what it expects, and who is unknown", async () => {
  await using host = await openTestStore();
  for (const bad of ["5", "telegram:5", "a:b:c:d", "telegram:default:"]) {
    await expect(deny(bad, deps(host))).rejects.toThrow(InvalidInput);
  }
  await expect(deny("telegram:default:5", deps(host))).rejects.toThrow(NotFound);
});
