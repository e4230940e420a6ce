import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, test } from "vitest";
import { limitPending } from "../../../src/gateway/pending.ts";
import { fakeClock } from "../../support/clock.ts";

async function listening() {
  const clock = fakeClock();
  const server = createServer((_, response) => response.end("ok"));
  limitPending(server, clock);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const open = async (head: string) => {
    const accepted = once(server, "connection");
    const socket = connect(port, "127.0.0.1");
    await accepted;
    socket.write(head);
    return socket;
  };
  return { clock, open, [Symbol.asyncDispose]: async () => void server.close() };
}

test("a connection without a whole head after 10 s is cut, to the instant (NET-6)", async () => {
  await using server = await listening();
  const socket = await server.open("GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ");
  const closed = once(socket, "close");
  await server.clock.advance(9_999);
  expect(server.clock.waiting()).toBe(1);
  await server.clock.advance(1);
  await closed;
});

test("a connection whose head came in time is left alone, and no timer waits for it", async () => {
  await using server = await listening();
  const socket = await server.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await once(socket, "data");
  expect(server.clock.waiting()).toBe(0);
  await server.clock.advance(60_000);
  expect(socket.closed).toBe(false);
  socket.destroy();
});
