// Owns: a server that nothing may contact by itself: it counts connections, whatever is then said on them.
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

export interface Canary extends AsyncDisposable {
  readonly address: string;
  /** Host and port alone. */
  readonly authority: string;
  connections(): number;
  /** The headers of the requests so far. */
  readonly heard: readonly IncomingHttpHeaders[];
}

export async function startCanary(): Promise<Canary> {
  const heard: IncomingHttpHeaders[] = [];
  let connections = 0;
  const server = createServer((request, response) => {
    heard.push(request.headers);
    response.end("canary");
  });
  server.on("connection", () => connections++);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const authority = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    address: `http://${authority}`,
    authority,
    connections: () => connections,
    heard,
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
