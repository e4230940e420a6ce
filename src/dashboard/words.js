// Owns: the states of a message in a person's words. Pure.

/**
 * @param {string} state as the host names it; an unknown one is shown as it is
 * @param {number | undefined} position how many go before it
 * @returns {string} empty when there is nothing to say
 */
export function wordsOf(state, position) {
  switch (state) {
    case "queued":
      if (position === undefined) return "Queued";
      return position < 1 ? "Queued, next in line" : `Queued, ${position} ahead`;
    case "running":
      return "Working on it";
    case "waiting":
      return "Waiting for your answer";
    case "absorbed":
      return "Added to the running answer";
    case "done":
    case "":
      return "";
    case "failed":
      return "Failed";
    case "dead":
      return "Given up";
    case "cancelled":
      return "Stopped";
    default:
      return state;
  }
}
