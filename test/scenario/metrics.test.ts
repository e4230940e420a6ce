import { expect, test } from "vitest";
import { type HostProcess, TOKEN } from "../support/host.ts";
import { chunk, DONE, sendStream, startModelEndpoint } from "../support/model-endpoint.ts";
import { parsePrometheus, type Samples } from "../support/prometheus.ts";
import { ask, ended, eventually, send, startWorld } from "./world.ts";

function fetchMetrics({ address }: HostProcess, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${address}/metrics`, { headers });
}

async function scrape(host: HostProcess): Promise<Samples> {
  const response = await fetchMetrics(host, { authorization: `Bearer ${TOKEN}` });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
  return parsePrometheus(await response.text());
}

async function cookieOf({ address, link }: HostProcess): Promise<string> {
  const code = link.slice(link.indexOf("#") + 1);
  const response = await fetch(`${address}/api/login`, {
    method: "POST",
    headers: { origin: address, "content-type": "application/json" },
    body: JSON.stringify({ code }),
  });
  return response.headers.get("set-cookie")?.split(";")[0] ?? "";
}

test("what turns do shows in the metrics, for the token's holder only", async () => {
  const open: ((words: string) => void)[] = [];
  const endpoint = await startModelEndpoint((response, { body }) => {
    if (JSON.stringify(body).includes("break")) {
      response.writeHead(401).end("{}");
      return;
    }
    sendStream(response, chunk({ content: "so " }));
    open.push((words) => response.end(chunk({ content: words }) + chunk({}, "stop") + DONE));
  });
  await using world = await startWorld(
    `gateway: { port: 0 }\nlanes: { main: 1 }\nbackends: { model: { kind: openai, model: m, baseUrl: "${endpoint.baseUrl}" } }\n`,
  );
  const host = world.host();

  expect((await fetchMetrics(host)).status).toBe(401);
  expect((await fetchMetrics(host, { authorization: "Bearer wrong-token-0123456789" })).status).toBe(401);
  const cookie = await cookieOf(host);
  expect(cookie).not.toBe("");
  expect((await fetchMetrics(host, { cookie })).status).toBe(401);

  const first = await send(host, "one", { chat: "a" });
  const second = await send(host, "two", { chat: "b" });
  await eventually("the first call", () => open.length === 1);
  const during = await scrape(host);
  expect(during.get('laneway_lane_running_commands{lane="main"}')).toBe(1);
  expect(during.get('laneway_lane_queued_commands{lane="main"}')).toBe(1);
  expect(during.get('laneway_command_wait_seconds_count{lane="main"}')).toBe(1);
  expect(during.get("laneway_store_paused")).toBe(0);
  expect(during.get('laneway_channel_up{channel="web"}')).toBe(1);

  open[0]?.("said one");
  await ended(host, first);
  await eventually("the second call", () => open.length === 2);
  open[1]?.("said two");
  await ended(host, second);
  expect((await ask(host, "break", { chat: "c" })).state).toBe("failed");
  const after = await eventually("the last end", async () => {
    const samples = await scrape(host);
    return samples.get('laneway_commands_ended_total{state="failed"}') === 1 ? samples : undefined;
  });
  expect(after.get('laneway_commands_ended_total{state="done"}')).toBe(2);
  expect(after.get('laneway_command_run_seconds_count{lane="main"}')).toBe(3);
  expect(after.get('laneway_command_wait_seconds_count{lane="main"}')).toBe(3);
  expect(after.get('laneway_backend_attempts_total{backend="model",class="ok"}')).toBe(2);
  expect(after.get('laneway_backend_attempts_total{backend="model",class="auth"}')).toBe(1);
  expect(after.get('laneway_lane_running_commands{lane="main"}')).toBe(0);
  // Nobody has acknowledged the three answers.
  expect(after.get('laneway_outbox_parts{state="ready"}')).toBe(3);
  expect(after.get('laneway_event_loop_delay_seconds{quantile="1"}')).toBeGreaterThanOrEqual(0);
  await endpoint.stop();
});
