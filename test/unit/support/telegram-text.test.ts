// Proves which texts and entities the fake of Telegram's Bot API takes and which it refuses.
import type { MessageEntity } from "grammy/types";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { raw } from "../../support/telegram/raw.ts";
import { type FakeTelegram, startTelegram } from "../../support/telegram/telegram.ts";

let fake: FakeTelegram;
let chat_id: number;
beforeAll(async () => {
  fake = await startTelegram();
  chat_id = fake.privateChat(fake.user({ id: 1, name: "Ann" })).id;
});
afterAll(() => fake.stop());

/** What became of a text: how it is shown, or the refusal, which must be written down too. */
async function send(text: string, more: object = {}) {
  const before = fake.violations.length;
  const { status, description, result } = await raw(fake, "sendMessage", { chat_id, text, ...more });
  expect(fake.violations.length - before).toBe(status === 200 ? 0 : 1);
  return status === 200 ? { text: result.text, entities: result.entities ?? [] } : { refused: description };
}

const withEntities = (text: string, ...entities: (Omit<MessageEntity, "type"> & { type: string })[]) =>
  send(text, { entities });
const unparsable = (why: string) => ({ refused: expect.stringMatching(`can't parse entities: .*${why}`) });

describe("texts", () => {
  test("4096 UTF-16 units are taken, one more is not, white space at the ends aside", async () => {
    expect(await send(`\n ${"😀".repeat(2048)} \n`)).toEqual({ text: "😀".repeat(2048), entities: [] });
    expect(await send(`${"😀".repeat(2048)}x`)).toEqual({ refused: "Bad Request: message is too long" });
    for (const empty of ["", " \n\t"])
      expect(await send(empty)).toEqual({ refused: "Bad Request: message text is empty" });
  });

  test("half a character is refused", async () => {
    expect(await send("a\ud83d")).toEqual({ refused: expect.stringContaining("encoded in UTF-8") });
  });

  test("a parse mode that the fake cannot read is refused rather than passed", async () => {
    expect(await send("*a*", { parse_mode: "MarkdownV2" })).toEqual({ refused: "Bad Request: unsupported parse_mode" });
  });
});

describe("entities", () => {
  test("those that fit are shown, moved with the text when it is trimmed", async () => {
    const shown = await withEntities(
      "  bold 😀",
      { type: "bold", offset: 0, length: 6 },
      { type: "italic", offset: 7, length: 2 },
    );
    expect(shown).toEqual({
      text: "bold 😀",
      entities: [
        { type: "bold", offset: 0, length: 4 },
        { type: "italic", offset: 5, length: 2 },
      ],
    });
  });

  test.each([
    ["outside the text", [{ type: "bold", offset: 3, length: 3 }], "ENTITY_BOUNDS_INVALID"],
    ["empty", [{ type: "bold", offset: 1, length: 0 }], "ENTITY_BOUNDS_INVALID"],
    ["before the text", [{ type: "bold", offset: -1, length: 2 }], "non-negative"],
    ["not whole", [{ type: "bold", offset: 0.5, length: 2 }], "non-negative"],
    ["of no known type", [{ type: "shiny", offset: 0, length: 2 }], "unsupported entity type"],
    ["beginning in a pair", [{ type: "bold", offset: 1, length: 2 }], "beginning in the middle"],
    ["ending in a pair", [{ type: "bold", offset: 0, length: 1 }], "ending in the middle"],
    ["a link without address", [{ type: "text_link", offset: 0, length: 2 }], "needs a url"],
    ["a mention without person", [{ type: "text_mention", offset: 0, length: 2 }], "needs a user"],
    ["no object", ["bold"], "must be an Object"],
    ["no list", {}, "expected an Array"],
  ])("one that is %s is refused", async (_, entities, why) => {
    expect(await send("😀abc", { entities })).toEqual(unparsable(why));
  });

  const at = (type: string, offset: number, length: number) => ({
    type,
    offset,
    length,
    ...(type === "text_link" && { url: "https://a.example" }),
  });
  test.each([
    ["styles in each other", at("bold", 0, 8), at("italic", 0, 8)],
    ["a style in a link", at("text_link", 0, 8), at("bold", 2, 2)],
    ["a link in a style", at("bold", 0, 8), at("text_link", 2, 2)],
    ["code in a quotation", at("blockquote", 0, 8), at("pre", 2, 4)],
    ["a link that is all of a quotation", at("blockquote", 0, 8), at("text_link", 0, 8)],
    ["neighbours", at("pre", 0, 4), at("code", 4, 4)],
  ])("%s is taken", async (_, outer, inner) => {
    expect(await withEntities("abcdefgh", inner, outer)).toEqual({
      text: "abcdefgh",
      entities: expect.toSatisfy((shown: unknown[]) => shown.length === 2),
    });
  });

  test.each([
    ["a style in code", at("code", 0, 8), at("bold", 2, 2)],
    ["code in a style", at("bold", 0, 8), at("code", 2, 2)],
    ["a link in code", at("pre", 0, 8), at("text_link", 2, 2)],
    ["a link in a link", at("text_link", 0, 8), at("text_link", 2, 2)],
    ["a quotation in a quotation", at("blockquote", 0, 8), at("expandable_blockquote", 2, 2)],
    ["crossing styles", at("bold", 0, 5), at("italic", 3, 5)],
  ])("%s is refused", async (_, outer, inner) => {
    expect(await withEntities("abcdefgh", outer, inner)).toEqual(unparsable("(inside|cross)"));
  });
});

describe("HTML", () => {
  const html = (text: string) => send(text, { parse_mode: "HTML" });

  test("tags become entities and escapes their characters; the length counts without them", async () => {
    expect(await html('<b>a &lt; <i>b</i></b> <a href="https://a.example/?x=1&amp;y">c</a>')).toEqual({
      text: "a < b c",
      entities: [
        { type: "bold", offset: 0, length: 5 },
        { type: "italic", offset: 4, length: 1 },
        { type: "text_link", url: "https://a.example/?x=1&y", offset: 6, length: 1 },
      ],
    });
    expect(await html('<pre><code class="language-ts">x</code></pre><blockquote expandable>q</blockquote>')).toEqual({
      text: "xq",
      entities: [
        { type: "pre", language: "ts", offset: 0, length: 1 },
        { type: "expandable_blockquote", offset: 1, length: 1 },
      ],
    });
    expect(await html(`<b>${"x".repeat(4096)}</b>`)).toMatchObject({ entities: [{ length: 4096 }] });
    expect(await html("&#x1F600;&#65;&nbsp;")).toEqual({ text: "😀A&nbsp;", entities: [] });
  });

  test.each([
    ["an open tag", "<b>a", "can't find end tag"],
    ["a crossed tag", "<b><i>a</b></i>", "unmatched end tag"],
    ["an end without beginning", "a</b>", "unmatched end tag"],
    ["a foreign tag", "<div>a</div>", "unsupported start tag"],
    ["a bare <", "1 < 2", "unsupported start tag"],
    ["an unfinished tag", "a <b", "unsupported start tag"],
    ["a style in code", "<code><b>a</b></code>", "inside"],
  ])("%s is refused", async (_, text, why) => {
    expect(await html(text)).toEqual(unparsable(why));
  });
});
