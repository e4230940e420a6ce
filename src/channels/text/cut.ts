// Owns: where a long text is best cut. Prefers the bound that a reader misses least: paragraph, line, sentence, word, grapheme.
// Never cuts inside a surrogate pair. Pure, for every platform.

/** A stretch that is better left whole, such as a block of code. */
export interface Whole {
  readonly from: number;
  readonly to: number;
}

interface Search {
  readonly text: string;
  /** The cut lies after `from` and at most at `to`. */
  readonly from: number;
  readonly to: number;
  readonly wholes: readonly Whole[];
}

/** Finds a cut of one kind at or after `floor`, the last one. */
type Find = (search: Search, floor: number) => number | undefined;

/**
 * In order of preference; `share` is how much of the message must be filled before a bound of this kind is good enough. A block of
 * code is moved to the next message rather than cut, unless that leaves this one nearly empty. In code a line without an indent is
 * the better start of a message, because the platforms strip the indent there.
 */
const PREFERENCES: readonly { readonly find: Find; readonly share: number }[] = [
  { find: (search, floor) => lastMark(search, "\n\n", floor), share: 0.5 },
  { find: (search, floor) => lastMark(search, "\n", floor), share: 0.5 },
  { find: (search, floor) => lastMark(search, "\n\n", floor), share: 0.2 },
  { find: (search, floor) => lastMark(search, "\n", floor), share: 0.2 },
  { find: (search, floor) => last(search, floor, isFlushLine), share: 0.4 },
  { find: (search, floor) => last(search, floor, isLine), share: 0.2 },
  { find: (search, floor) => last(search, floor, isSentence), share: 0.5 },
  { find: (search, floor) => last(search, floor, isWord), share: 0 },
];

const GRAPHEMES = new Intl.Segmenter("en", { granularity: "grapheme" });
/** Looked at behind the limit, to see whether the last grapheme goes on there. */
const GRAPHEME_AHEAD = 64;

/**
 * Where to end a message that starts at `from` and may reach up to `to`: an index above `from` and at most `to`. What is blank
 * around it is for the caller to drop.
 */
export function cutPoint(search: Search): number {
  for (const { find, share } of PREFERENCES) {
    const floor = Math.max(search.from + 1, search.from + Math.ceil((search.to - search.from) * share));
    const found = find(search, floor);
    if (found !== undefined) return found;
  }
  return graphemeCut(search);
}

/** The last `mark` outside of everything that is better left whole. */
function lastMark({ text, from, to, wholes }: Search, mark: string, floor: number): number | undefined {
  // Only this stretch: looking back through all of a long text for each message would be quadratic.
  const stretch = text.slice(from, to + mark.length);
  let at = from + stretch.lastIndexOf(mark, to - from);
  while (at >= floor) {
    const found = at;
    const whole = wholes.find((one) => one.from < found && found < one.to);
    if (whole === undefined) return at;
    if (whole.from <= from) return undefined;
    at = from + stretch.lastIndexOf(mark, whole.from - 1 - from);
  }
  return undefined;
}

function last({ text, to }: Search, floor: number, fits: (text: string, at: number) => boolean): number | undefined {
  for (let at = to; at >= floor; at--) if (fits(text, at)) return at;
  return undefined;
}

function isLine(text: string, at: number): boolean {
  return text.charAt(at) === "\n";
}

function isFlushLine(text: string, at: number): boolean {
  return isLine(text, at) && /\S/u.test(text.charAt(at + 1));
}

function isSentence(text: string, at: number): boolean {
  const before = text.charAt(at - 1);
  return "。！？".includes(before) ? before !== "" : ".!?…".includes(before) && /\s/u.test(text.charAt(at));
}

/** A blank that a mark combines with is the base of a grapheme, not a bound. */
function isWord(text: string, at: number): boolean {
  return /\s/u.test(text.charAt(at)) && !/^[\p{M}\u200d]/u.test(text.slice(at + 1, at + 3));
}

function graphemeCut({ text, from, to }: Search): number {
  const near = GRAPHEMES.segment(text.slice(from, to + GRAPHEME_AHEAD)).containing(to - from)?.index ?? 0;
  if (near > 0) return from + near;
  const splitsPair = /^[\ud800-\udbff][\udc00-\udfff]/.test(text.slice(to - 1, to + 1));
  return splitsPair && to - 1 > from ? to - 1 : to;
}
