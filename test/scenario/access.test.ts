import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeAccess } from "../../src/gateway/access.ts";
import { systemIds } from "../../src/kernel/ids.ts";
import { fakeClock } from "../support/clock.ts";
import { callApi, TOKEN } from "../support/host.ts";
import { type Puppet, startPuppet } from "./puppet.ts";
import { bearer, halfOpen, json, type RawAnswer, rawPost, rawRequest } from "./raw-http.ts";
import { ask, BACKEND_KEY, eventually, freshKey, type Json, pairSettings, startWorld, type World } from "./world.ts";

// One host whose doors are tried by those who have no business there. The last tests start it anew.

const SETTINGS = `gateway:
  port: 0
  allowedOrigins: [ "https://assistant.example" ]
  allowedHosts: [ assistant.example ]`;

let puppet: Puppet;
let world: World;
let address: string;
let port: string;
const secrets = new Set([TOKEN, BACKEND_KEY]);

beforeAll(async () => {
  puppet = await startPuppet();
  world = await startWorld(pairSettings(puppet.baseUrl).replace("gateway: { port: 0 }", SETTINGS));
  address = world.host().address;
  port = new URL(address).port;
});
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await puppet?.stop();
});

function codeOf(answer: RawAnswer): string {
  return JSON.parse(answer.text).error.code;
}

/** Audit rows of an action, read beside the running host. */
function audited(action: string, home = world.home): Json[] {
  const db = new Database(`${home}/laneway.db`, { readonly: true });
  try {
    return db.prepare("select target, detail from audit where action = ? order by id").all(action);
  } finally {
    db.close();
  }
}

async function nothingAccepted(chat: string): Promise<void> {
  expect((await world.host().api("history", { chat })).body.items).toEqual([]);
}

describe("who may connect", () => {
  test("a page of a foreign origin is refused even with the token, and audited (NET-1, NET-R1)", async () => {
    const foreign = [
      "https://evil.example",
      "null",
      "file://",
      `http://127.0.0.1.evil.example:${port}`,
      `http://127.0.0.1:${port}.evil.example`,
      `http://localhost:${port}`,
      "http://127.0.0.1:1",
      `http://127.0.0.1:${port}/`,
      `HTTP://127.0.0.1:${port}`,
      "https://assistant.example:8443",
      "not an origin",
    ];
    for (const origin of foreign) {
      const answer = await rawPost(address, "/api/send", { text: "x", key: freshKey(), chat: "origin" }, { origin });
      expect([origin, answer.status, codeOf(answer)]).toEqual([origin, 403, "wrong_origin"]);
    }
    await nothingAccepted("origin");
    await eventually("the audit rows are written", () => audited("origin.refused").length === foreign.length);
    expect(audited("origin.refused").map((row) => JSON.parse(row.detail).origin)).toEqual(foreign);

    for (const origin of [`http://127.0.0.1:${port}`, "https://assistant.example"]) {
      expect((await rawPost(address, "/api/status", {}, { origin })).status).toBe(200);
    }
  });

  test("an upgrade to a WebSocket from a foreign origin is refused before it happens (NET-1)", async () => {
    const headers = { ...bearer, origin: "https://evil.example", connection: "Upgrade", upgrade: "websocket" };
    const handshake = { "sec-websocket-version": "13", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" };
    expect((await rawRequest(address, { path: "/ws", headers: { ...headers, ...handshake } })).status).toBe(403);
  });

  test("only loopback names at the port and configured names pass as Host, on every route (NET-2)", async () => {
    const foreign = [
      "evil.example",
      `evil.example:${port}`,
      "127.0.0.1",
      "127.0.0.1:1",
      `127.0.0.1.evil.example:${port}`,
    ];
    for (const host of foreign) {
      for (const path of ["/", "/healthz", "/api/events", "/v1/models"]) {
        const answer = await rawRequest(address, { path, headers: { ...bearer, host } });
        expect([host, path, [400, 421].includes(answer.status)]).toEqual([host, path, true]);
      }
    }
    await eventually("the audit rows are written", () => audited("host.refused").length > 0);
    expect(JSON.parse(audited("host.refused")[0].detail).host).toBe("evil.example");
    for (const host of [
      `127.0.0.1:${port}`,
      `localhost:${port}`,
      `LOCALHOST:${port}`,
      `[::1]:${port}`,
      "assistant.example",
    ]) {
      expect([host, (await rawRequest(address, { path: "/healthz", headers: { host } })).status]).toEqual([host, 200]);
    }
  });

  test("a token in a URL is refused whatever else the request carries (NET-3)", async () => {
    for (const query of [`token=${TOKEN}`, `x=1&Access_Token=${TOKEN}`, `%74oken=${TOKEN}`, `api_key=${TOKEN}`]) {
      for (const headers of [{}, bearer]) {
        const answer = await rawRequest(address, { path: `/api/events?${query}`, headers });
        expect([query, answer.status, codeOf(answer)]).toEqual([query, 400, "token_in_url"]);
      }
    }
  });

  test("neither a claimed source nor an absent header replaces the token (NET-7, NET-R2)", async () => {
    const claims = [
      { "x-forwarded-for": "127.0.0.1" },
      { "x-real-ip": "127.0.0.1" },
      { forwarded: "for=127.0.0.1" },
      { authorization: "" },
      { authorization: "Bearer" },
      { authorization: `Basic ${Buffer.from(`owner:${TOKEN}`).toString("base64")}` },
      { cookie: "laneway=owner" },
    ];
    for (const headers of claims) {
      for (const path of ["/api/status", "/v1/chat/completions"]) {
        const answer = await rawRequest(address, {
          method: "POST",
          path,
          headers: { ...json, ...headers },
          body: "{}",
        });
        expect([headers, path, [401, 429].includes(answer.status)]).toEqual([headers, path, true]);
      }
    }
  });

  test("a form of another site changes nothing: without the token 401, with any body but JSON 415 (NET-9)", async () => {
    const body = JSON.stringify({ text: "x", key: freshKey(), chat: "forms" });
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]) {
      const headers = { "content-type": type };
      const anonymous = await rawRequest(address, { method: "POST", path: "/api/send", headers, body });
      expect([type, anonymous.status]).toEqual([type, 401]);
      const known = await rawRequest(address, {
        method: "POST",
        path: "/api/send",
        headers: { ...headers, ...bearer },
        body,
      });
      expect([type, known.status, codeOf(known)]).toEqual([type, 415, "wrong_media_type"]);
    }
    const login = await rawRequest(address, {
      method: "POST",
      path: "/api/login",
      headers: { "content-type": "text/plain" },
      body: "{}",
    });
    expect(login.status).toBe(415);
    await nothingAccepted("forms");
  });

  test("no other method than POST reaches a verb, so that a GET never changes anything (NET-9)", async () => {
    const query = `chat=get&text=x&key=${freshKey()}`;
    for (const method of ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
      const answer = await rawRequest(address, { method, path: `/api/send?${query}`, headers: bearer });
      expect([method, answer.status]).toEqual([method, 404]);
    }
    await nothingAccepted("get");
  });
});

