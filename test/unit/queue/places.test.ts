import { describe, expect, test } from "vitest";
import { makeDelivery } from "../../../src/agents/delivery.ts";
import { type Accept, type Inbound, makeAccept } from "../../../src/gateway/accept.ts";
import { QueueFull } from "../../../src/kernel/errors.ts";
import type { CommandId, SessionKey } from "../../../src/kernel/ids.ts";
import { makeRig, type Rig } from "./rig.ts";

// Back-pressure (G15, Q1.4): at a cap nothing accepted is dropped, and what is new is refused visibly.

const S = (name: string) => name as SessionKey;

describe("the cap of a session", () => {
  test("counts what waits and what is on its way, and not what runs", async () => {
    await using rig = await makeRig({ settings: { cap: 2 } });
    await rig.start();
    await rig.accept({ session: S("s") });
    await rig.quiet();
    await rig.accept({ session: S("s") });
    const release = rig.queue.reserve(S("s"));
    expect(() => rig.queue.reserve(S("s"))).toThrow(QueueFull);
    // Others are not concerned.
    rig.queue.reserve(S("t"));
    release();
    rig.queue.reserve(S("s"));
    expect(() => rig.queue.reserve(S("s"))).toThrow(QueueFull);
  });

  test("gets a place back when a waiting command runs, ends or is cancelled", async () => {
    await using rig = await makeRig({ settings: { cap: 1 } });
    await rig.start();
    const running = await rig.accept({ session: S("s") });
    const waits = await rig.accept({ session: S("s") });
    await rig.quiet();
    expect(() => rig.queue.reserve(S("s"))).toThrow(QueueFull);
    await rig.queue.cancel(waits, { reason: "stopped" });
    rig.queue.reserve(S("s"))();
    const again = await rig.accept({ session: S("s") });
    expect(() => rig.queue.reserve(S("s"))).toThrow(QueueFull);
    rig.works.get(running)!.finish();
    await rig.quiet();
    expect(rig.state(again)).toBe("running");
    rig.queue.reserve(S("s"))();
  });

  test("is not widened by giving one place up twice", async () => {
    await using rig = await makeRig({ settings: { cap: 2, hostCap: 2 } });
    const release = rig.queue.reserve(S("s"));
    rig.queue.reserve(S("s"));
    release();
    release();
    rig.queue.reserve(S("s"));
    expect(() => rig.queue.reserve(S("s"))).toThrow(QueueFull);
    expect(() => rig.queue.reserve(S("t"))).toThrow(QueueFull);
  });
});

test("the cap of the host counts all sessions, and what an earlier life left", async () => {
  await using rig = await makeRig({ settings: { hostCap: 3 } });
  for (const session of ["a", "b"]) await rig.accept({ session: S(session) }, rig.clock.now() + 60_000);
  rig.kill();
  await using next = await makeRig({ home: rig.host.home, clock: rig.clock, settings: { hostCap: 3 } });
  await next.start();
  next.queue.reserve(S("c"));
  expect(() => next.queue.reserve(S("d"))).toThrow("3 messages are waiting on this host");
});

describe("accepting at the cap", () => {
  const acceptOf = (rig: Rig): Accept =>
    makeAccept({
      ...{ store: rig.store, queue: rig.queue, clock: rig.clock, events: rig.host.events },
      busy: () => ({ mode: "followup", debounceMs: 0, perChannel: {} }),
      chatCommands: {
        ...{ queue: rig.queue, clock: rig.clock, backends: [] },
        describe: () => ({ version: "0", upMs: 0, backends: [] }),
        delivery: makeDelivery({ clock: rig.clock, render: () => undefined, ownerRoutes: [], send: () => {} }),
      },
    });
  const event = (key: string): Inbound => ({
    event: { channel: "web", account: "default", key },
    rawHash: key,
    ...{
      agent: "main",
      sender: "owner",
      actor: "owner",
      role: "owner",
      source: "chat",
      kind: "message",
      text: "hello",
    },
    route: { channel: "web", account: "default", chat: "main", thread: undefined },
  });

  test("of thirty messages at once as many are accepted as there are places; the others are refused and leave no row", async () => {
    await using rig = await makeRig({ settings: { cap: 20 } });
    const accept = acceptOf(rig);
    const all = await Promise.allSettled(Array.from({ length: 30 }, (_, i) => accept(event(`m${i}`))));
    const refused = all.filter((one) => one.status === "rejected");
    expect(refused).toHaveLength(10);
    for (const one of refused) expect(one.reason).toBeInstanceOf(QueueFull);
    expect([...rig.store.read.commands.queued()]).toHaveLength(20);
    expect(rig.queue.size()).toBe(20);
  });

  test("a message that was accepted before is acknowledged again, as the same command (G2)", async () => {
    await using rig = await makeRig({ settings: { cap: 1 } });
    const accept = acceptOf(rig);
    const first = await accept(event("m"));
    await expect(accept(event("other"))).rejects.toThrow(QueueFull);
    expect(await accept(event("m"))).toEqual({ command: first.command, duplicate: true });
  });

  test("many deliveries of one message at once make one command and keep one place (G2)", async () => {
    await using rig = await makeRig({ settings: { cap: 20 } });
    const accept = acceptOf(rig);
    const all = await Promise.all(Array.from({ length: 10 }, () => accept(event("m"))));
    expect(new Set(all.map(({ command }) => command)).size).toBe(1);
    expect(all.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    expect(rig.queue.size()).toBe(1);
    // All ten places are given up again.
    for (let i = 0; i < 19; i += 1) rig.queue.reserve(S("agent:main:web:default:main"));
  });

  test("`/stop` needs no place (G18)", async () => {
    await using rig = await makeRig({ settings: { cap: 1, hostCap: 1 } });
    const accept = acceptOf(rig);
    const { command } = await accept(event("m"));
    await accept({ ...event("stop"), text: "/stop" });
    expect(rig.state(command as CommandId)).toBe("cancelled");
    expect(rig.queue.size()).toBe(0);
  });
});
