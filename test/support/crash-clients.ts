// Owns: clients that never give up, one a door: web (HTTP + SSE), terminal (a real `laneway chat` by pipe) and API. Each sends
// numbered messages with a key of its own until the host has answered, and notes what it was shown.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { callApi, childEnv, MAIN, TOKEN } from "./host.ts";

export interface Client {
  readonly door: string;
  /** Sends one message; resolves when the host has accepted it (web), or is being told of it (terminal, API). */
  send(text: string): Promise<void>;
  /** Texts that people were shown, in order, each as often as it was shown. */
  readonly shown: readonly string[];
  /** Resolves when every sent message has been answered, or after `ms`. */
  settled(ms: number): Promise<void>;
  stop(): Promise<void>;
}

const RETRY_MS = 100;
const REQUEST_MS = 10_000;

interface Place {
  readonly home: string;
  readonly address: string;
}

/** Repeats with the same key until the host has said 202; answers with the command, or undefined when it was stopped. */
async function sendUntilAccepted(
  address: string,
  body: { text: string; key: string; chat: string },
  stopped: () => boolean,
): Promise<number | undefined> {
  while (!stopped()) {
    try {
      const answer = await callApi(address, "send", body);
      if (answer.status === 202) return answer.body.command as number;
    } catch {
      // The host is down: the same key again.
    }
    await delay(RETRY_MS);
  }
  return undefined;
}

/** Somebody who does one thing after another, through all the host's deaths. */
export interface Person {
  /** Sends with the text as its key until the host has accepted it; answers with the command. */
  send(chat: string, text: string): Promise<number>;
  /** Resolves when the command has ended. */
  ended(command: number): Promise<void>;
  /** Resolves when `look` answers true; what it throws is no answer. */
  until(look: () => boolean | Promise<boolean>): Promise<void>;
}

/** What the person waits for rejects when `signal` is aborted. */
export function makePerson(address: string, signal: AbortSignal): Person {
  const until: Person["until"] = async (look) => {
    while (
      !(await Promise.resolve()
        .then(look)
        .catch(() => false))
    )
      await delay(RETRY_MS / 4, undefined, { signal });
  };
  return {
    until,
    async send(chat, text) {
      const command = await sendUntilAccepted(address, { text, key: text, chat }, () => signal.aborted);
      if (command === undefined) throw new Error(`"${text}" was never accepted`);
      return command;
    },
    ended: (command) =>
      until(async () => (await callApi(address, "wait", { command, timeoutMs: 5_000 })).body.final === true),
  };
}

export function webClient({ address }: Place, chat: string): Client {
  const shown: string[] = [];
  const stop = new AbortController();
  let sent = 0;
  let seen = 0;
  const watching = watch(address, chat, stop.signal, (item) => {
    seen = item.seq;
    if (item.kind === "part") shown.push(item.text);
  });
  const acking = (async () => {
    for (let acked = 0; !stop.signal.aborted; await delay(RETRY_MS)) {
      if (seen === acked) continue;
      const upTo = seen;
      await callApi(address, "ack", { chat, seq: upTo }).then(
        () => {
          acked = upTo;
        },
        () => {},
      );
    }
  })();
  return {
    door: "web",
    shown,
    async send(text) {
      sent += 1;
      await sendUntilAccepted(address, { text, key: `${chat}-${sent}`, chat }, () => stop.signal.aborted);
    },
    async settled(ms) {
      for (let left = ms; shown.length < sent && left > 0; left -= RETRY_MS) await delay(RETRY_MS);
    },
    async stop() {
      stop.abort();
      await Promise.allSettled([watching, acking]);
    },
  };
}

interface SeenItem {
  readonly seq: number;
  readonly kind: string;
  readonly text: string;
}

/** Follows a chat's events through restarts; each item is handed on once, since it resumes after the last sequence. */
async function watch(
  address: string,
  chat: string,
  signal: AbortSignal,
  onItem: (item: SeenItem) => void,
): Promise<void> {
  let last = 0;
  while (!signal.aborted) {
    try {
      for await (const item of itemsAfter(address, chat, last, signal)) {
        last = item.seq;
        onItem(item);
      }
    } catch {
      // Cut: connect again.
    }
    if (!signal.aborted) await delay(RETRY_MS);
  }
}

async function* itemsAfter(
  address: string,
  chat: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<SeenItem> {
  const url = `${address}/api/events?chat=${chat}&after=${after}`;
  const response = await fetch(url, { headers: { authorization: `Bearer ${TOKEN}` }, signal });
  let rest = "";
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const frames = `${rest}${piece}`.split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      if (/^event: item$/m.test(frame)) yield JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? "{}") as SeenItem;
    }
  }
}

/** A real terminal client, which lives through all the host's deaths. */
export function terminalClient({ home }: Place, chat: string): Client {
  const child: ChildProcess = spawn(process.execPath, [MAIN, "chat", "--session", chat], {
    env: childEnv(home),
    stdio: ["pipe", "pipe", "inherit"],
  });
  const shown: string[] = [];
  let sent = 0;
  let rest = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    rest += text;
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.includes("echo: ")) shown.push(line);
  });
  return {
    door: "terminal",
    shown,
    async send(text) {
      sent += 1;
      child.stdin?.write(`${text}\n`);
    },
    async settled(ms) {
      for (let left = ms; shown.length < sent && left > 0; left -= RETRY_MS) await delay(RETRY_MS);
    },
    async stop() {
      child.stdin?.end();
      const ended = once(child, "exit");
      await Promise.race([ended, delay(REQUEST_MS)]);
      child.kill("SIGKILL");
    },
  };
}

/** The OpenAI door with a named session: each request is repeated with its Idempotency-Key until it is answered. */
export function apiClient({ address }: Place, chat: string): Client {
  const shown: string[] = [];
  const open = new Set<Promise<void>>();
  const stop = new AbortController();
  let sent = 0;
  const ask = async (text: string, key: string) => {
    while (!stop.signal.aborted) {
      try {
        const response = await fetch(`${address}/v1/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${TOKEN}`, "idempotency-key": key, "x-laneway-session": chat },
          body: JSON.stringify({ model: "laneway", messages: [{ role: "user", content: text }] }),
          signal: AbortSignal.any([stop.signal, AbortSignal.timeout(REQUEST_MS)]),
        });
        if (response.status === 200) {
          const answer = (await response.json()) as { choices: { message: { content: string } }[] };
          shown.push(answer.choices[0]?.message.content ?? "");
          return;
        }
      } catch {
        // The host is down or died under the request: the same key again.
      }
      await delay(RETRY_MS).catch(() => {});
    }
  };
  return {
    door: "api",
    shown,
    async send(text) {
      sent += 1;
      const asking = ask(text, `${chat}-${sent}`).finally(() => open.delete(asking));
      open.add(asking);
    },
    async settled(ms) {
      await Promise.race([Promise.all(open), delay(ms)]);
    },
    async stop() {
      stop.abort();
      await Promise.allSettled(open);
    },
  };
}