describe("the page and its cookie", () => {
  const login = (code: string) =>
    rawRequest(address, { method: "POST", path: "/api/login", headers: json, body: JSON.stringify({ code }) });
  const asOwner = (cookie: string, path = "/api/status") =>
    rawRequest(address, { method: "POST", path, headers: { ...json, cookie }, body: "{}" });
  const codeIn = (link: string) => new URL(link).hash.slice(1);
  let cookie = "";

  test("the page comes with a policy that lets it run and reach nothing but its own host (INJ-R2, NET-4)", async () => {
    const page = await rawRequest(address, { path: "/" });
    expect(page.status).toBe(200);
    const policy = String(page.headers["content-security-policy"]);
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "connect-src 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ]) {
      expect(policy).toContain(rule);
    }
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    expect(page.headers).toMatchObject({ "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" });
    expect(page.text).not.toMatch(/<script(?![^>]*\bsrc=)|\son\w+=|style=/i);
    for (const path of [
      "/assets/..%2f..%2fpackage.json",
      "/assets/../../package.json",
      "/assets/%2e%2e/gateway/http.ts",
      "/assets/",
    ]) {
      expect([path, (await rawRequest(address, { path })).status]).toEqual([path, 404]);
    }
  });

  test("the code of a link is good for one cookie, which opens the page's verbs and nothing else", async () => {
    const code = codeIn(world.host().link);
    secrets.add(code);
    const first = await login(code);
    expect(first.status).toBe(204);
    const [set = ""] = first.headers["set-cookie"] ?? [];
    expect(set).toMatch(/; HttpOnly(;|$)/);
    expect(set).toMatch(/; SameSite=Strict(;|$)/);
    expect(set).toMatch(/; Path=\/(;|$)/);
    expect(set).toMatch(/; Max-Age=\d+(;|$)/);
    cookie = set.split(";")[0] ?? "";
    secrets.add(cookie.slice(cookie.indexOf("=") + 1));
    expect((await asOwner(cookie)).status).toBe(200);
    expect((await asOwner(cookie, "/v1/chat/completions")).status).toBe(401);
    expect((await asOwner(`other=1; ${cookie}`)).status).toBe(200);

    const again = await login(code);
    expect(again.status).toBe(401);
    expect(JSON.parse(again.text).error).toMatchObject({
      message: expect.stringContaining("used"),
      hint: expect.stringContaining("laneway link"),
    });
  });

  test("a changed cookie is none", async () => {
    const [name = "", value = ""] = cookie.split("=");
    const [expires = "", nonce = "", signature = ""] = value.split(".");
    const later = `${name}=${Number(expires) + 1_000}.${nonce}.${signature}`;
    for (const forged of [
      later,
      `${name}=${expires}.${nonce}.`,
      `${name}=${expires}.${nonce}`,
      `${name}=`,
      `x${cookie}`,
    ]) {
      expect([forged, [401, 429].includes((await asOwner(forged)).status)]).toEqual([forged, true]);
    }
  });

  test("`link` gives another link, whose code works once too", async () => {
    const { url } = (await world.host().api("link")).body;
    expect(url.startsWith(`${address}/#`)).toBe(true);
    secrets.add(codeIn(url));
    expect((await login(codeIn(url))).status).toBe(204);
    expect([401, 429]).toContain((await login(codeIn(url))).status);
  });

  test("a code is good for ten minutes and no longer", async () => {
    const clock = fakeClock();
    const access = makeAccess({
      ...{ token: TOKEN, cookieKey: Buffer.alloc(32), clock, ids: systemIds() },
      ...{ ownHost: "127.0.0.1", allowedHosts: [], allowedOrigins: [], port: () => 1 },
    });
    const [inTime, late] = [access.newCode(), access.newCode()];
    await clock.advance(600_000);
    expect(access.redeem(inTime, "here")).toHaveProperty("cookie");
    await clock.advance(1);
    expect(access.redeem(late, "here")).toMatchObject({ status: 401 });
  });

  test("the cookie outlives a restart and ends with the token that it came from", async () => {
    await world.host().kill();
    address = (await world.start()).address;
    expect((await asOwner(cookie)).status).toBe(200);
    await world.host().kill();
    const other = "another-token-0123456789abcdef";
    address = (await world.start({ LANEWAY_TOKEN: other })).address;
    expect((await asOwner(cookie)).status).toBe(401);
    expect((await rawPost(address, "/api/status", {}, { authorization: `Bearer ${other}` })).status).toBe(200);
    expect((await callApi(address, "status", {})).status).toBe(401);
    await world.host().kill();
    address = (await world.start()).address;
    port = new URL(address).port;
  });
});

