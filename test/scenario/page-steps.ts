// Owns: what a person does on the page and waits to see there, and a model that answers piece by piece.
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { type ShownRow, shownRows } from "../support/browser.ts";
import { chunk, DONE, sendStream } from "../support/model-endpoint.ts";
import type { Behaviour } from "./puppet.ts";

/** Hang guard: nothing on the page takes as long, however slow the machine. */
export const WAIT = { timeout: 30_000 };

/** Opens the page for itself when it is let in. */
export async function isOpen(page: Page): Promise<void> {
  await page.locator("#chat").waitFor({ state: "visible" });
}

export async function say(page: Page, text: string): Promise<void> {
  await page.locator("#input").fill(text);
  await page.locator("#input").press("Enter");
}

/** The message of a person with these words, undefined when it is not there. */
export async function messageRow(page: Page, words: string): Promise<ShownRow | undefined> {
  return (await shownRows(page)).find((row) => row.kind === "person" && row.text === words);
}

/** What stands on the page in answer to a message. */
async function answers(page: Page, words: string): Promise<ShownRow[]> {
  const rows = await shownRows(page);
  const asked = rows.find((row) => row.kind === "person" && row.text === words);
  return rows.filter((row) => row.kind !== "person" && row.command !== undefined && row.command === asked?.command);
}

/** Waits until this and nothing else answers the message, to its end. */
export async function isAnswered(page: Page, words: string, text: string): Promise<void> {
  const answer = { kind: "answer", live: false, text };
  await expect.poll(() => answers(page, words), WAIT).toEqual([expect.objectContaining(answer)]);
}

/** Waits until this much of the answer has grown on the page, and nothing else answers the message. */
export async function isGrowing(page: Page, words: string, text: string): Promise<void> {
  const answer = { kind: "answer", live: true, text };
  await expect.poll(() => answers(page, words), WAIT).toEqual([expect.objectContaining(answer)]);
}

export async function allTexts(page: Page): Promise<string[]> {
  return (await shownRows(page)).map((row) => row.text);
}

/** The id of what has the focus; "" when that has none. */
export async function focused(page: Page): Promise<string> {
  return page.evaluate<string>("document.activeElement.id");
}

/** An answer in pieces: the first at once, each further one and the end when the test calls `next`. */
export function inSteps(...pieces: string[]): { behaviour: Behaviour; next(): void } {
  let credit = 0;
  let wake = Promise.withResolvers<void>();
  const behaviour: Behaviour = async (response) => {
    sendStream(response, chunk({ role: "assistant", content: "" }));
    for (const content of pieces) {
      response.write(chunk({ content }));
      while (credit === 0) await wake.promise;
      credit -= 1;
    }
    response.end(chunk({}, "stop") + DONE);
  };
  return {
    behaviour,
    next() {
      credit += 1;
      wake.resolve();
      wake = Promise.withResolvers();
    },
  };
}
