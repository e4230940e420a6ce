// Owns: how long to wait before trying again. Pure.

export interface BackoffRule {
  readonly baseMs: number;
  readonly factor: number;
  readonly maxMs: number;
  /** 0.2 means ±20 %. */
  readonly jitter: number;
}

/** The wait in ms before try number `attempt` (1 = after the first failure). `fraction` is in [0, 1). */
export function backoffMs(rule: BackoffRule, attempt: number, fraction: number): number {
  const plain = Math.min(rule.maxMs, rule.baseMs * rule.factor ** Math.max(0, attempt - 1));
  return Math.round(plain * (1 + rule.jitter * (fraction * 2 - 1)));
}
