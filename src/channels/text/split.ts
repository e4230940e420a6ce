// Owns: cutting a text with spans (markup by position) into messages that a platform takes. Knows no platform and no markup.
import { cutPoint } from "./cut.ts";
import { dropBlank, isShown, skipBlank } from "./visible.ts";

/** Positions count UTF-16 units, `to` is behind the last one. */
export interface Span {
  readonly from: number;
  readonly to: number;
  /** Better not cut: a code block. */
  readonly whole: boolean;
}

/** One message: positions of its spans count from its own start. */
export interface Piece<S extends Span> {
  readonly text: string;
  readonly spans: readonly S[];
}

export interface SplitLimits {
  /** UTF-16 units of one message, at least 2. */
  readonly units: number;
  /** Spans of one message; more are left out only when they all start at one place. */
  readonly spans: number;
}

/**
 * The text in order as pieces within the limits: none blank, none with blank edges, no character lost but blanks at the cuts, no
 * surrogate pair cut. A span that is cut goes on in the next piece. Spans of a piece are sorted (outer before inner), inside it and
 * not blank; when the given ones are nested or disjoint, so are these. Linear in text and spans. (Q7.1)
 * @param spans in any order
 */
export function splitText<S extends Span>(text: string, spans: readonly S[], limits: SplitLimits): Piece<S>[] {
  const sorted = spans.toSorted((a, b) => a.from - b.from || b.to - a.to);
  const pieces: Piece<S>[] = [];
  let open: readonly S[] = [];
  let next = 0;
  for (let from = skipBlank(text, 0, text.length); from < text.length; ) {
    const started = countUntil(sorted, next, from + 1);
    open = [...open, ...sorted.slice(next, started)].filter(({ to }) => to > from).slice(0, limits.spans);
    next = started;
    const end = pieceEnd({ text, from, open, sorted, next, limits });
    const starting = countUntil(sorted, next, end);
    open = [...open, ...sorted.slice(next, starting)];
    next = starting;
    const piece = cutOut(text, from, dropBlank(text, from, end), open);
    if (isShown(piece.text)) pieces.push(piece);
    from = skipBlank(text, end, text.length);
  }
  return pieces;
}

/** The index of the first span that starts at or after `at`. */
function countUntil(sorted: readonly Span[], start: number, at: number): number {
  let index = start;
  for (let span = sorted[index]; span !== undefined && span.from < at; span = sorted[index]) index++;
  return index;
}

interface At {
  readonly text: string;
  readonly from: number;
  /** Spans that reach into this piece from before, or start with it. */
  readonly open: readonly Span[];
  readonly sorted: readonly Span[];
  readonly next: number;
  readonly limits: SplitLimits;
}

function pieceEnd({ text, from, open, sorted, next, limits }: At): number {
  const reach = Math.min(text.length, from + limits.units);
  const tooMany = sorted[next + limits.spans - open.length];
  const to = Math.min(reach, tooMany?.from ?? reach);
  if (to === text.length) return to;
  const inReach = sorted.slice(next, next + limits.spans - open.length);
  const wholes = [...open, ...inReach].filter(({ whole }) => whole);
  return cutPoint({ text, from, to, wholes });
}

function cutOut<S extends Span>(text: string, from: number, to: number, spans: readonly S[]): Piece<S> {
  const clipped = spans
    .filter((span) => isShown(text.slice(Math.max(span.from, from), Math.min(span.to, to))))
    .map((span) => ({ ...span, from: Math.max(span.from, from) - from, to: Math.min(span.to, to) - from }));
  return { text: text.slice(from, to), spans: clipped.toSorted((a, b) => a.from - b.from || b.to - a.to) };
}
