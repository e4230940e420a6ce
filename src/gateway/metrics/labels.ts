// Owns: label values that stay few, since each of them is a series for ever.

/** Lanes of sessions come and go with their sessions: together they are `nested`. */
export function laneLabel(lane: string): string {
  return lane.startsWith("nested:") ? "nested" : lane;
}
