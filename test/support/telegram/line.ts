// Owns: the port: listening, going away and coming back on the same number.
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export interface Line {
  readonly port: number;
  /** Listens again on the same port. */
  open(): Promise<void>;
  /** Ends every connection and refuses new ones. */
  close(): Promise<void>;
}

export async function openLine(listener: RequestListener): Promise<Line> {
  let server: Server | undefined;
  let port = 0;
  const open = async () => {
    if (server !== undefined) return;
    server = createServer({ keepAliveTimeout: 60_000 }, listener);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once("error", reject).listen(port, "127.0.0.1", resolve);
    await promise;
    port = (server.address() as AddressInfo).port;
  };
  await open();
  return {
    port,
    open,
    async close() {
      const closing = server;
      server = undefined;
      if (closing === undefined) return;
      const closed = new Promise<void>((resolve) => closing.close(() => resolve()));
      closing.closeAllConnections();
      await closed;
    },
  };
}
