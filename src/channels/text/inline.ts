// Owns: what stands within a line of Markdown (emphasis, code, links, images) as text with styles. A link that is not allowed is
// written out, never hidden. Knows no platform.
import type { MarkedToken, Tokens } from "marked";
import { known } from "./parse.ts";
import { withoutReferences } from "./references.ts";
import { makeWriter, type Writer } from "./styled.ts";

/** The address to link to, or undefined when there must be no link. */
export type LinkTarget = (href: string) => string | undefined;

interface Place {
  readonly writer: Writer;
  readonly target: LinkTarget;
}

export function writeInline(tokens: readonly MarkedToken[], place: Place): void {
  for (const token of tokens) writeOne(token, place);
}

/** The text alone, links written out: for where the platform allows no markup. */
export function plainInline(tokens: readonly MarkedToken[]): string {
  const writer = makeWriter();
  writeInline(tokens, { writer, target: () => undefined });
  return writer.done().text;
}

function writeOne(token: MarkedToken, place: Place): void {
  const { writer } = place;
  if (token.type === "strong") writer.styled({ kind: "bold" }, () => writeInline(known(token.tokens), place));
  else if (token.type === "em") writer.styled({ kind: "italic" }, () => writeInline(known(token.tokens), place));
  else if (token.type === "del") writer.styled({ kind: "strike" }, () => writeInline(known(token.tokens), place));
  else if (token.type === "codespan") writer.code(token.text);
  else if (token.type === "br") writer.write("\n");
  else if (token.type === "link" || token.type === "image") writeLink(token, place);
  else if (token.type === "text") writeText(token, place);
  else if (token.type === "escape") writer.write(token.text);
  else if (token.type !== "checkbox") writer.write(token.raw);
}

function writeText(token: Tokens.Text, place: Place): void {
  if (token.tokens !== undefined) writeInline(known(token.tokens), place);
  else place.writer.write(token.escaped === true ? token.text : withoutReferences(token.text));
}

function writeLink(token: Tokens.Link | Tokens.Image, { writer, target }: Place): void {
  const href = withoutReferences(token.href);
  const label = plainInline(known(token.tokens)).trim();
  const url = writer.isOpen("link") ? undefined : target(href);
  // A bare address stays text: every platform links it by itself, or for a good reason does not.
  if (token.type === "link" && token.autolink === true) writer.write(token.text);
  else if (label === "" || label === href) writer.write(href);
  else if (url !== undefined)
    writer.styled({ kind: "link", url }, () => writeInline(known(token.tokens), { writer, target }));
  else writeOut(known(token.tokens), label, href.replace(/^mailto:/i, ""), { writer, target });
}

function writeOut(tokens: readonly MarkedToken[], label: string, address: string, place: Place): void {
  writeInline(tokens, place);
  if (address !== "" && address !== label) place.writer.write(` (${address})`);
}
