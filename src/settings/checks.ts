// Owns: the rules that involve two settings, or a setting and its surroundings. They look at the settings as written,
// so that one pass tells everything, whatever else is wrong.
import { relative } from "node:path";
import { type Env, envText } from "./env.ts";
import { type HomePaths, resolvePath } from "./home.ts";
import { entry, isRecord, nearest, type Path } from "./known-keys.ts";
import { cameText, type Finding, type Written } from "./problems.ts";

export function crossFindings(written: Written, from: { env: Env; paths: HomePaths }): Finding[] {
  const { root } = written;
  return [
    ...agentFindings(written),
    ...workspaceFindings(root, from),
    ...laneFindings(root),
    ...addressFindings(root, from.env),
    ...webhookFindings(root),
    ...doubleFindings(root),
  ];
}

function entries(value: unknown): [string, unknown][] {
  return isRecord(value) ? Object.entries(value) : [];
}

function agentFindings(written: Written): Finding[] {
  const { root } = written;
  const agents = entry(root, "agents");
  if (!isRecord(agents)) return [];
  const known = entries(entry(root, "backends")).map(([name]) => name);
  const findings = entries(agents).flatMap(([agent, settings]) => {
    const named = entry(settings, "backends");
    if (!Array.isArray(named)) return [];
    return named.flatMap((name: unknown, index): Finding[] => {
      if (typeof name !== "string" || known.includes(name)) return [];
      const path = ["agents", agent, "backends", index];
      const message = `expected the name of a backend, but got ${cameText(path, name, written)}${backendAdvice(name, known)}`;
      return [{ path, message }];
    });
  });
  if (Object.hasOwn(agents, "main")) return findings;
  const guess = nearest("main", Object.keys(agents));
  const meant = guess === undefined ? "" : `; did you mean it by "${guess}"?`;
  return [
    ...findings,
    { path: ["agents"], atKey: true, message: `expected one of the agents to be called main${meant}` },
  ];
}

function backendAdvice(name: string, known: readonly string[]): string {
  const guess = nearest(name, known);
  if (guess !== undefined) return `; did you mean "${guess}"?`;
  return known.length === 0 ? ", and `backends` has none" : `; known: ${known.join(", ")}`;
}

/** Tools write in the workspace; the token, the database and the settings must stay out of their reach (FILE-R2). */
function workspaceFindings(root: unknown, { env, paths }: { env: Env; paths: HomePaths }): Finding[] {
  return entries(entry(root, "agents")).flatMap(([agent, settings]): Finding[] => {
    const written = entry(settings, "workspace");
    if (typeof written !== "string") return [];
    const folder = resolvePath(paths.home, written, env);
    if (!holds(folder, paths.home)) return [];
    const message = `expected a folder beside or below the home ${paths.home}, since this one holds the host's own files`;
    return [{ path: ["agents", agent, "workspace"], message }];
  });
}

function holds(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === "" || !(way.startsWith("..") || /^([A-Za-z]:|[/\\])/.test(way));
}

function laneFindings(root: unknown): Finding[] {
  const lanes = entry(root, "lanes");
  const total = entry(lanes, "total") ?? 24;
  const reserved = entry(lanes, "mainReserved") ?? 1;
  if (typeof total !== "number" || typeof reserved !== "number" || total > reserved) return [];
  const key = entry(lanes, "total") === undefined ? "mainReserved" : "total";
  const message = `expected total (${total}) to be larger than mainReserved (${reserved}), or the other lanes never run`;
  return [{ path: ["lanes", key], message }];
}

/** NET-8: whoever can reach the port must have been given the token on purpose. */
function addressFindings(root: unknown, env: Env): Finding[] {
  const gateway = entry(root, "gateway");
  const host = entry(gateway, "host");
  if (typeof host !== "string" || isLoopback(host)) return [];
  const given = entry(gateway, "token") ?? entry(gateway, "tokenFile") ?? envText(env, "LANEWAY_TOKEN");
  if (given !== undefined) return [];
  const message = "expected a loopback address, or a token in gateway.token, gateway.tokenFile or LANEWAY_TOKEN";
  return [{ path: ["gateway", "host"], message, refusesStart: true }];
}

/** Whether only this machine can reach the address. */
function isLoopback(host: string): boolean {
  const plain = host.toLowerCase().replace(/^\[|\]$/g, "");
  return plain === "localhost" || plain === "::1" || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(plain);
}

/** The places of all Telegram accounts. */
function telegramPlaces(root: unknown): Path[] {
  const telegram = ["channels", "telegram"].reduce<unknown>(entry, root);
  const further = entries(entry(telegram, "accounts"));
  return [["channels", "telegram"], ...further.map(([name]): Path => ["channels", "telegram", "accounts", name])];
}

function webhookFindings(root: unknown): Finding[] {
  return telegramPlaces(root).flatMap((path): Finding[] => {
    const account = path.reduce(entry, root);
    if (entry(account, "mode") !== "webhook" || entry(account, "webhookUrl") !== undefined) return [];
    const message = "expected webhookUrl too, the address under which Telegram reaches this host";
    return [{ path: [...path, "mode"], message }];
  });
}

function doubleFindings(root: unknown): Finding[] {
  const places: Path[] = [
    ["gateway", "token"],
    ...telegramPlaces(root).map((path): Path => [...path, "token"]),
    ["media", "transcribe", "apiKey"],
    ...entries(entry(root, "backends")).map(([name]): Path => ["backends", name, "apiKey"]),
    ...entries(entry(root, "agents")).map(([name]): Path => ["agents", name, "systemPrompt"]),
  ];
  return places.flatMap((path): Finding[] => {
    const key = String(path.at(-1));
    const holder = path.slice(0, -1).reduce(entry, root);
    if (entry(holder, key) === undefined || entry(holder, `${key}File`) === undefined) return [];
    return [
      {
        path: [...path.slice(0, -1), `${key}File`],
        atKey: true,
        message: `expected ${key} or ${key}File, but got both`,
      },
    ];
  });
}
