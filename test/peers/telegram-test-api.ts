// Owns: starting the third-party stand-in for Telegram's Bot API. It knows no offset, no waiting and no refusals: an independent
// witness that grammY's calls fit, not a proof of delivery.
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import testApi from "telegram-test-api";

/** What we use of the package. Its own types name a package that it does not bring along. */
interface TestApi {
  readonly config: { readonly apiURL: string };
  readonly storage: { readonly botMessages: readonly { readonly message: Readonly<Record<string, unknown>> }[] };
  start(): Promise<void>;
  stop(): Promise<unknown>;
  getClient(token: string, person: { userId: number; chatId: number; firstName: string }): TestClient;
  waitBotMessage(): Promise<void>;
}

interface TestClient {
  makeMessage(text: string): object;
  makeCommand(text: string): object;
  sendMessage(message: object): Promise<unknown>;
  sendCommand(message: object): Promise<unknown>;
}

type TestApiClass = new (options: { port: number; host: string }) => TestApi;

export interface TelegramTestApi extends AsyncDisposable {
  readonly address: string;
  /** Queues what a person writes to the bot in the private chat with this id; a text with a slash first is a command. */
  says(token: string, chatId: number, text: string): Promise<void>;
  /** The parameters of every message that a bot has sent, in order. */
  sent(): readonly Readonly<Record<string, unknown>>[];
  /** Resolves at the next message of a bot. */
  nextMessage(): Promise<void>;
}

/** Starts it on a free port. */
export async function startTelegramTestApi(): Promise<TelegramTestApi> {
  // The module itself is the class; its types promise a member `default` that is not there.
  const Server = testApi as unknown as TestApiClass;
  const server = new Server({ port: await freePort(), host: "127.0.0.1" });
  await server.start();
  return {
    address: server.config.apiURL,
    async says(token, chatId, text) {
      const client = server.getClient(token, { userId: chatId, chatId, firstName: "Ann" });
      await (text.startsWith("/")
        ? client.sendCommand(client.makeCommand(text))
        : client.sendMessage(client.makeMessage(text)));
    },
    sent: () => server.storage.botMessages.map(({ message }) => message),
    nextMessage: () => server.waitBotMessage(),
    async [Symbol.asyncDispose]() {
      await server.stop();
    },
  };
}

/** It takes port 0 for none and falls back to a fixed one, so a free one is found first. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}
