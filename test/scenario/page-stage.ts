// Owns: what the tests of the page share: one browser, a model in the test's hand, a host that uses it and the owner in front
// of its page; and a host at its very first start.
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { BrowserContextOptions, Page } from "playwright-core";
import { expect } from "vitest";
import { newVisitor, shownRows, startBrowser, type Visitor } from "../support/browser.ts";
import { temporaryFolder } from "../support/files.ts";
import { childEnv, MAIN, settingsFor } from "../support/host.ts";
import { isOpen, WAIT } from "./page-steps.ts";
import { type Puppet, startPuppet } from "./puppet.ts";
import { eventually, type Json, startWorld, type World } from "./world.ts";

export interface Stage extends AsyncDisposable {
  readonly puppet: Puppet;
  readonly world: World;
  /** The address of the world's hosts: they follow one another on one port. */
  readonly home: string;
  /** The owner's browser, which stays, and its first tab. */
  readonly owner: Visitor;
  readonly page: Page;
  /** Somebody else, until the end of the test. */
  visitor(options?: BrowserContextOptions): Promise<Visitor>;
  /** A link that nobody has used. */
  freshLink(): Promise<string>;
  /** Waits until a page of the owner shows what the host has, all of it and nothing else. */
  isWhole(shown: Page): Promise<void>;
  /** Ends a test: sends the others away and tells what went wrong on any page. */
  settle(): Promise<string[]>;
}

export async function startStage(chromium: string): Promise<Stage> {
  await using started = new AsyncDisposableStack();
  const puppet = await startPuppet();
  started.defer(puppet.stop);
  const world = started.use(await startWorld(settingsFor(puppet.baseUrl)));
  const browser = await startBrowser(chromium);
  started.defer(() => browser.close());
  const owner = await newVisitor(browser);
  const page = await owner.open(world.host().link);
  await isOpen(page);
  const others: Visitor[] = [];
  const stack = started.move();
  return {
    ...{ puppet, world, owner, page, home: world.host().address },
    async visitor(options) {
      const made = await newVisitor(browser, options);
      others.push(made);
      return made;
    },
    freshLink: async () => (await world.host().api("link")).body.url,
    async isWhole(shown) {
      const { items } = (await world.host().api("history", { limit: 200 })).body;
      const seqs = async () => (await shownRows(shown)).flatMap(({ live, seq }) => (live ? [] : [seq]));
      const expected = items.map(({ seq }: Json) => seq).toSorted();
      await expect.poll(async () => (await seqs()).toSorted(), WAIT).toEqual(expected);
    },
    async settle() {
      const gone = others.splice(0);
      for (const { context } of gone) await context.close();
      return [owner, ...gone].flatMap((one) => one.troubles());
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

export interface FirstHost extends AsyncDisposable {
  readonly link: string;
  /** All that it had printed when the link was there. */
  readonly printed: string;
}

/** `laneway start` as a person types it, with nothing of this machine but its PATH, on a home that is not there yet. */
export async function startFirstHost(): Promise<FirstHost> {
  await using started = new AsyncDisposableStack();
  const folder = started.use(await temporaryFolder());
  // Only so that no other host of this machine is in the way; it stands outside of the home.
  const file = await folder.write("port.yaml", "gateway: { port: 0 }\n");
  const child = spawn(process.execPath, [MAIN, "start", "--config", file], {
    env: childEnv(folder.at("home"), { LANEWAY_TOKEN: "" }),
    stdio: ["ignore", "pipe", "ignore"],
  });
  const ended = once(child, "exit");
  started.defer(async () => {
    child.kill();
    await ended;
  });
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
  });
  const link = await eventually("a link is printed", () => /^ *Open +(http:\S+)$/m.exec(printed)?.[1]);
  const stack = started.move();
  return { link, printed, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}
