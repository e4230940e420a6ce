// Owns: what must be true of a home, of clients and of the model after hosts have died: nothing lost, nothing answered twice,
// parts in order, nothing half. Each check answers with what is wrong; it changes nothing.
import Database from "better-sqlite3";
import type { Client } from "./crash-clients.ts";
import type { EchoModel } from "./echo-model.ts";

export interface Sent {
  readonly text: string;
  /** The client that was shown the answer, where one watched. */
  readonly client?: Client;
  /** Somebody may have stopped it: then it is cancelled without an answer, or answered. */
  readonly mayStop?: boolean;
}

interface CommandRow {
  readonly id: number;
  readonly state: string;
  readonly kind: string;
  readonly text: string;
  readonly finished_at: number | null;
  readonly claim: number;
  readonly strikes: number;
}

/** Looks at the database of a home on which no host runs. */
export function withDatabase<T>(home: string, look: (db: Database.Database) => T): T {
  // Read only: otherwise closing it would copy the log into the file, which is for the next host to do.
  const db = new Database(`${home}/laneway.db`, { readonly: true });
  try {
    return look(db);
  } finally {
    db.close();
  }
}

export function commandsOf(db: Database.Database): CommandRow[] {
  return db.prepare("select * from commands order by id").all() as CommandRow[];
}

/** What people saw: each answer once, in the order of the messages of its chat. */
export function checkShown(sent: readonly Sent[]): string[] {
  const wrong: string[] = [];
  for (const client of new Set(sent.flatMap((one) => one.client ?? []))) {
    const expected = sent.filter((one) => one.client === client).map((one) => one.text);
    const answered = client.shown.map((text) => text.slice(text.indexOf("echo: ") + "echo: ".length).trim());
    for (const text of expected) {
      const times = answered.filter((one) => one === text).length;
      if (times !== 1) wrong.push(`${client.door}: "${text}" was answered ${times} times`);
    }
    const order = answered.filter((text) => expected.includes(text));
    // API requests are open side by side, so their responses may overtake each other; their turns may not (checkRows).
    if (client.door !== "api" && order.join("|") !== expected.filter((text) => order.includes(text)).join("|")) {
      wrong.push(`${client.door}: answers came out of order: ${order.join(" | ")}`);
    }
  }
  return wrong;
}

/** What the database holds when all work has ended. */
export function checkRows(home: string, sent: readonly Sent[]): string[] {
  return withDatabase(home, (db) => {
    const commands = commandsOf(db);
    const mayStop = new Set(sent.filter((one) => one.mayStop === true).map((one) => one.text));
    const wrong = [...wholeness(db), ...transcriptOrder(db)];
    for (const { id, state, text } of commands) {
      if (state !== "done" && !(state === "cancelled" && mayStop.has(text)))
        wrong.push(`command ${id} ("${text}") is ${state}`);
    }
    for (const { text } of sent) {
      const rows = commands.filter((command) => command.text === text).length;
      if (rows !== 1) wrong.push(`"${text}" has ${rows} commands`);
    }
    return wrong;
  });
}

/** What is true at any moment, also on the data of a host that has just died: no commit stands there in part. */
export function checkWhole(home: string): string[] {
  return withDatabase(home, wholeness);
}

function wholeness(db: Database.Database): string[] {
  const integrity = String(db.pragma("integrity_check", { simple: true }));
  const wrong = integrity === "ok" ? [] : [`integrity: ${integrity}`];
  const parts = db.prepare("select text from outbox where command = ?").pluck();
  const keys = db.prepare("select count(*) from inbox where command = ?").pluck();
  for (const { id, state, kind, text } of commandsOf(db)) {
    const told = parts.all(id).map(String);
    const due = state === "done" ? 1 : 0;
    if (told.length !== due) wrong.push(`command ${id} ("${text}") is ${state} with ${told.length} parts`);
    if (kind === "message" && told.some((part) => part !== `echo: ${text}`))
      wrong.push(`command ${id} ("${text}") was answered ${JSON.stringify(told)}`);
    if (keys.get(id) !== 1) wrong.push(`command ${id} ("${text}") has ${String(keys.get(id))} keys`);
  }
  return wrong;
}

function transcriptOrder(db: Database.Database): string[] {
  const users = db.prepare("select session, command from messages where role = 'user' order by id").all() as {
    session: string;
    command: number;
  }[];
  return [...new Set(users.map((row) => row.session))].flatMap((session) => {
    const order = users.filter((row) => row.session === session).map((row) => row.command);
    const ordered = order.every((id, i) => id > (order[i - 1] ?? 0));
    return ordered ? [] : [`transcript of ${session} is out of order: ${order.join(" ")}`];
  });
}

/** What the model saw: no request holds a message twice. */
export function checkRequests(model: EchoModel): string[] {
  const wrong: string[] = [];
  for (const messages of model.requests) {
    const users = messages.filter((message) => message.role === "user").map((message) => message.content);
    if (new Set(users).size !== users.length) wrong.push(`a request held a message twice: ${users.join(" | ")}`);
  }
  return wrong;
}
