// Owns: which token makes its holder the owner, and the keys derived from it. Never logs or shows it.
import { hkdfSync } from "node:crypto";
import { ConfigError, messageOf } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import { type Env, envText } from "./env.ts";
import { createPrivate, isOpenToOthers, isThere, modeText, readTextFile } from "./files.ts";
import type { HomePaths } from "./home.ts";
import { type Settings, TOKEN_MIN_LENGTH, tokenText } from "./schema.ts";

/** As strong as the keys derived from it. */
const TOKEN_BITS = 256;
const TOKEN_FILE_LIMIT = 4096;

export interface TokenSources {
  readonly settings: Pick<Settings, "gateway">;
  readonly paths: HomePaths;
  readonly env: Env;
  readonly ids: Ids;
}

/**
 * The token: `LANEWAY_TOKEN`, else the one of the settings, else the home's own, which the first start makes.
 * @throws ConfigError when it is too weak, or when its file can be read by others (SEC-2)
 */
export function readToken({ settings, paths, env, ids }: TokenSources): string {
  const given = envText(env, "LANEWAY_TOKEN");
  if (given !== undefined) return strong(given, "LANEWAY_TOKEN");
  if (settings.gateway.token !== undefined) return settings.gateway.token;
  try {
    if (!isThere(paths.token)) createPrivate(paths.token, `${ids.random(TOKEN_BITS)}\n`);
    return ownToken(paths.token);
  } catch (thrown) {
    if (thrown instanceof ConfigError) throw thrown;
    throw new ConfigError(`the token file ${paths.token} cannot be used: ${messageOf(thrown)}`, { cause: thrown });
  }
}

function ownToken(path: string): string {
  const { text, mode } = readTextFile(path, TOKEN_FILE_LIMIT);
  if (isOpenToOthers(mode)) {
    throw new ConfigError(`expected a file that only its owner can read, but ${path} has mode ${modeText(mode)}`, {
      hint: `run "chmod 600 ${path}"; if others may have read it, delete it: the next start makes a new one`,
    });
  }
  return strong(text.trim(), path);
}

function strong(token: string, source: string): string {
  if (tokenText.safeParse(token).success) return token;
  throw new ConfigError(
    `expected a token of at least ${TOKEN_MIN_LENGTH} visible ASCII characters in ${source}, but it is another text of ${token.length}`,
    { hint: "use a random one, or leave it out: the first start makes one" },
  );
}

/**
 * A 32-byte key for one purpose (HKDF-SHA256): it tells nothing about the token or the keys of other purposes.
 * @param purpose a fixed name such as "cookie"
 */
export function deriveKey(token: string, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", token, "laneway", purpose, 32));
}
