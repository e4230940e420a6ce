// Owns: which way imports may point, and which room may use which package. `npm run check -- imports` reads it.
// Type-only imports count: a type that points up is a direction error too.
// test/unit/project/imports.test.ts plants one violation of each rule and sees it reported.
// @ts-check

/** The rooms from the bottom up. A room imports only itself and rooms before it in this list. */
export const ROOMS = ["kernel", "settings", "store", "queue", "turns", "agents", "memory", "runbooks", "gateway"];

/** On top of all rooms: they may import any of them, and no room imports them. */
const TOP = ["main.ts", "cli/"];

/**
 * Each package that src may import, and the only places that may import it (`*` = everywhere; zod is at every edge).
 * A package that is missing here fails a test: it needs an owner and a line in docs/decisions/0001-libraries.md.
 * @type {Record<string, string[]>}
 */
export const OWNERS = {
  "@ai-sdk/anthropic": ["turns/backends/"],
  "@ai-sdk/openai-compatible": ["turns/backends/"],
  "@ai-sdk/provider": ["turns/backends/"],
  "@hono/node-server": ["gateway/"],
  "better-sqlite3": ["store/"],
  commander: ["main.ts", "cli/"],
  "fastest-levenshtein": ["settings/", "gateway/"],
  grammy: ["channels/telegram/"],
  hono: ["gateway/"],
  marked: ["channels/text/"],
  "p-queue": ["channels/"],
  pino: ["main.ts", "cli/", "kernel/log.ts"],
  "prom-client": ["gateway/metrics/"],
  "rotating-file-stream": ["main.ts", "cli/"],
  yaml: ["settings/", "runbooks/"],
  zod: ["*"],
};

/** @param {string[]} places */
const inSrc = (places) => `^src/(${places.map((place) => place.replaceAll(".", "\\.")).join("|")})`;

/** @param {string} name */
const packagePath = (name) => `(^|(^|/)node_modules/(@types/)?)${name}(/|$)`;

/** @param {string} room @param {number} level */
function upwardRule(room, level) {
  const above = [...ROOMS.slice(level + 1).map((name) => `${name}/`), ...TOP];
  return {
    name: `up-from-${room}`,
    comment: `${room} is below what it imports. Return a value, declare a port here, or move the type down.`,
    severity: "error",
    from: { path: `^src/${room}/` },
    to: { path: inSrc(above) },
  };
}

/** @param {[string, string[]]} owner */
function ownerRule([name, places]) {
  return {
    name: `only-${name}`,
    comment: `${name} belongs to ${places.join(", ")}. Elsewhere call a verb of that room.`,
    severity: "error",
    from: { path: "^src/", pathNot: inSrc(places) },
    to: { path: packagePath(name) },
  };
}

const restricted = Object.entries(OWNERS).filter(([, places]) => !places.includes("*"));

export default {
  forbidden: [
    ...ROOMS.map(upwardRule),
    ...restricted.map(ownerRule),
    {
      name: "channels-are-leaves",
      comment: "A channel knows the kernel and nothing else of ours: it is given callbacks.",
      severity: "error",
      from: { path: "^src/channels/" },
      to: { path: "^src/", pathNot: "^src/(kernel|channels)/" },
    },
    {
      name: "channels-only-from-gateway",
      comment: "Only the gateway builds channels.",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/(gateway|channels)/" },
      to: { path: "^src/channels/" },
    },
    {
      name: "dashboard-is-browser-code",
      comment: "The page runs in a browser: it imports only its own files.",
      severity: "error",
      from: { path: "^src/dashboard/" },
      to: { pathNot: "^src/dashboard/" },
    },
    {
      name: "dashboard-is-served",
      comment: "The gateway serves the page as files; no code of the host imports it.",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/dashboard/" },
      to: { path: "^src/dashboard/" },
    },
    {
      name: "nobody-imports-the-top",
      comment: "main.ts starts the process; importing it would start a second host.",
      severity: "error",
      from: { path: "^src/" },
      to: { path: "^src/main\\.ts$" },
    },
    {
      name: "log-knows-pino-by-type",
      comment: "kernel/log.ts names pino's type only; main or cli makes the logger.",
      severity: "error",
      from: { path: "^src/kernel/log\\.ts$" },
      to: { path: packagePath("pino"), dependencyTypesNot: ["type-only"] },
    },
    {
      name: "src-stands-alone",
      comment: "What is shipped never imports tests, scripts or development settings.",
      severity: "error",
      from: { path: "^src/" },
      to: { path: "^(test|scripts|config)/" },
    },
    {
      name: "no-dev-packages-in-src",
      comment: "A development dependency is not there when the package is installed.",
      severity: "error",
      from: { path: "^src/" },
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["type-only"] },
    },
    {
      name: "no-undeclared-packages",
      comment: "A package that only a dependency brought in can vanish with its next version: declare it.",
      severity: "error",
      from: {},
      to: { dependencyTypes: ["npm-no-pkg", "npm-unknown"] },
    },
    {
      name: "no-unresolved-imports",
      comment: "The import leads nowhere.",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: "no-cycles",
      comment: "Move the shared type or function down. A lazy import hides a cycle, it does not break it.",
      severity: "error",
      from: {},
      to: { circular: true },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    detectJSDocImports: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default", "types"],
      mainFields: ["module", "main", "types"],
      extensions: [".ts", ".mts", ".js", ".mjs", ".json", ".d.ts"],
    },
  },
};