describe("malformed, huge and slow traffic (NET-5, NET-R6)", () => {
  test("a body that is too large gets 413, with or without its length, and costs no memory", async () => {
    const peakBefore = peakMemory();
    const declared = { ...bearer, ...json, "content-length": "104857600" };
    const socketAnswer = await rawRequest(address, {
      method: "POST",
      path: "/api/send",
      headers: declared,
      body: "",
    }).catch(() => undefined);
    expect(socketAnswer?.status ?? 413).toBe(413);
    const answers = await Promise.all([1, 2, 3, 4].map(() => postChunks("/api/send", 60)));
    for (const status of answers) expect([413, undefined]).toContain(status);
    expect((await rawPost(address, "/api/login", { code: "x".repeat(5_000) })).status).toBe(413);
    expect((await rawPost(address, "/api/status", {})).status).toBe(200);
    const grown = peakMemory() - peakBefore;
    expect(grown).toBeLessThan(100_000_000);
  });

  test("keys that would change a prototype, deep nesting and bytes that are no UTF-8 are refused (NET-5)", async () => {
    const post = (path: string, body: string | Uint8Array) =>
      rawRequest(address, { method: "POST", path, headers: { ...bearer, ...json }, body });
    const send = `"text":"x","key":"${freshKey()}","chat":"proto"`;
    for (const extra of [
      '"__proto__":{"role":"owner"}',
      '"constructor":{"prototype":{}}',
      '"\\u005f_proto__":1',
      '"unknown":1',
    ]) {
      expect([extra, (await post("/api/send", `{${send},${extra}}`)).status]).toEqual([extra, 400]);
    }
    const deep = "[".repeat(100_000) + "]".repeat(100_000);
    expect((await post("/api/send", deep)).status).toBe(400);
    expect((await post("/api/send", `{${send},"text":${deep}}`)).status).toBe(400);
    const schema = `{"model":"laneway","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"a":${deep}}}}]}`;
    expect((await post("/v1/chat/completions", schema)).status).toBe(400);
    const invalid = [
      Buffer.from('{"key":"utf8","chat":"proto","text":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}'),
    ];
    const broken = Buffer.concat(invalid);
    expect((await post("/api/send", broken)).status).toBe(400);
    expect((await post("/api/send", "{")).status).toBe(400);
    expect((await post("/api/toString", "{}")).status).toBe(404);
    expect((await post("/v1/models/%zz", "{}")).status).toBe(404);
    await nothingAccepted("proto");
    expect(({} as { role?: string }).role).toBeUndefined();
  });

  test("hundreds of connections that never finish their head make room for each other and disturb nobody (NET-6)", async () => {
    const sockets = await Promise.all(
      Array.from({ length: 200 }, () =>
        halfOpen(address, `GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nX-Slow: `),
      ),
    );
    await eventually("the oldest are gone", () => sockets.filter((socket) => socket.closed).length >= 150);
    expect((await ask(world.host(), "still there?", { chat: "slow" })).text).toBe("re: still there?");
    for (const socket of sockets) socket.destroy();
  });
});

