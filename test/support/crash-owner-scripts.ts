// Owns: scripts about what people command: chat commands, the owner's verbs, and a disk that cannot be written for a while.
import Database from "better-sqlite3";
import { commandsOf, withDatabase } from "./crash-checks.ts";
import { asked, HALF_DONE, type Script, STUCK, times } from "./crash-scene.ts";

/** Chat commands: effect and reply are one commit, and a repeat of the same key finds both. */
export const chatCommands: Script = {
  reaches: times("accept-control", 3),
  async act({ person, model, sent }) {
    const stuck = `never answered ${STUCK}`;
    const texts = ["before", "/status", "/new", "after", stuck, "/stop"];
    sent.push(...texts.map((text) => ({ text, mayStop: text === stuck })));
    for (const text of texts) {
      const command = await person.send("chat", text);
      if (text === stuck) await person.until(() => asked(model, stuck).length > 0);
      else await person.ended(command);
    }
  },
  check({ home, model }) {
    const replies = withDatabase(home, (db) => {
      const find = db.prepare(
        "select group_concat(outbox.text) from outbox join commands on commands.id = command where commands.text = ?",
      );
      return ["/status", "/new", "/stop"].map((text) => String(find.pluck().get(text)));
    });
    const expected = [/^Laneway \S+, up /, /^A new conversation begins here\.$/, /^Stopped: 1 (running|waiting)\.$/];
    const wrong = replies.filter((reply, i) => expected[i]?.test(reply) !== true).map((reply) => `replied "${reply}"`);
    const seen = model.requests.filter((request) => request.at(-1)?.content === "after");
    if (seen.some((request) => request.some((one) => one.content === "before")))
      wrong.push("the new conversation began with the old one");
    return wrong;
  },
};

const QUEUED = "queued";

/** A stranger is refused; the owner stops a queued message and a running one, and wants the first one again. */
export const owner: Script = {
  reaches: ["audit#1", "audit#2", "cancel#1", "audit#3", "cancel#2", "audit#4"],
  async act({ address, person, model, sent }, doomed) {
    const host = await doomed;
    await fetch(`${address}/api/status`, { method: "POST", headers: { authorization: "Bearer wrong" } });
    const ask = async (text: string) => {
      const { command } = (await host.api("send", { chat: "owner", text, key: text })).body;
      sent.push({ text, mayStop: true });
      return Number(command);
    };
    const running = await ask(HALF_DONE);
    const queued = await ask(QUEUED);
    await person.until(() => asked(model, HALF_DONE).length > 1);
    await host.api("queue.cancel", { id: queued });
    await host.api("queue.cancel", { id: running });
    await host.api("queue.retry", { id: queued });
  },
  check: ({ home, model }, happened) =>
    withDatabase(home, (db) => {
      const due = happened.flatMap((at) => AUDITED[at] ?? []);
      const stopped = (at: string) => (happened.includes(at) ? "cancelled" : "done");
      return [
        ...checkAudit(db, due),
        ...checkEnd(db, QUEUED, stopped("cancel#1")),
        ...checkEnd(db, HALF_DONE, stopped("cancel#2")),
        ...(asked(model, HALF_DONE).filter((role) => role === "user").length > 1
          ? ["a finished step was repeated"]
          : []),
      ];
    }),
};

/** The audit trail as it must stand: a row for all that was done, and none for what was not begun (G26). */
function checkAudit(db: Database.Database, due: readonly string[]): string[] {
  const actions = db.prepare("select action from audit order by id").pluck().all();
  return actions.join() === due.join() ? [] : [`the audit holds ${actions.join()} instead of ${due.join()}`];
}

/** Cancelled or answered as a whole. No row: the host died before the message was sent. */
function checkEnd(db: Database.Database, text: string, state: string): string[] {
  const roles = db.prepare("select role from messages where command = ? order by n").pluck();
  return commandsOf(db)
    .filter((row) => row.text === text)
    .flatMap((row) => {
      const last = roles.all(row.id).at(-1);
      // A stopped turn stays in the transcript with a note; one that never began leaves nothing.
      const due = row.state === "done" ? "assistant" : text === QUEUED ? undefined : "note";
      return [
        ...(row.state === state ? [] : [`"${text}" is ${row.state} instead of ${state}`]),
        ...(last === due ? [] : [`the transcript of "${text}" ends with ${String(last)} instead of ${String(due)}`]),
      ];
    });
}

const AUDITED: Readonly<Record<string, string>> = {
  "audit#1": "login.refused",
  "audit#2": "queue.cancel",
  "audit#3": "queue.cancel",
  "audit#4": "queue.retry",
};

/** The owner drops an answer that nobody fetched, and has it sent after all. Each change is one commit with its audit row. */
export const outbox: Script = {
  reaches: ["outbox-drop#1", "outbox-resend#1"],
  async act({ person, sent }, doomed) {
    const host = await doomed;
    sent.push({ text: "unfetched" });
    const command = await person.send("outbox", "unfetched");
    await person.ended(command);
    const { parts } = (await host.api("wait", { command })).body;
    await host.api("outbox.drop", { id: parts[0].seq });
    await host.api("outbox.resend", { id: parts[0].seq });
  },
  check: ({ home }, happened) =>
    withDatabase(home, (db) => {
      const wrong = checkAudit(
        db,
        happened.map((at) => at.replace("-", ".").replace("#1", "")),
      );
      const state = happened.length === 1 ? "failed" : "ready";
      const found = db.prepare("select state from outbox").pluck().all();
      return found.join() === state ? wrong : [...wrong, `the part is ${found.join()} instead of ${state}`];
    }),
};

/** Another program keeps the database from being written for longer than the host waits; then the host tries by itself. */
export const disk: Script = {
  reaches: ["probe#1"],
  withinMs: 30_000,
  async act({ home, person, sent }, doomed) {
    const host = await doomed;
    sent.push({ text: "with room" }, { text: "without room" });
    await person.ended(await person.send("disk", "with room"));
    const other = new Database(`${home}/laneway.db`);
    other.exec("begin immediate");
    const sending = person.send("disk", "without room");
    await person.until(() => host.stderr().includes("store.paused"));
    other.close();
    await sending;
  },
};
