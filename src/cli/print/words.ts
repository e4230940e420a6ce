// Owns: how lengths of time and instants are said. Pure.

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A length of time as people say it: `840 ms`, `12 s`, `3 min`, `5 h`, `4 d`. */
export function lengthText(ms: number): string {
  if (ms < SECOND) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  return ms < 2 * DAY ? `${Math.floor(ms / HOUR)} h` : `${Math.floor(ms / DAY)} d`;
}

/**
 * An instant: relative on a terminal, where somebody reads it now; else as it came (ISO 8601).
 * @param nowMs `undefined` where the text may be read later
 */
export function instantText(iso: string | undefined, nowMs: number | undefined): string {
  if (iso === undefined) return "";
  const at = Date.parse(iso);
  if (nowMs === undefined || Number.isNaN(at)) return iso;
  const ageMs = nowMs - at;
  return ageMs >= 0 ? `${lengthText(ageMs)} ago` : `in ${lengthText(-ageMs)}`;
}

/** `1 command`, `2 commands`. */
export function countText(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
