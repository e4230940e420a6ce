// Owns: `laneway chat` at a terminal: joins screen, event stream, outgoing messages and acknowledgements, and their end.
import { EXIT, type ExitCode, messageOf } from "../../kernel/errors.ts";
import { visible } from "../../kernel/visible.ts";
import type { Client } from "../host/client.ts";
import { accepted } from "../host/replies.ts";
import { paint } from "../print/paint.ts";
import { countText } from "../print/words.ts";
import type { Shell } from "../shell.ts";
import { makeAcker } from "./acker.ts";
import { type Chat, readUnread } from "./chat.ts";
import { follow } from "./follow.ts";
import { makeOutgoing, type Outgoing } from "./outgoing.ts";
import { makeScreen, type Screen } from "./screen.ts";
import { makeView, type View } from "./view.ts";
import { readEvent } from "./wire.ts";

/** A healthy host accepts in milliseconds. */
const LAST_SEND_MS = 2_000;
const STOP = "/stop";
const HELLO = "Write, and Enter sends. /help lists the commands, /quit or Ctrl-D leaves, Ctrl-C stops what runs.";

/** Runs until the person leaves. 1 when something that was typed could not be sent. */
export async function converse(shell: Shell, client: Client, chat: Chat): Promise<ExitCode> {
  const { out, input } = shell;
  // Before the screen is taken: when no host runs, this is where it shows.
  const unread = await readUnread(client, chat);
  await out.write(`${paint(out, "dim", HELLO)}\n`);
  const leaving = new AbortController();
  const { signal } = leaving;
  const ending = new AbortController();
  const acker = makeAcker(client, chat);
  const leave = () => leaving.abort("left");
  const screen = makeScreen({
    input,
    out,
    on: { message: (text) => take(text), interrupt: () => interrupt(), left: leave },
  });
  const view = makeView({ screen, out, onShown: acker.seen });
  const connection = makeConnection(screen, out);
  const outgoing = makeOutgoing({
    shell,
    send: (text, key) => client.call("send", { ...chat, text, key }, accepted, { signal: ending.signal }),
    signal: ending.signal,
    on: {
      accepted: view.asked,
      refused: (text, thrown) => screen.say(paint(out, "red", `Not sent: ${refusal(text, thrown)}`)),
      lost: connection.lost,
    },
  });
  const take = (text: string) => {
    if (text.trim() === "/quit") leave();
    else if (text.trim() !== "") outgoing.add(text);
  };
  const interrupt = makeInterrupt({ view, outgoing, leave });

  try {
    await view.showUnread(unread);
    const following = follow({
      shell,
      client,
      chat,
      cursor: view.cursor,
      signal,
      on: {
        async event(event) {
          await connection.restored();
          const known = readEvent(event);
          if (known?.type === "host") void acker.flush();
          if (known !== undefined) await view.take(known);
        },
        lost: connection.lost,
      },
    });
    // What was typed right before leaving is on its way: its answer is still worth a moment.
    const end = () => outgoing.emptied(LAST_SEND_MS).finally(() => ending.abort("left"));
    await Promise.all([following.finally(end), outgoing.run()]);
  } finally {
    leave();
    ending.abort("left");
    screen.close();
  }
  await acker.flush();
  return farewell(shell, outgoing.unsent(), view.busy().length);
}

/** Ctrl-C stops what runs. Again, while that has not ended: it leaves. */
function makeInterrupt({ view, outgoing, leave }: { view: View; outgoing: Outgoing; leave: () => void }) {
  let stopped: readonly number[] = [];
  return () => {
    const busy = view.busy();
    const unsent = outgoing.unsent();
    const isStopping = unsent.includes(STOP) || busy.some((command) => stopped.includes(command));
    if (isStopping || busy.length + unsent.length === 0) return leave();
    stopped = busy;
    outgoing.add(STOP);
  };
}

/** Says once that the connection is lost, and once that it is back. */
function makeConnection(screen: Screen, out: Shell["out"]) {
  let isLost = false;
  return {
    lost(): void {
      if (!isLost) void screen.say(paint(out, "yellow", "connection lost, trying again"));
      isLost = true;
    },
    async restored(): Promise<void> {
      if (isLost) await screen.say(paint(out, "dim", "connected again"));
      isLost = false;
    },
  };
}

function refusal(text: string, thrown: unknown): string {
  const hint = thrown instanceof Error && "hint" in thrown && typeof thrown.hint === "string" ? ` ${thrown.hint}` : "";
  const firstLine = text.trim().split("\n")[0] ?? "";
  return visible(`${firstLine.slice(0, 60)}: ${messageOf(thrown)}.${hint}`);
}

async function farewell({ out }: Shell, unsent: readonly string[], busy: number): Promise<ExitCode> {
  const messages = unsent.filter((text) => text !== STOP);
  const lines = messages.map((text) => paint(out, "red", `Not sent: ${visible(text, "\n")}`));
  if (busy > 0)
    lines.push(`${countText(busy, "message")} still being worked on; the next \`laneway chat\` shows what came of it.`);
  if (lines.length > 0) await out.write(`${lines.join("\n")}\n`);
  return messages.length > 0 ? EXIT.workFailed : EXIT.ok;
}
