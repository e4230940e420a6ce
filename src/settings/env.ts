// Owns: the one reading of the process environment. Everything else is given the record it returns.

/** A copy of the environment, or a made-up one in a test. */
export type Env = Readonly<Record<string, string | undefined>>;

/** A snapshot: later changes of the environment are not seen. */
export function readEnv(): Env {
  return { ...process.env };
}

/** The value of a variable without the blanks around it; `undefined` when it is absent or blank. */
export function envText(env: Env, name: string): string | undefined {
  const value = Object.hasOwn(env, name) ? env[name]?.trim() : undefined;
  return value === "" ? undefined : value;
}
