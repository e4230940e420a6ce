// Owns: turning the events of a chat into text on the screen: answers that grow, parts shown once, what runs.
// Never calls the host.
import { visible } from "../../kernel/visible.ts";
import { clipTo } from "../../kernel/width.ts";
import type { Item, PartItem } from "../host/replies.ts";
import { paint } from "../print/paint.ts";
import { textLines } from "../print/text.ts";
import type { Output } from "../shell.ts";
import type { Unread } from "./chat.ts";
import { makeGrowing } from "./growing.ts";
import type { Screen } from "./screen.ts";
import type { ChatEvent } from "./wire.ts";

export interface View {
  /** Shows what an event brings. The next one may come only after this has resolved. */
  take(event: ChatEvent): Promise<void>;
  showUnread(unread: Unread): Promise<void>;
  /** The newest row seen: where a new stream goes on. */
  cursor(): number;
  /** A message of this terminal was accepted. */
  asked(command: number, text: string): void;
  /** The commands of this chat that have not ended. */
  busy(): readonly number[];
}

interface ViewDeps {
  readonly screen: Screen;
  readonly out: Output;
  /** Every part up to this row is on the screen. */
  readonly onShown: (seq: number) => void;
}

const BUSY = ["queued", "running", "waiting", "absorbed"];

export function makeView({ screen, out, onShown }: ViewDeps): View {
  const shown = new Set<number>();
  const questions = new Map<number, string>();
  const busy = new Set<number>();
  const growing = makeGrowing(screen, out);
  let cursor = 0;
  let lastAsked = 0;
  let lastNote = "";

  async function showPart(part: PartItem): Promise<void> {
    if (shown.has(part.seq)) return;
    shown.add(part.seq);
    if (part.class === "answer" && growing.command() !== undefined && growing.command() === part.command) {
      await growing.finish(part.text);
    } else {
      await growing.end();
      await quote(part.command);
      await screen.say(partText(out, part));
    }
    onShown(part.seq);
  }

  /** Names the question when it is not the one that was asked last. */
  async function quote(command: number | undefined): Promise<void> {
    const question = command === undefined ? undefined : questions.get(command);
    if (question === undefined || command === lastAsked) return;
    await screen.say(paint(out, "dim", clipTo(`↳ ${visible(question.trim())}`, (out.columns() ?? 80) - 1)));
  }

  async function grow(command: number, text: string, anew: boolean): Promise<void> {
    if (anew || growing.command() !== command) {
      if (growing.isSeen()) await growing.end(anew ? "(begins anew)" : "");
      growing.begin(command);
      lastNote = "";
      if (text !== "") await quote(command);
    }
    await growing.add(text);
  }

  async function showNote(note: string): Promise<void> {
    if (note === lastNote) return;
    lastNote = note;
    await screen.say(paint(out, "dim", `· ${visible(note)}`));
  }

  async function setState(command: number, state: string): Promise<void> {
    if (BUSY.includes(state)) busy.add(command);
    else busy.delete(command);
    const isOver = !BUSY.includes(state) && growing.command() === command;
    if (isOver) await growing.end(state === "done" ? "" : `(${visible(state)})`);
  }

  async function takeItem(item: Item): Promise<void> {
    cursor = Math.max(cursor, item.seq);
    if (item.kind === "part") return showPart(item);
    questions.set(item.command, item.text);
    await setState(item.command, item.state);
  }

  function beginStream(latest: number | undefined): void {
    busy.clear();
    if (latest === undefined || latest >= cursor) return;
    // The rows are not those that were known: a backup was restored, and its numbers end lower.
    cursor = latest;
    shown.clear();
  }

  return {
    async take(event) {
      switch (event.type) {
        case "item":
          return takeItem(event.item);
        case "state":
          return setState(event.command, event.state);
        case "stream":
          return grow(event.command, event.text, true);
        case "delta":
          return grow(event.command, event.text, false);
        case "note":
          return showNote(event.note);
        case "host":
          return beginStream(event.latest);
      }
    },
    async showUnread(unread) {
      cursor = Math.max(cursor, unread.newest);
      for (const [command, text] of unread.questions) questions.set(command, text);
      if (unread.parts.length > 0) await screen.say(paint(out, "dim", "While you were away:"));
      for (const part of unread.parts) await showPart(part);
    },
    cursor: () => cursor,
    asked(command, text) {
      questions.set(command, text);
      lastAsked = Math.max(lastAsked, command);
    },
    busy: () => [...busy],
  };
}

function partText(out: Output, part: PartItem): string {
  const text = textLines(part.text);
  if (part.class === "answer") return text;
  return paint(out, part.class === "failure" ? "red" : "cyan", text);
}
