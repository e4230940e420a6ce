// Owns: how many connections may be open that have not yet sent a whole request head. They are nobody's: beyond the limit the
// oldest gives way, so that a crowd of slow ones costs bounded memory and keeps nobody out (NET-R6). Never closes one that has
// only just come: a burst of clients is accepted in one turn of the loop, before any of their heads can be read.
import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Clock, Stop } from "../kernel/clock.ts";

/** Within it a head has come and been read, also on a busy machine. Until then the limit of all connections bounds a crowd. */
const HEAD_TIME_MS = 1_000;
/** Of those that take longer. */
const MAX_LATE = 50;
/** After it a head that is not there does not come any more (NET-6). */
const HANDSHAKE_MS = 10_000;

export function limitPending(server: Server, clock: Clock): void {
  const late = new Set<Socket>();
  const timers = new WeakMap<Socket, Stop>();
  const isLate = (socket: Socket) => {
    late.add(socket);
    timers.set(
      socket,
      clock.after(HANDSHAKE_MS - HEAD_TIME_MS, () => socket.destroy(), { keepAlive: false }),
    );
    const oldest = late.values().next().value;
    if (late.size <= MAX_LATE || oldest === undefined) return;
    late.delete(oldest);
    oldest.destroy();
  };
  const settled = (socket: Socket) => {
    timers.get(socket)?.();
    late.delete(socket);
  };
  server.on("connection", (socket: Socket) => {
    timers.set(
      socket,
      clock.after(HEAD_TIME_MS, () => isLate(socket), { keepAlive: false }),
    );
    socket.once("close", () => settled(socket));
  });
  server.on("request", (request) => settled(request.socket));
}
