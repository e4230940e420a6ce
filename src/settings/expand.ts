// Owns: ${NAME} in settings: what it means and how it survives YAML. Pure.
import type { Env } from "./env.ts";

/**
 * In a flow mapping, as in `{ token: ${TOKEN} }`, braces end a plain text. So while YAML is read they are
 * replaced by noncharacters of the same length, which keeps every position right.
 */
const OPEN = "\uFDD0";
const CLOSE = "\uFDD1";

export function hideBraces(source: string): string {
  return source.replace(/\$\{([A-Za-z_]\w*)\}/g, (_, name: string) => `$${OPEN}${name}${CLOSE}`);
}

export function revealBraces(text: string): string {
  return text.replaceAll(OPEN, "{").replaceAll(CLOSE, "}");
}

export interface Expansion {
  readonly text: string;
  /** Whether anything of the text came from the environment. */
  readonly fromEnv: boolean;
  /** Sentences about what could not be replaced. */
  readonly faults: readonly string[];
}

/** Of one text: a prompt in another template language has hundreds. */
const MAX_FAULTS = 5;
const ESCAPE_ADVICE = "write $${ for a plain ${";

/** Replaces each `${NAME}` by the variable of that name; `$${` stands for a plain `${`. */
export function expand(written: string, env: Env): Expansion {
  const faults: string[] = [];
  const fault = (sentence: string) => {
    if (faults.length < MAX_FAULTS && !faults.includes(sentence)) faults.push(sentence);
  };
  let fromEnv = false;
  const text = written.replace(/\$\$\{|\$\{([A-Za-z_]\w*)\}|\$\{/g, (match, name: string | undefined) => {
    if (match === "$${") return "${";
    if (name === undefined) {
      fault(`expected a name of letters, digits and _ between the braces; ${ESCAPE_ADVICE}`);
      return match;
    }
    fromEnv = true;
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (value === undefined) fault(`the environment variable ${name} is not set; ${ESCAPE_ADVICE}`);
    return value ?? "";
  });
  return { text, fromEnv, faults };
}
