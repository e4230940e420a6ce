// Owns: scripts about the life of a message: accepted, worked on, cut off by a death or a planned stop, recovered, answered.
import Database from "better-sqlite3";
import { commandsOf, withDatabase } from "./crash-checks.ts";
import { apiClient, type Client, webClient } from "./crash-clients.ts";
import { asked, HALF_DONE, HELD, type Scene, type Script, times } from "./crash-scene.ts";

/** Two people write three messages each. */
export const messages: Script = {
  reaches: ["accept", "claim", "step", "finish", "ack"].flatMap((write) => times(write, 3)),
  async act({ home, address, sent, clients }) {
    const doors = [webClient({ home, address }, "web"), apiClient({ home, address }, "api")];
    clients.push(...doors);
    const sendAll = async (client: Client) => {
      const texts = ["one", "two [tool]", "three"].map((text) => `${client.door} ${text} end`);
      sent.push(...texts.map((text) => ({ text, client })));
      for (const text of texts) await client.send(text);
    };
    await Promise.all(doors.map(sendAll));
  },
};

const PLAIN = `plain ${HELD}`;

/** One turn in its first call, and one whose tool has run already, both in flight. */
async function twoInFlight({ person, model, sent }: Scene): Promise<void> {
  sent.push({ text: PLAIN }, { text: HALF_DONE });
  await person.send("plain", PLAIN);
  await person.send("half-done", HALF_DONE);
  await person.until(() => asked(model, PLAIN).length > 0 && asked(model, HALF_DONE).length > 1);
}

function checkTwo({ home, model }: Scene, strikes: number): string[] {
  const rows = withDatabase(home, commandsOf);
  const found = [PLAIN, HALF_DONE].map((text) => rows.find((row) => row.text === text)?.strikes);
  const wrong: string[] = [];
  // A finished step is progress, so only the plain one can have a strike (G8).
  if (found[0] !== strikes || found[1] !== 0)
    wrong.push(`strikes are ${found.join(" and ")} instead of ${strikes} and 0`);
  const calls = asked(model, HALF_DONE).filter((role) => role === "user").length;
  if (calls !== 1) wrong.push(`a finished step was done ${calls} times`);
  return wrong;
}

/** Two deaths: of a host at work, and of the next one while it takes stock. Both together are one strike. */
export const recovery: Script = {
  reaches: ["recover#1"],
  before: twoInFlight,
  async act({ person, sent }) {
    sent.push({ text: "after the deaths" });
    await person.send("plain", "after the deaths");
  },
  check: (scene) => checkTwo(scene, 1),
};

/** Told to stop, the host commits its plan, drains for as long as it may and hands back what has not ended (G17). */
export const stopping: Script = {
  reaches: ["plan-stop#1", "hand-back#1"],
  withinMs: 60_000,
  async act(scene, host) {
    await twoInFlight(scene);
    (await host).process.kill("SIGTERM");
    scene.sent.push({ text: "while it stops" });
    await scene.person.send("other", "while it stops");
  },
  check: (scene, happened) => checkTwo(scene, happened.includes("plan-stop#1") ? 0 : 1),
};

const DAY_MS = 86_400_000;

/** A start forgets the keys that nobody repeats any more, and no others. */
export const upkeep: Script = {
  reaches: ["upkeep#1"],
  async before({ person, home, sent }, host) {
    sent.push({ text: "earlier" });
    await person.ended(await person.send("upkeep", "earlier"));
    await host.kill();
    const db = new Database(`${home}/laneway.db`);
    db.prepare(
      `insert into inbox (channel, account, event_key, received_at, raw_hash, command)
       values ('web', 'default', 'old', ?, 'x', 0)`,
    ).run(Date.now() - 8 * DAY_MS);
    db.close();
  },
  async act({ person, sent }) {
    await person.send("upkeep", "earlier");
    sent.push({ text: "later" });
    await person.send("upkeep", "later");
  },
  check: ({ home }) =>
    withDatabase(home, (db) => {
      const keys = db.prepare("select event_key from inbox order by command").pluck().all();
      return keys.join() === "earlier,later" ? [] : [`the inbox holds ${keys.join()}`];
    }),
};
