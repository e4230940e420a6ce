// Owns: the list of named points at which a host is killed: before and after each kind of commit that a message causes.

/** The writes of the host by name (the first argument of `store.write`); `#n` is the n-th time that the point is reached. */
const WRITES = ["accept", "claim", "step", "finish", "recover", "ack"] as const;

export const CRASH_POINTS: readonly string[] = WRITES.flatMap((write) => {
  const times = write === "recover" ? [1] : [1, 2, 3];
  return times.flatMap((n) => [`commit.before:${write}#${n}`, `commit.after:${write}#${n}`]);
});
