// Owns: reading the version of this package.
import { readFileSync } from "node:fs";
import { z } from "zod";

/** As in package.json, which lies two folders up in the sources and in the compiled package alike. */
export function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return z.object({ version: z.string() }).parse(JSON.parse(text)).version;
}
