// Owns: a text that is written piece by piece together with its styles as spans, its line breaks and its indents. Knows no platform.
import type { Span } from "./split.ts";

export type Style =
  | { readonly kind: "bold" | "italic" | "strike" | "quote" | "code" }
  | { readonly kind: "pre"; readonly language: string | undefined }
  | { readonly kind: "link"; readonly url: string };

export interface StyledSpan extends Span {
  readonly style: Style;
}

/** Something that goes as a file of its own between the text before and behind `at`. */
export interface Attached {
  readonly at: number;
  readonly language: string | undefined;
  readonly text: string;
}

/** Spans are nested or disjoint; one of `code` or `pre` holds no other, no kind holds itself. */
export interface StyledText {
  readonly text: string;
  readonly spans: readonly StyledSpan[];
  readonly attached: readonly Attached[];
}

export interface Writer {
  write(text: string): void;
  /** At least so many line breaks before what is written next; none at the start and none behind a marker. */
  gap(lines: number): void;
  /** A bullet, number or box: what comes next stands on its line. */
  marker(text: string): void;
  /** All that `body` writes has the style. */
  styled(style: Style, body: () => void): void;
  /** Lines that `body` starts begin with `indent`. */
  indented(indent: string, body: () => void): void;
  /** Code in a line. In a link it is only text: platforms allow no code in a link. */
  code(text: string): void;
  /** A block of code on lines of its own, without indent. */
  pre(text: string, language: string | undefined): void;
  attach(text: string, language: string | undefined): void;
  isOpen(kind: Style["kind"]): boolean;
  done(): StyledText;
}

interface Open {
  readonly style: Style;
  /** Undefined until something is written, so that breaks before it are not styled. */
  from: number | undefined;
}

interface State {
  text: string;
  readonly spans: StyledSpan[];
  readonly attached: Attached[];
  readonly open: Open[];
  readonly indents: string[];
  pending: number;
  atMarker: boolean;
}

export function makeWriter(): Writer {
  const state: State = { text: "", spans: [], attached: [], open: [], indents: [], pending: 0, atMarker: false };
  return {
    write: (text) => write(state, text),
    gap: (lines) => gap(state, lines),
    marker: (text) => {
      write(state, text);
      state.atMarker = true;
    },
    styled: (style, body) => styled(state, style, body),
    indented: (indent, body) => {
      state.indents.push(indent);
      body();
      state.indents.pop();
    },
    code: (text) =>
      isOpen(state, "link") ? write(state, text) : unmixed(state, { kind: "code" }, () => write(state, text)),
    pre: (text, language) => pre(state, text, { kind: "pre", language }),
    attach: (text, language) => {
      state.attached.push({ at: state.text.length, language, text });
      gap(state, 2);
    },
    isOpen: (kind) => isOpen(state, kind),
    // A span is closed after those inside it; of equal ones the outer is to come first.
    done: () => ({ text: state.text, spans: state.spans.toReversed(), attached: state.attached }),
  };
}

function write(state: State, text: string): void {
  if (text === "") return;
  const indent = state.indents.join("");
  breakLine(state, indent);
  openUp(state);
  state.text += indent === "" ? text : text.replaceAll("\n", `\n${indent}`);
}

function breakLine(state: State, indent: string): void {
  if (state.text === "") state.text = indent;
  else if (state.pending > 0) state.text += "\n".repeat(state.pending) + indent;
  state.pending = 0;
  state.atMarker = false;
}

function openUp(state: State): void {
  for (const one of state.open) one.from ??= state.text.length;
}

function gap(state: State, lines: number): void {
  if (state.text !== "" && !state.atMarker) state.pending = Math.max(state.pending, lines);
}

function styled(state: State, style: Style, body: () => void): void {
  if (isOpen(state, style.kind)) {
    body();
    return;
  }
  const open: Open = { style, from: undefined };
  state.open.push(open);
  body();
  state.open.pop();
  close(state, open);
}

function close(state: State, { style, from }: Open): void {
  const to = state.text.length;
  if (from !== undefined && to > from) state.spans.push({ from, to, whole: style.kind === "pre", style });
}

/** Nothing but a quote may hold code: the styles around it end before it and go on behind it. */
function unmixed(state: State, style: Style, body: () => void): void {
  const around = state.open.filter((one) => one.style.kind !== "quote").toReversed();
  for (const one of around) {
    close(state, one);
    one.from = undefined;
  }
  const open: Open = { style, from: undefined };
  const outer = state.open.splice(0);
  state.open.push(...outer.filter((one) => one.style.kind === "quote"), open);
  body();
  state.open.splice(0, state.open.length, ...outer);
  close(state, open);
}

function pre(state: State, text: string, style: Style): void {
  state.atMarker = false;
  gap(state, 1);
  const indents = state.indents.splice(0);
  unmixed(state, style, () => write(state, text));
  state.indents.push(...indents);
}

function isOpen(state: State, kind: Style["kind"]): boolean {
  return state.open.some(({ style }) => style.kind === kind);
}
