// Owns: the audit rows of those who were turned away at the door. They are strangers, so what they can make the host write
// is bounded.
import type { Clock } from "../kernel/clock.ts";
import type { Background } from "../kernel/log.ts";
import type { Store } from "../store/store.ts";

/** The first rows of a flood tell enough of it; the audit is kept for good. */
const MAX_ROWS = 60;
const WINDOW_MS = 60_000;
/** Paths and headers are the stranger's words. */
const MAX_CHARS = 200;

/** `target` is the path without its query, `detail` what the request said of itself. */
export type AuditRefusal = (action: string, target: string, detail: Record<string, string | undefined>) => void;

interface AuditDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly background: Background;
}

export function makeRefusalAudit({ store, clock, background }: AuditDeps): AuditRefusal {
  let since = clock.mono();
  let rows = 0;
  return (action, target, detail) => {
    if (clock.mono() - since >= WINDOW_MS) {
      since = clock.mono();
      rows = 0;
    }
    rows += 1;
    if (rows > MAX_ROWS || store.paused()) return;
    const short = Object.fromEntries(Object.entries(detail).map(([name, text]) => [name, text?.slice(0, MAX_CHARS)]));
    const entry = { actor: "anonymous", action, target: target.slice(0, MAX_CHARS), detail: short };
    background(
      "audit",
      store.write("audit", (tx) => tx.audit.add(entry, clock.now())),
    );
  };
}