test("two hundred clients that connect in the same moment are all served (NET-R6)", async () => {
  const asking = Array.from({ length: 200 }, () => rawPost(address, "/api/status", {}));
  expect((await Promise.all(asking)).map(({ status }) => status)).toEqual(Array.from({ length: 200 }, () => 200));
});

test("whoever guesses is slowed down, whatever source he claims; the owner is not locked out (NET-R3)", async () => {
  const guess = (n: number) => ({ authorization: `Bearer guess-${n}`, "x-forwarded-for": `10.0.0.${n}` });
  const statuses: number[] = [];
  for (let n = 0; n < 15; n += 1) statuses.push((await rawPost(address, "/api/status", {}, guess(n))).status);
  expect(statuses[0]).toBe(401);
  expect(statuses.slice(-5)).toEqual([429, 429, 429, 429, 429]);
  expect((await rawPost(address, "/v1/chat/completions", {}, guess(1))).status).toBe(429);
  expect((await rawPost(address, "/api/status", {})).status).toBe(200);
  await eventually("the guesses are audited", () => audited("login.refused").length > 0);
});

test("no secret stands in a log line, an answer or the database (SEC-1, SEC-R1, G23)", async () => {
  puppet.on("leak the key", (response) => {
    response.writeHead(401, { "content-type": "application/json" });
    response.end(
      JSON.stringify({ error: { message: `Incorrect API key provided: ${BACKEND_KEY}`, code: "invalid_api_key" } }),
    );
  });
  const { text } = await ask(world.host(), "leak the key", { chat: "leak" });
  const status = JSON.stringify((await world.host().api("status")).body);
  await world.host().stop();
  const files = ["logs/laneway.log", "laneway.db", "host.json"];
  const kept = await Promise.all(files.map((name) => readFile(`${world.home}/${name}`, "latin1").catch(() => "")));
  expect(kept[0]).toContain("command.finished");
  for (const secret of secrets) {
    for (const place of [text, status, world.host().stderr(), ...kept]) expect(place.includes(secret)).toBe(false);
  }
  expect(secrets.size).toBeGreaterThan(4);
});

/** Bytes that the host has had in memory at most so far. Linux only; elsewhere 0. */
function peakMemory(): number {
  try {
    const found = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${world.host().process.pid}/status`, "utf8"));
    return Number(found?.[1] ?? 0) * 1_024;
  } catch {
    return 0;
  }
}

/** Sends a body of that many megabytes without saying how long it is. Undefined when the host cut it off before the answer was read. */
async function postChunks(path: string, megabytes: number): Promise<number | undefined> {
  let left = megabytes;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      left -= 1;
      if (left < 0) controller.close();
      else controller.enqueue(new Uint8Array(1_048_576).fill(0x20));
    },
  });
  const init = { method: "POST", headers: { ...bearer, ...json }, body, duplex: "half" } as RequestInit;
  try {
    return (await fetch(`${address}${path}`, init)).status;
  } catch {
    return undefined;
  }
}
