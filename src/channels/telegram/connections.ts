// Owns: the connections to the Bot API server: how long connecting may take, how long an idle one is kept, and whether a failed
// one was ever made. Never looks at what is sent.
import http from "node:http";
import https from "node:https";
import type { Duplex } from "node:stream";
import type { Clock } from "../../kernel/clock.ts";
import { systemCode } from "../../kernel/errors.ts";
import { UNSENT } from "./fault.ts";

/** Name lookup, TCP and TLS together. A network that swallows packets must not hold a call longer. */
const CONNECT_MS = 10_000;
/** A server closes idle connections without a word; a request on one that is just being closed would end ambiguous. */
const IDLE_MS = 5_000;

/**
 * An agent whose errors before the connection stood carry a code that begins with `UNSENT`: then, and only then, it is certain
 * that nothing was sent.
 * @param apiRoot its scheme decides between plain and TLS.
 */
export function makeConnections(apiRoot: string, clock: Clock): http.Agent {
  const secure = apiRoot.startsWith("https:");
  const agent = secure
    ? new https.Agent({ keepAlive: true, timeout: IDLE_MS })
    : new http.Agent({ keepAlive: true, timeout: IDLE_MS });
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options, done) => {
    const socket = connect(options, done);
    if (socket) watch(socket, secure ? "secureConnect" : "connect", clock);
    return socket;
  };
  return agent;
}

function watch(socket: Duplex, ready: "secureConnect" | "connect", clock: Clock): void {
  let connected = false;
  const stop = clock.after(CONNECT_MS, () => {
    socket.destroy(Object.assign(new Error("the connection was not made in time"), { code: "CONNECT_TIMEOUT" }));
  });
  socket.once(ready, () => {
    connected = true;
    stop();
  });
  socket.once("close", stop);
  // This listener is the first, so whoever reads the error afterwards sees the code that it leaves.
  socket.on("error", (error) => {
    if (!connected) Object.assign(error, { code: `${UNSENT}${systemCode(error) ?? "UNKNOWN"}` });
  });
}
