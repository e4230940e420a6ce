// Owns: serving the page's files from src/dashboard: the list is read once, so that no path from
// outside meets the disk.
import { readdirSync, readFileSync } from "node:fs";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Nothing is fetched from anywhere else, nothing is embedded, nothing inline is run (INJ-R2, NET-R4). */
const PAGE_HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cache-control": "no-cache",
};

/** The response for `name`, or undefined when it is none of the page's files. */
export type Assets = (name: string) => Response | undefined;

/** @param folder of the page; only its files of the types above are served */
export function makeAssets(folder: URL): Assets {
  const bodies = new Map<string, string>();
  for (const name of readdirSync(folder)) {
    if (typeOf(name) !== undefined) bodies.set(name, readFileSync(new URL(name, folder), "utf8"));
  }
  return (name) => {
    const body = bodies.get(name);
    const type = typeOf(name);
    if (body === undefined || type === undefined) return undefined;
    return new Response(body, { headers: { ...PAGE_HEADERS, "content-type": type } });
  };
}

function typeOf(name: string): string | undefined {
  return TYPES[name.slice(name.lastIndexOf("."))];
}
