// Owns: the order inside a lane, and lists kept in it. Pure.

export interface Ordered {
  readonly id: number;
  readonly orderKey: number;
}

/**
 * The constant key `acceptedAt − priority × agingMs`: no re-sorting, and nobody waits longer than the ageing bound behind a
 * higher priority; beyond it age wins.
 */
export function orderKey(acceptedAt: number, priority: number, agingMs: number): number {
  return acceptedAt - priority * agingMs;
}

export function compare(a: Ordered, b: Ordered): number {
  return a.orderKey - b.orderKey || a.id - b.id;
}

/** Puts `item` at its place. Cheap at the end, where new work almost always goes. */
export function insertOrdered<T extends Ordered>(list: T[], item: T): void {
  list.splice(placeOf(list, item), 0, item);
}

/** True when it was there. */
export function removeOrdered<T extends Ordered>(list: T[], item: T): boolean {
  const at = placeOf(list, item);
  if (list[at]?.id !== item.id) return false;
  list.splice(at, 1);
  return true;
}

/** The index of the first element that is not before `item`. */
function placeOf<T extends Ordered>(list: readonly T[], item: Ordered): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const there = list[middle];
    if (there !== undefined && compare(there, item) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
