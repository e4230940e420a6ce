// Owns: requests as fetch would never send them: any Host, any target, heads that never end.
import { once } from "node:events";
import { type IncomingHttpHeaders, request } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { TOKEN } from "../support/host.ts";

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface RawRequest {
  readonly method?: string;
  /** The request target, sent as it is. */
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
}

export const bearer = { authorization: `Bearer ${TOKEN}` };
export const json = { "content-type": "application/json" };

export async function rawRequest(address: string, wanted: RawRequest): Promise<RawAnswer> {
  const { hostname, port } = new URL(address);
  const { method = "GET", path = "/", headers = {}, body } = wanted;
  const outgoing = request({ host: hostname.replace(/^\[|\]$/g, ""), port, method, path, headers, agent: false });
  outgoing.end(body);
  const [response] = await once(outgoing, "response");
  return { status: response.statusCode, headers: response.headers, text: await text(response) };
}

/** A POST of JSON with the owner's token. */
export function rawPost(
  address: string,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<RawAnswer> {
  return rawRequest(address, {
    method: "POST",
    path,
    headers: { ...bearer, ...json, ...headers },
    body: JSON.stringify(body),
  });
}

/** An open connection on which only these bytes have been sent. Errors are its end, as a close is. */
export async function halfOpen(address: string, bytes: string): Promise<Socket> {
  const { hostname, port } = new URL(address);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write(bytes);
  return socket;
}
