// Owns: what a home holds of a Telegram crash run: commands and parts by chat, read while no host runs or beside one.
import { withDatabase } from "./crash-checks.ts";

export interface PartRow {
  readonly id: number;
  readonly chat_key: string;
  readonly command: number | null;
  readonly part: number;
  readonly class: "answer" | "notice" | "failure";
  readonly text: string;
  readonly state: "ready" | "sending" | "sent" | "unknown" | "failed" | "held";
  readonly again: number;
  readonly not_before: number;
  readonly ext_id: string | null;
  readonly reason: string | null;
}

export interface CommandRow {
  readonly id: number;
  readonly state: string;
  readonly chat: string;
  readonly channel: string;
  readonly text: string;
}

export interface Rows {
  readonly commands: readonly CommandRow[];
  /** Of Telegram's chats, in the order in which they were placed. */
  readonly parts: readonly PartRow[];
  readonly integrity: string;
}

export function readRows(home: string): Rows {
  return withDatabase(home, (db) => ({
    commands: db.prepare("select * from commands order by id").all() as CommandRow[],
    parts: db.prepare("select * from outbox where chat_key like 'telegram:%' order by id").all() as PartRow[],
    integrity: String(db.pragma("integrity_check", { simple: true })),
  }));
}

const ENDED: ReadonlySet<string> = new Set(["done", "failed", "dead", "cancelled"]);
const IN_MOTION: ReadonlySet<string> = new Set(["ready", "sending"]);

/** Whether nothing more would happen by itself. */
export function isQuiet({ commands, parts }: Rows): boolean {
  return commands.every(({ state }) => ENDED.has(state)) && !parts.some(({ state }) => IN_MOTION.has(state));
}

/** The messages of a chat whose whole answer is out, as far as anybody can know. */
export function answered({ commands, parts }: Rows, chat: number): number {
  const moving = new Set(parts.filter(({ state }) => IN_MOTION.has(state)).map(({ command }) => command));
  return commands.filter((one) => one.chat === String(chat) && ENDED.has(one.state) && !moving.has(one.id)).length;
}
