// Owns: the named points at which a test may kill the process. In production every point is a no-op.

/** Called with a name such as `commit.before:accept`. Must return quickly and never throws. */
export type CrashPoint = (name: string) => void;

export const noCrashPoint: CrashPoint = () => {};

/**
 * Kills the process at the `nth` time that the point `name` is reached.
 * `spec` is `name` or `name#nth`, as in `commit.after:finish#3`.
 */
export function crashAt(spec: string, kill: () => void): CrashPoint {
  const [name, nth = "1"] = spec.split("#");
  let left = Number(nth);
  return (reached) => {
    if (reached === name && --left === 0) kill();
  };
}
