// Proves: the way in by the printed link, and that the page talks to its own origin only (NET-4).
import { expect, test } from "vitest";
import { makeApi } from "../../../src/dashboard/api.js";
import { makeEntry } from "../../../src/dashboard/entry.js";
import { fakeClock } from "../../support/clock.ts";

const USED = "This link has been used or has expired. Run `laneway link` for a new one.";
const NO_LINK = "Open the link that `laneway start` printed, or run `laneway link`.";

/** A page whose host answers each call with the next status of its path; the last one stays. */
function setUp(fragment: string, statuses: { login?: number[]; history?: number[] }) {
  const clock = { ...fakeClock(), fraction: () => 0.5 };
  const calls: { path: string; body: unknown; credentials: string | undefined }[] = [];
  const seen = { code: fragment, opened: 0, told: "" };
  const fetch = async (path: string, options: RequestInit) => {
    calls.push({ path, body: JSON.parse(String(options.body)), credentials: options.credentials });
    const left = path === "/api/login" ? (statuses.login ?? [204]) : (statuses.history ?? [200]);
    const status = left.length > 1 ? left.shift() : left[0];
    if (status === 0) throw new TypeError("fetch failed");
    const body = status === 200 ? { items: [], more: false } : { error: { code: "x", message: "the host drains" } };
    return new Response(status === 204 ? null : JSON.stringify(body), { status: status ?? 200 });
  };
  const entry = makeEntry({
    api: makeApi({ fetch: fetch as typeof globalThis.fetch, chat: "main" }),
    clock,
    address: {
      code: () => seen.code,
      clear: () => {
        seen.code = "";
      },
    },
    on: {
      open: () => {
        seen.opened += 1;
      },
      shut: (text) => {
        seen.told = text;
      },
    },
  });
  return { entry, calls, clock, seen };
}

test("a good code is traded for a cookie, removed from the address, and the conversation opens", async () => {
  const { entry, calls, seen } = setUp("abc", {});
  await entry.enter();
  expect(calls.map(({ path, body }) => [path, body])).toEqual([
    ["/api/login", { code: "abc" }],
    ["/api/history", { chat: "main", limit: 50 }],
  ]);
  expect(seen).toEqual({ code: "", opened: 1, told: "" });
});

test("a used code says so and how to get another, and does not stay in the address", async () => {
  const { entry, seen } = setUp("abc", { login: [401], history: [401] });
  await entry.enter();
  expect(seen).toEqual({ code: "", opened: 0, told: USED });
});

test("a used code in the browser that used it opens the conversation all the same", async () => {
  const { entry, seen } = setUp("abc", { login: [401] });
  await entry.enter();
  expect(seen.opened).toBe(1);
});

test("without code and cookie the page says what to open", async () => {
  const { entry, calls, seen } = setUp("", { history: [401] });
  await entry.enter();
  expect(seen.told).toBe(NO_LINK);
  expect(calls.map(({ path }) => path)).toEqual(["/api/history"]);
});

test("a host that does not answer is tried again, with the code kept until it is answered", async () => {
  const { entry, clock, seen } = setUp("abc", { login: [0, 503, 204], history: [503, 200] });
  await entry.enter();
  expect(seen).toEqual({ code: "abc", opened: 0, told: "The host cannot be reached. Trying again." });
  await clock.advance(600);
  expect(seen.told).toBe("The host drains. Trying again.");
  await clock.advance(30_000);
  expect(seen).toMatchObject({ code: "", opened: 1 });
});

test("every call is a path of the page's own origin (NET-4)", async () => {
  const { calls } = setUp("", {});
  const api = makeApi({
    fetch: (async (path: string, options: RequestInit) => {
      calls.push({ path, body: undefined, credentials: options.credentials });
      return new Response("{}", { status: 202 });
    }) as unknown as typeof fetch,
    chat: "//elsewhere.example/#x",
  });
  await Promise.all([api.login("x"), api.history(), api.ack(1), api.send("t", "k"), api.commands()]);
  for (const path of [...calls.map((call) => call.path), api.eventsPath(3)])
    expect(new URL(path, "http://127.0.0.1:7411").origin).toBe("http://127.0.0.1:7411");
  expect(new Set(calls.map(({ credentials }) => credentials))).toEqual(new Set(["same-origin"]));
  expect(calls.map(({ path }) => path)).toEqual([
    "/api/login",
    "/api/history",
    "/api/ack",
    "/api/send",
    "/api/commands",
  ]);
});
