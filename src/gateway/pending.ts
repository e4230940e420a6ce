// Owns: how many connections may be open that have not yet sent a whole request head. They are nobody's: beyond the limit the
// oldest gives way, so that a crowd of slow ones costs bounded memory and keeps nobody out (NET-R6).
import type { Server } from "node:http";
import type { Socket } from "node:net";

/** A client that means it sends its head within milliseconds. */
const MAX_PENDING = 50;

export function limitPending(server: Server): void {
  const pending = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    pending.add(socket);
    socket.once("close", () => pending.delete(socket));
    const oldest = pending.values().next().value;
    if (pending.size > MAX_PENDING && oldest !== undefined) oldest.destroy();
  });
  server.on("request", (request) => pending.delete(request.socket));
}
