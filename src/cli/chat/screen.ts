// Owns: the terminal of a conversation: a prompt at the bottom, finished text above it, and a text that grows.
// While a text grows the prompt is hidden; a key brings it back, and the text then goes on line by line above it.
// Knows nothing of what the texts mean.
import { clearScreenDown, createInterface, cursorTo, type Interface, moveCursor } from "node:readline";
import { Writable } from "node:stream";
import { paint } from "../print/paint.ts";
import type { Output, TerminalInput } from "../shell.ts";

export interface Screen {
  /** Writes whole lines above the prompt. Resolves when the terminal has taken them. */
  say(text: string): Promise<void>;
  /** Adds to the growing text. */
  grow(text: string): Promise<void>;
  /** Ends the growing text, if there is one. */
  settle(): Promise<void>;
  /** Gives the terminal back. */
  close(): void;
}

interface ScreenDeps {
  readonly input: TerminalInput;
  readonly out: Output;
  readonly on: {
    /** A message; one that was pasted can have several lines. */
    message(text: string): void;
    /** Ctrl-C with nothing typed; what was typed is only cleared. */
    interrupt(): void;
    /** Ctrl-D, or the terminal is gone. */
    left(): void;
  };
}

const PASTE_ON = "\x1b[?2004h";
const PASTE_OFF = "\x1b[?2004l";

export function makeScreen({ input, out, on }: ScreenDeps): Screen {
  let hidden = false;
  let closed = false;
  let atLineStart = true;
  let isGrowing = false;
  /** Of the growing text: what waits for its line to end, while somebody types. */
  let held = "";
  const echo = echoTo(out, () => hidden);
  const rl = createInterface({
    input,
    output: echo,
    terminal: true,
    prompt: paint(out, "bold", "> "),
    historySize: 500,
  });

  const erasePrompt = () => {
    moveCursor(out.stream, 0, -rl.getCursorPos().rows);
    cursorTo(out.stream, 0);
    clearScreenDown(out.stream);
  };
  const drawPrompt = () => {
    if (closed) return;
    // The prompt begins anew, below the text: no row of it is above the cursor.
    Object.assign(rl, { prevRows: 0 });
    rl.prompt(true);
  };
  const unhide = () => {
    if (!atLineStart) out.stream.write("\n");
    atLineStart = true;
    hidden = false;
    drawPrompt();
  };

  const say = async (text: string) => {
    if (!hidden) erasePrompt();
    const written = out.write(`${hidden && !atLineStart ? "\n" : ""}${text}\n`);
    atLineStart = true;
    if (!hidden) drawPrompt();
    await written;
  };

  const typed = () => {
    if (!hidden) keepInStep(rl, out);
    else if (rl.line !== "") unhide();
  };

  readMessages(rl, input, { ...on, typed });
  out.stream.write(PASTE_ON);
  rl.prompt();

  return {
    say,
    async grow(text) {
      isGrowing = true;
      if (!hidden && rl.line === "") {
        erasePrompt();
        hidden = true;
        atLineStart = true;
      }
      if (hidden) {
        const all = held + text;
        held = "";
        if (all !== "") atLineStart = all.endsWith("\n");
        return out.write(all);
      }
      held += text;
      const end = held.lastIndexOf("\n");
      if (end < 0) return;
      const lines = held.slice(0, end);
      held = held.slice(end + 1);
      await say(lines);
    },
    async settle() {
      if (!isGrowing) return;
      isGrowing = false;
      const last = held;
      held = "";
      if (last !== "") await say(last);
      if (hidden) unhide();
    },
    close() {
      if (closed) return;
      closed = true;
      if (hidden && !atLineStart) out.stream.write("\n");
      else if (!hidden) erasePrompt();
      out.stream.write(PASTE_OFF);
      rl.close();
    },
  };
}

/**
 * Of a piece of several characters, as a paste is, readline only writes each one where the cursor is: it neither notes that
 * a row was filled nor moves on what follows. Before it draws again both must agree, or it writes over the text above.
 */
function keepInStep(rl: Interface, out: Output): void {
  const { rows, cols } = rl.getCursorPos();
  // After a row that is exactly full the terminal stays in it until the next character comes.
  if (cols === 0 && rows > 0) out.stream.write(" \r");
  Object.assign(rl, { prevRows: rows });
  if (rl.cursor < rl.line.length) rl.prompt(true);
}

/** What readline draws reaches the terminal unless the prompt is hidden. */
function echoTo(out: Output, isHidden: () => boolean): Writable {
  const echo = new Writable({
    write(chunk: Buffer, _encoding, done) {
      if (!isHidden()) out.stream.write(chunk);
      done();
    },
  });
  Object.defineProperty(echo, "columns", { get: () => out.columns() });
  out.stream.on("resize", () => echo.emit("resize"));
  return echo;
}

/** Enter sends; line ends within a paste do not (bracketed paste, as xterm defines it). */
function readMessages(rl: Interface, input: TerminalInput, on: ScreenDeps["on"] & { typed(): void }): void {
  let pasting = false;
  let pasted: string[] = [];
  rl.on("line", (line) => {
    pasted.push(line);
    if (pasting) return;
    const text = pasted.join("\n");
    pasted = [];
    rl.prompt();
    on.message(text);
  });
  // After readline's own listener, so that `rl.line` holds what the key made of it.
  input.on("keypress", (_text, key: { name?: string } | undefined) => {
    if (key?.name === "paste-start") pasting = true;
    if (key?.name === "paste-end") pasting = false;
    on.typed();
  });
  rl.on("SIGINT", () => {
    const hadText = rl.line !== "" || pasted.length > 0;
    pasted = [];
    pasting = false;
    rl.write(null, { ctrl: true, name: "e" });
    rl.write(null, { ctrl: true, name: "u" });
    if (!hadText) on.interrupt();
  });
  rl.on("close", on.left);
}
