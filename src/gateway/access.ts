// Owns: who may speak to the gateway: Host and Origin checked exactly, the token or the page's cookie, one-time codes, and the
// brake on guessing. A source address or an absent header never replaces a credential (NET-R2).
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { Clock } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";

const COOKIE_DAYS = 30;
const DAY_MS = 86_400_000;
const CODE_LIFE_MS = 600_000;
/** More outstanding links than this are nobody's plan; the oldest is void then. */
const MAX_CODES = 20;
/** A person who mistypes needs a few tries; a guesser of 128 bits gets nowhere at ten a minute. */
const MAX_FAILURES = 10;
const FAILURE_WINDOW_MS = 60_000;
const MAX_SOURCES = 1_000;

export interface Refusal {
  readonly status: 400 | 401 | 403 | 421 | 429;
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
  /** The action under which it is audited: none for a client that merely has to log in. */
  readonly audit?: string;
}

export interface AccessRequest {
  readonly url: URL;
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
  /** The socket's own address; a forwarded-for header counts for nothing (NET-7). */
  readonly source: string;
}

export interface Access {
  /** What holds for every request, before any route: undefined when it may go on. */
  screen(request: AccessRequest): Refusal | undefined;
  /** Whether it carries the token, or (when `cookies`) a valid cookie. */
  authenticate(request: AccessRequest, cookies: boolean): Refusal | undefined;
  /** A fresh one-time code for a link. */
  newCode(): string;
  /** Trades a code for the text of a Set-Cookie header. */
  redeem(code: string, source: string): { cookie: string } | Refusal;
}

interface AccessDeps {
  readonly token: string;
  /** Derived from the token: cookies survive a restart and end when the token is rotated. */
  readonly cookieKey: Buffer | Uint8Array;
  readonly clock: Clock;
  readonly ids: Ids;
  /** The name or address that the settings bind to, as people write it in a URL. */
  readonly ownHost: string;
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
  readonly port: () => number;
}

const UNAUTHORIZED: Refusal = {
  status: 401,
  code: "unauthorized",
  message: "expected the owner's token as `Authorization: Bearer …`, or the page's cookie",
  hint: "For the page open the link that `laneway start` printed, or run `laneway link`.",
};
const WRONG: Refusal = { ...UNAUTHORIZED, audit: "login.refused" };
const SLOW_DOWN: Refusal = {
  status: 429,
  code: "too_many_failures",
  message: "too many failed tries, wait a minute",
  audit: "login.refused",
};

export function makeAccess(deps: AccessDeps): Access {
  const { clock } = deps;
  const tokenHash = hash(deps.token);
  const cookieName = `laneway-${hash(deps.token).toString("hex").slice(0, 8)}`;
  const codes = new Map<string, number>();
  const brake = makeBrake(clock);

  const sign = (text: string) => createHmac("sha256", deps.cookieKey).update(text).digest("base64url");
  const makeCookie = () => {
    const text = `${clock.now() + COOKIE_DAYS * DAY_MS}.${deps.ids.random()}`;
    return `${cookieName}=${text}.${sign(text)}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${COOKIE_DAYS * 86_400}`;
  };
  const cookieValid = (header: string | undefined) => {
    const value = cookieOf(header, cookieName);
    const [expires, nonce, signature] = value?.split(".") ?? [];
    if (expires === undefined || nonce === undefined || signature === undefined) return false;
    return same(signature, sign(`${expires}.${nonce}`)) && Number(expires) > clock.now();
  };
  const tokenValid = (header: string | undefined) => {
    const given = /^Bearer (.+)$/i.exec(header ?? "")?.[1];
    return given !== undefined && timingSafeEqual(hash(given), tokenHash);
  };

  return {
    screen({ url, host, origin }) {
      if (!hostAllowed(host, deps)) return wrongHost(host);
      if (origin !== undefined && !originAllowed(origin, host, deps.allowedOrigins)) return WRONG_ORIGIN;
      return [...url.searchParams.keys()].some((name) => SECRET_NAME.test(name)) ? TOKEN_IN_URL : undefined;
    },
    authenticate({ authorization, cookie, source }, cookies) {
      if (tokenValid(authorization) || (cookies && cookieValid(cookie))) return undefined;
      // Cookies of other programs on this machine come along too and are no try.
      const isTry = authorization !== undefined || (cookies && cookieOf(cookie, cookieName) !== undefined);
      if (!isTry) return UNAUTHORIZED;
      return brake.failed(source) ? SLOW_DOWN : WRONG;
    },
    newCode() {
      const code = deps.ids.random();
      codes.set(code, clock.now() + CODE_LIFE_MS);
      const oldest = codes.keys().next().value;
      if (codes.size > MAX_CODES && oldest !== undefined) codes.delete(oldest);
      return code;
    },
    redeem(code, source) {
      const expires = codes.get(code);
      if (expires === undefined || expires < clock.now()) {
        if (brake.failed(source)) return SLOW_DOWN;
        return {
          ...WRONG,
          message: "this link has been used or has expired",
          hint: "Run `laneway link` for a new one.",
        };
      }
      codes.delete(code);
      return { cookie: makeCookie() };
    },
  };
}

