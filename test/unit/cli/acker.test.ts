import { expect, test, vi } from "vitest";
import { makeAcker } from "../../../src/cli/chat/acker.ts";
import { makeClient } from "../../../src/cli/host/client.ts";
import { fakeHost, HANDLED, testShell } from "./fake-host.ts";

const CHAT = { channel: "terminal", chat: "main" } as const;

test("what is seen while a call is under way is told by the next one, the newest row only", async () => {
  const release = Promise.withResolvers<void>();
  await using host = await fakeHost({
    ack: async () => {
      await release.promise;
      return { acknowledged: 1 };
    },
  });
  const acker = makeAcker(makeClient(testShell(host.home.path)), CHAT);
  acker.seen(3);
  await vi.waitFor(() => expect(host.inputsOf("ack")).toHaveLength(1));
  acker.seen(4);
  acker.seen(5);
  release.resolve();
  await acker.flush();
  expect(host.inputsOf("ack").map(({ seq }) => seq)).toEqual([3, 5]);
});

test("an older row never takes a newer one back, and what was told is not told again", async () => {
  await using host = await fakeHost({ ack: () => ({ acknowledged: 1 }) });
  const acker = makeAcker(makeClient(testShell(host.home.path)), CHAT);
  acker.seen(5);
  await acker.flush();
  acker.seen(3);
  await acker.flush();
  expect(host.inputsOf("ack").map(({ seq }) => seq)).toEqual([5]);
});

test("a call that failed is made up for by the next, and never rejects", async () => {
  let isDown = true;
  await using host = await fakeHost({
    ack: (_, { response }) => {
      if (!isDown) return { acknowledged: 1 };
      response.destroy();
      return HANDLED;
    },
  });
  const acker = makeAcker(makeClient(testShell(host.home.path)), CHAT);
  acker.seen(3);
  await acker.flush();
  isDown = false;
  await acker.flush();
  expect(host.inputsOf("ack").map(({ seq }) => seq)).toEqual([3, 3]);
});
