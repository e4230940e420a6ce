// Owns: the model's Markdown as messages for Telegram: plain text and entities, long code and overlong answers as files.
// Never HTML or Markdown for Telegram to parse, so that the text alone is always a message, whatever becomes of its markup (Q7.2).
import type { RenderedPart } from "../port.ts";
import { codeFileName } from "../text/code-name.ts";
import { flatten } from "../text/flatten.ts";
import { parseMarkdown } from "../text/parse.ts";
import { splitText } from "../text/split.ts";
import type { Attached, StyledSpan, StyledText } from "../text/styled.ts";
import { isShown } from "../text/visible.ts";
import { ROOM_UNITS } from "./again.ts";
import { entityOf, linkTarget, MAX_ENTITIES, type TelegramExtra } from "./entities.ts";

/** Code up to this length is read in the chat, as one or two messages; longer code is of more use as a file. */
const MAX_CODE_UNITS = 6_000;
/** An answer of more messages floods the chat: it goes as a file. */
const MAX_PARTS = 20;
/** A text of this length gives more than `MAX_PARTS`, or is code that is better a file: it is not parsed. */
const MAX_PARSED_UNITS = 120_000;

const WHOLE_ANSWER_NAME = "answer.md";
const ATTACHED_NOTE = `(Too long for the chat: the whole answer is attached as ${WHOLE_ANSWER_NAME}.)`;
const LIMITS = { units: ROOM_UNITS, spans: MAX_ENTITIES };

/**
 * The messages of an answer, in order, none blank, each within Telegram's limits; none for a text in which nothing can be seen.
 * `extra` is JSON of `telegramExtra`. Pure and synchronous; never throws, also for text that is made to be hard (Q7.1).
 */
export function renderTelegram(markdown: string): readonly RenderedPart[] {
  // Telegram refuses half surrogates, and takes carriage returns out.
  const source = markdown.toWellFormed().replace(/\r\n?/g, "\n");
  if (!isShown(source)) return [];
  if (source.length > MAX_PARSED_UNITS) return asFile(source, styledOf(source.slice(0, 2 * ROOM_UNITS).toWellFormed()));
  const read = styledOf(source);
  // Of nothing but markup, such as an empty block of code: better shown as it is than a silence.
  const styled = isShown(read.text) || read.attached.length > 0 ? read : plain(source);
  const parts = partsOf(styled);
  return parts.length > MAX_PARTS ? asFile(source, styled) : parts;
}

function styledOf(source: string): StyledText {
  const blocks = parseMarkdown(source);
  return blocks === undefined ? plain(source) : flatten(blocks, { target: linkTarget, maxCodeUnits: MAX_CODE_UNITS });
}

function plain(text: string): StyledText {
  return { text, spans: [], attached: [] };
}

function partsOf({ text, spans, attached }: StyledText): RenderedPart[] {
  const parts: RenderedPart[] = [];
  let from = 0;
  attached.forEach((file, index) => {
    parts.push(...messages(text, spans, from, file.at), codeFile(file, index + 1));
    from = file.at;
  });
  return [...parts, ...messages(text, spans, from, text.length)];
}

function messages(text: string, spans: readonly StyledSpan[], from: number, to: number): RenderedPart[] {
  const within = spans
    .filter((span) => span.from < to && span.to > from)
    .map((span) => ({ ...span, from: Math.max(span.from, from) - from, to: Math.min(span.to, to) - from }));
  return splitText(text.slice(from, to), within, LIMITS).map((piece) => ({
    text: piece.text,
    extra: piece.spans.length === 0 ? undefined : extraOf({ entities: piece.spans.map(entityOf) }),
  }));
}

function codeFile({ text, language }: Attached, number: number): RenderedPart {
  return { text, extra: extraOf({ file: { name: codeFileName(number, language) } }) };
}

/** The start of the answer, told to be only that, and the source as a file. */
function asFile(source: string, { text, spans, attached }: StyledText): RenderedPart[] {
  // Only the first message of it is used: there is no need to cut up the rest.
  const to = Math.min(attached[0]?.at ?? text.length, 4 * ROOM_UNITS);
  const units = ROOM_UNITS - ATTACHED_NOTE.length - 2;
  const within = spans.filter((span) => span.from < to).map((span) => ({ ...span, to: Math.min(span.to, to) }));
  const [first] = splitText(text.slice(0, to), within, { units, spans: MAX_ENTITIES });
  const entities = first?.spans.map(entityOf) ?? [];
  return [
    {
      text: first === undefined ? ATTACHED_NOTE : `${first.text}\n\n${ATTACHED_NOTE}`,
      extra: entities.length === 0 ? undefined : extraOf({ entities }),
    },
    { text: source, extra: extraOf({ file: { name: WHOLE_ANSWER_NAME } }) },
  ];
}

function extraOf(extra: TelegramExtra): string {
  return JSON.stringify(extra);
}
