// Owns: from YAML text to plain values that know their line, within limits that no text can exceed (SUP-R3).
// Never knows a setting; no message holds text of the file, since that may be a secret.
import { Composer, type CST, type Document, Lexer, LineCounter, Parser, type YAMLError } from "yaml";
import type { Env } from "./env.ts";
import { hideBraces } from "./expand.ts";
import type { Path } from "./known-keys.ts";
import type { Finding, Problem } from "./problems.ts";
import { MAX_DEPTH, type Position, type Spot, valuesOf } from "./yaml-values.ts";

/** Far above any real settings, and low enough that the worst text of this size is refused within a second. */
const MAX_TOKENS = 50_000;
const MAX_LISTED = 20;

export interface YamlText {
  readonly root: unknown;
  /** The file is not YAML: nothing else was looked at. */
  readonly syntax: readonly Problem[];
  readonly findings: readonly Finding[];
  /** The spot of a place, or of the nearest place around it. */
  readonly spot: (path: Path) => Spot | undefined;
}

/** Reads YAML and replaces `${NAME}`. An empty value counts as absent. Never throws. */
export function readYaml(source: string, env: Env): YamlText {
  const lines = new LineCounter();
  const position = (offset: number): Position => {
    const found = lines.linePos(offset);
    return { line: Math.max(1, found.line), column: Math.max(1, found.col) };
  };
  const parsed = parse(hideBraces(source), lines);
  if ("refused" in parsed) return withoutRoot([{ path: "", message: parsed.refused }]);
  const faults = [...parsed.document.errors, ...parsed.document.warnings];
  if (faults.length > 0) return withoutRoot(faultProblems(faults, position));
  const { root, findings, spot } = valuesOf(parsed.document.contents, { env, position });
  return { root: root ?? {}, syntax: [], findings, spot };
}

function withoutRoot(syntax: Problem[]): YamlText {
  return { root: {}, syntax, findings: [], spot: () => undefined };
}

type Parsed = { document: Document.Parsed } | { refused: string };

function parse(source: string, lines: LineCounter): Parsed {
  try {
    return parseWithin(source, lines);
  } catch {
    // The library reports faults and does not throw; if it ever does, its sentence could quote the file.
    return { refused: "this is not YAML that can be read" };
  }
}

function parseWithin(source: string, lines: LineCounter): Parsed {
  const parser = new Parser(lines.addNewLine);
  const tokens: CST.Token[] = [];
  let count = 0;
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(source)) {
    tokens.push(...parser.next(lexeme));
    if (++count > MAX_TOKENS) return { refused: `expected at most ${MAX_TOKENS} YAML tokens` };
    if (parser.stack.length > MAX_DEPTH) return { refused: `expected at most ${MAX_DEPTH} levels` };
  }
  tokens.push(...parser.end());
  // Looking for keys that come twice is quadratic in the library, so the walk does it.
  const composer = new Composer({ schema: "core", uniqueKeys: false, prettyErrors: false, logLevel: "silent" });
  const documents = [...composer.compose(tokens, true, source.length)];
  const document = documents[0];
  if (document === undefined || documents.length > 1)
    return { refused: "expected one YAML document, but there are several" };
  return { document };
}

function faultProblems(faults: YAMLError[], position: (offset: number) => Position): Problem[] {
  const listed = faults.slice(0, MAX_LISTED).map((fault): Problem => {
    return {
      path: "",
      ...position(fault.pos[0]),
      message: `not valid YAML: ${FAULT_TEXTS[fault.code] ?? fault.message}`,
    };
  });
  const more = faults.length - listed.length;
  return more === 0 ? listed : [...listed, { path: "", message: `and ${more} more of this kind` }];
}

/** The library's own sentences for these quote the file, or help nobody. */
const FAULT_TEXTS: Readonly<Partial<Record<YAMLError["code"], string>>> = {
  BAD_ALIAS: "a text that begins with * needs quotes",
  BAD_DIRECTIVE: "a line that begins with % needs quotes",
  BAD_DQ_ESCAPE: "unknown escape after a backslash; write the text in single quotes",
  BLOCK_AS_IMPLICIT_KEY: "a second key on the same line; a text that holds a colon and a blank needs quotes",
  IMPOSSIBLE: "this cannot be read",
  RESOURCE_EXHAUSTION: "too many levels",
  TAG_RESOLVE_FAILED: "tags are not allowed; a text that begins with ! needs quotes",
  UNEXPECTED_TOKEN: "something here does not belong; is a bracket, a quote or an indentation wrong?",
};
