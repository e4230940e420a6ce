// Owns: back-pressure: how many commands may wait in a session and in the host. It counts what waits and what is on its way
// into a row, and refuses before anything is written (G15).
import type { Stop } from "../kernel/clock.ts";
import { QueueFull } from "../kernel/errors.ts";
import type { SessionKey } from "../kernel/ids.ts";
import type { Waiting } from "./waiting.ts";

/** Most queued commands of one session, and of the host. */
export interface Caps {
  readonly cap: number;
  readonly hostCap: number;
}

/**
 * Keeps a place for one more command of the session, to be given up by the returned Stop once the command is in the index
 * or was not accepted. Throws QueueFull at the session's or the host's cap.
 */
export type Reserve = (session: SessionKey) => Stop;

export function makeReserve(waiting: Waiting, caps: () => Caps): Reserve {
  const reserved = new Map<SessionKey, number>();
  let total = 0;
  const change = (session: SessionKey, by: 1 | -1) => {
    const next = (reserved.get(session) ?? 0) + by;
    if (next === 0) reserved.delete(session);
    else reserved.set(session, next);
    total += by;
  };
  return (session) => {
    const { cap, hostCap } = caps();
    const inSession = waiting.countOfSession(session) + (reserved.get(session) ?? 0);
    const inAll = waiting.size() + total;
    if (inSession >= cap) throw full(`${inSession} messages of this conversation are waiting already`, "or use /stop");
    if (inAll >= hostCap) throw full(`${inAll} messages are waiting on this host already`, "or ask the owner");
    change(session, 1);
    let held = true;
    return () => {
      if (held) change(session, -1);
      held = false;
    };
  };
}

function full(message: string, orElse: string): QueueFull {
  return new QueueFull(message, {
    hint: `Nothing was accepted. Wait for some of them to be answered ${orElse}.`,
  });
}
