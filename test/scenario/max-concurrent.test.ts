import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { type HostProcess, TOKEN } from "../support/host.ts";
import { chunk, DONE, type ModelEndpoint, sendStream, startModelEndpoint } from "../support/model-endpoint.ts";
import { openEvents } from "./event-stream.ts";
import { ended, eventually, type Json, send, startWorld } from "./world.ts";

// A model whose answers end when the test says so, and a host with two agents that may ask it one call at once.

interface Slow extends ModelEndpoint {
  /** Calls that have come so far. */
  calls(): number;
  finish(nth: number, words: string): void;
}

async function startSlowModel(): Promise<Slow> {
  const open: ServerResponse[] = [];
  const endpoint = await startModelEndpoint((response) => {
    open.push(response);
    sendStream(response, chunk({ content: "so " }));
  });
  const finish: Slow["finish"] = (nth, words) => {
    open[nth]?.end(chunk({ content: words }) + chunk({}, "stop") + DONE);
  };
  return { ...endpoint, calls: () => open.length, finish };
}

const settings = ({ baseUrl }: ModelEndpoint) => `
gateway: { port: 0 }
agents: { main: { backends: [ model ] }, other: { backends: [ model ] } }
backends: { model: { kind: openai, model: m, baseUrl: "${baseUrl}", maxConcurrent: 1 } }
`;

/** A stateless request to the second agent; resolves with the text of its answer. */
async function complete({ address }: HostProcess, content: string): Promise<string> {
  const response = await fetch(`${address}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "laneway/other", messages: [{ role: "user", content }] }),
  });
  const body: Json = await response.json();
  return body.choices[0].message.content;
}

test("a model that takes one call at once gets the second when the first has ended, whichever agents ask (DESIGN Capacity)", async () => {
  const model = await startSlowModel();
  await using world = await startWorld(settings(model));
  const host = world.host();
  const watcher = await openEvents(host.address, { chat: "second" });
  const first = complete(host, "one");
  await eventually("the first call", () => model.calls() === 1);
  const second = await send(host, "two", { chat: "second" });

  // Its turn runs and waits for the model: people are told so, and are shown no answer that has not begun.
  await watcher.until(({ event, data }) => event === "note" && data.note === "waiting for model, which is busy");
  expect(watcher.heard.filter(({ event }) => event === "stream")).toEqual([]);
  expect(model.calls()).toBe(1);

  model.finish(0, "said one");
  expect(await first).toBe("so said one");
  await eventually("the second call", () => model.calls() === 2);
  model.finish(1, "said two");
  expect(await ended(host, second)).toMatchObject({ state: "done", text: "so said two" });
  await watcher.close();
  await model.stop();
});

test("a stop of the message that has the model lets the next one go, one that only waits is never asked (Q2.1)", async () => {
  const model = await startSlowModel();
  await using world = await startWorld(settings(model));
  const host = world.host();
  const first = await send(host, "one", { chat: "first" });
  await eventually("the first call", () => model.calls() === 1);
  const second = await send(host, "two", { chat: "second" });
  const third = await send(host, "three", { chat: "third" });
  await host.api("queue.cancel", { id: second });
  await host.api("queue.cancel", { id: first });
  await eventually("the next call", () => model.calls() === 2);
  model.finish(1, "said three");
  expect(await ended(host, third)).toMatchObject({ state: "done", text: "so said three" });
  expect(JSON.stringify(model.seen)).not.toContain("two");
  await model.stop();
});