const SECRET_NAME = /token|secret|password|api[-_]?key/i;
const TOKEN_IN_URL: Refusal = {
  status: 400,
  code: "token_in_url",
  message: "a token in a URL is refused, since URLs end up in logs",
  audit: "token-in-url.refused",
};
const WRONG_ORIGIN: Refusal = {
  status: 403,
  code: "wrong_origin",
  message: "pages of other origins may not connect",
  hint: "The owner can add an origin to gateway.allowedOrigins.",
  audit: "origin.refused",
};

function wrongHost(host: string | undefined): Refusal {
  return {
    status: 421,
    code: "wrong_host",
    message: `this host is not known as ${JSON.stringify(host ?? "")}`,
    hint: "The owner can add a name to gateway.allowedHosts.",
    audit: "host.refused",
  };
}

/** Hashed first, so that the comparison takes the same time whatever the lengths are. */
function hash(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function same(a: string, b: string): boolean {
  return timingSafeEqual(hash(a), hash(b));
}

function cookieOf(header: string | undefined, name: string): string | undefined {
  for (const pair of header?.split(";") ?? []) {
    const at = pair.indexOf("=");
    if (pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return undefined;
}

const LOOPBACK_NAMES = ["127.0.0.1", "[::1]", "localhost"];

/** Against DNS rebinding (NET-2): only loopback names and the bound one at our port, and names from the settings. */
function hostAllowed(host: string | undefined, { ownHost, allowedHosts, port }: AccessDeps): boolean {
  if (host === undefined) return false;
  const written = host.toLowerCase();
  const atPort = [...LOOPBACK_NAMES, ownHost.toLowerCase()].some((name) => written === withPort(name, port()));
  return atPort || allowedHosts.some((name) => name.toLowerCase() === written);
}

/** Clients leave the usual port out. */
function withPort(name: string, port: number): string {
  return port === 80 ? name : `${name}:${port}`;
}

/** Our own page has the origin of the host that it asked for; anything else must stand in the settings, to the letter. */
function originAllowed(origin: string, host: string | undefined, allowed: readonly string[]): boolean {
  return origin === `http://${host}` || origin === `https://${host}` || allowed.includes(origin);
}

/**
 * Counts failures by source within a sliding minute. What is right passes at any time: a token or code cannot be guessed, and a
 * program with an old token on the same machine must not lock the owner out.
 */
function makeBrake(clock: Clock) {
  const failures = new Map<string, number[]>();
  const recent = (source: string) => (failures.get(source) ?? []).filter((at) => at > clock.mono() - FAILURE_WINDOW_MS);
  return {
    /** Notes one more; true when the source is to be slowed down. */
    failed(source: string): boolean {
      const times = recent(source);
      if (times.length < MAX_FAILURES) times.push(clock.mono());
      failures.delete(source);
      failures.set(source, times);
      const oldest = failures.keys().next().value;
      if (failures.size > MAX_SOURCES && oldest !== undefined) failures.delete(oldest);
      return times.length >= MAX_FAILURES;
    },
  };
}
