import { expect, test } from "vitest";
import { type AssistantDeps, makeAssistant } from "../../../src/agents/assistant.ts";
import { makeDelivery } from "../../../src/agents/delivery.ts";
import { StoreUnavailable } from "../../../src/kernel/errors.ts";
import { makeEvents } from "../../../src/kernel/events.ts";
import type { CommandId, SessionKey } from "../../../src/kernel/ids.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import type { Backend, BackendEvent, ModelMessage } from "../../../src/turns/backends/port.ts";
import { openTestStore } from "../../support/store.ts";
import { message } from "../queue/rig.ts";

const SESSION = "agent:main:web:default:main" as SessionKey;
const usage = { inputTokens: 1, outputTokens: 1 };
const CALLS: BackendEvent[] = [
  { type: "tool-call", call: { id: "c1", name: "look", input: "{}" } },
  { type: "finish", reason: "tool-calls", usage },
];
const ANSWERS: BackendEvent[] = [
  { type: "text", delta: "done" },
  { type: "finish", reason: "stop", usage },
];
const LIMITS = { attemptTimeoutMs: 0, firstTokenMs: 0, idleMs: 0, turnTimeoutMs: 0, graceMs: 10, attempts: 1 };

/** A turn that calls a tool and then answers, while a message waits; `absorb` says what comes of taking it in. */
async function turnWith(absorb: AssistantDeps["steering"]["absorb"]) {
  await using host = await openTestStore();
  const { store, clock } = host;
  const requests: (readonly ModelMessage[])[] = [];
  const backend: Backend = {
    ...{ name: "b", kind: "test", model: "m", journal: "steps" },
    async *complete({ messages }) {
      requests.push(messages);
      yield* requests.length === 1 ? CALLS : ANSWERS;
    },
  };
  const ids = await store.write("rows", (tx) => {
    const [first, second] = [tx.nextSeq() as CommandId, tx.nextSeq() as CommandId];
    for (const [id, text] of [
      [first, "first"],
      [second, "second"],
    ] as const) {
      const row = { ...message(clock.now(), { session: SESSION, mode: "steer", text }), orderKey: id };
      tx.sessions.ensure(SESSION, "main", row.route, clock.now());
      tx.commands.insert(id, row, "queued");
    }
    return { first, second };
  });
  const assistant = makeAssistant({
    ...{ store, clock, log: silentLog, events: makeEvents(() => {}), jitter: () => 0, onProgress: () => {} },
    agent: () => ({
      ...{ backends: [backend], tools: () => [], toolSpec: () => ({ name: "", description: "", schema: {} }) },
      ...{ workspace: host.home.path, systemPrompt: "test", contextTokens: 1_000, limits: LIMITS, iterations: 9 },
    }),
    delivery: makeDelivery({ clock, render: () => undefined, ownerRoutes: [], send: () => {} }),
    steering: { absorbable: (_, modes) => (modes.includes("steer") ? [ids.second] : []), absorb },
    readMedia: async () => ({ lines: [], images: [] }),
    readImage: async () => undefined,
  });
  const command = await store.write("claim", (tx) => {
    const claimed = tx.commands.claim(ids.first, store.generation, clock.now())!;
    assistant.begin(tx, claimed);
    return claimed;
  });
  const end = await assistant.run(command, new AbortController().signal);
  return { end, asked: requests.map((messages) => messages.flatMap((one) => (one.role === "user" ? [one.text] : []))) };
}

test("while the disk cannot be written nothing joins, and the turn goes on without it (G14)", async () => {
  const { end, asked } = await turnWith(() => Promise.reject(new StoreUnavailable("the disk is full")));
  expect(end.state).toBe("done");
  expect(asked).toEqual([["first"], ["first"]]);
});

test("what was cancelled in the same moment does not join either", async () => {
  const { end, asked } = await turnWith(async () => []);
  expect(end.state).toBe("done");
  expect(asked).toEqual([["first"], ["first"]]);
});
