// Owns: a terminal for tests: it understands what readline and the screen write, and shows what a person would see.
import { Writable } from "node:stream";

export interface Terminal {
  readonly stream: Writable & { readonly isTTY: true; readonly columns: number };
  /** The lines from the first on, as they stand now, without blanks at their ends. */
  lines(): string[];
  /** Row and column of the cursor, from 0. */
  cursor(): [row: number, column: number];
}

const ESC = String.fromCharCode(27);
/** A control sequence (ECMA-48), or one character. */
const TOKEN = new RegExp(`${ESC}\\[([?\\d;]*)([A-Za-z])|[\\s\\S]`, "gu");

export function terminal(columns: number): Terminal {
  const rows: string[][] = [[]];
  let row = 0;
  let column = 0;

  const rowNow = (): string[] => {
    while (rows.length <= row) rows.push([]);
    return rows[row]!;
  };
  const newLine = () => {
    row += 1;
    column = 0;
    rowNow();
  };
  const put = (character: string) => {
    // Only the next character leaves a row that is full.
    if (column >= columns) newLine();
    const line = rowNow();
    while (line.length < column) line.push(" ");
    line[column] = character;
    column += 1;
  };
  const moves: Record<string, (count: number) => void> = {
    A: (count) => {
      row = Math.max(0, row - count);
    },
    B: (count) => {
      row += count;
    },
    C: (count) => {
      column += count;
    },
    D: (count) => {
      column = Math.max(0, column - count);
    },
    G: (count) => {
      column = count - 1;
    },
    J: () => {
      rowNow().length = Math.min(rowNow().length, column);
      rows.length = row + 1;
    },
    m: () => {},
    h: () => {},
    l: () => {},
  };
  const plain = (character: string) => {
    if (character === "\n") newLine();
    else if (character === "\r") column = 0;
    else put(character);
  };
  const take = (text: string) => {
    for (const [all, count, name] of text.matchAll(TOKEN)) {
      if (name === undefined) plain(all);
      else moves[name]!(Number(count?.replace("?", "") || "1"));
    }
  };
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      take(chunk.toString());
      done();
    },
  });
  return {
    stream: Object.assign(stream, { isTTY: true as const, columns }),
    lines: () =>
      rows.map((line) =>
        Array.from(line, (character) => character ?? " ")
          .join("")
          .trimEnd(),
      ),
    cursor: () => [row, column],
  };
}
