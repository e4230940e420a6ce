// Owns: a real Chromium, and people in front of it: each with cookies and storage of their own, watched for whatever a good
// page never does.
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";

const NAMES = ["chromium", "chromium-browser"];
const ARGS = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
/** Hang guard of each single step. */
const STEP_LIMIT_MS = 30_000;

/** The Chromium of this machine; undefined, with a word about it on the terminal, when there is none. */
export function findChromium(): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const found = folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find(isExecutable);
  if (found === undefined) {
    console.warn("The tests of the page in a browser are skipped: no chromium on the PATH (Debian package chromium).");
  }
  return found;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** With a new, empty profile, which goes with it when it is closed. */
export function startBrowser(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, args: ARGS });
}

export interface Visitor {
  readonly context: BrowserContext;
  /** Opens an address in a new tab. */
  open(address: string): Promise<Page>;
  /** Every address that its tabs asked for, or tried to, so far. */
  readonly asked: readonly string[];
  /**
   * What went wrong since the last call: errors and warnings of the console, among them refusals by the content security
   * policy, errors that nobody caught, and a message that stood on the page twice, were it for a moment.
   */
  troubles(): string[];
}

export async function newVisitor(browser: Browser, options: BrowserContextOptions = {}): Promise<Visitor> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(STEP_LIMIT_MS);
  const asked: string[] = [];
  const troubles: string[] = [];
  context.on("request", (request) => asked.push(request.url()));
  context.on("weberror", (error) => troubles.push(`uncaught: ${error.error().message}`));
  context.on("console", (message) => {
    if (["error", "warning", "assert"].includes(message.type())) troubles.push(`${message.type()}: ${message.text()}`);
  });
  await context.addInitScript({ content: WATCH_FOR_DOUBLES });
  return {
    context,
    asked,
    async open(address) {
      const page = await context.newPage();
      await page.goto(address);
      return page;
    },
    troubles: () => troubles.splice(0),
  };
}

/** Looks at the conversation after each change of it. Texts of persons must differ, except for chat commands. */
const WATCH_FOR_DOUBLES = `
  const check = () => {
    const seen = new Set();
    const once = (what) => {
      if (seen.has(what)) console.error("twice on the page: " + what);
      seen.add(what);
    };
    for (const row of document.querySelectorAll("#log .row")) {
      const text = row.querySelector(".body").textContent;
      const { seq, command } = row.dataset;
      if (seq !== undefined) once("seq " + seq);
      if (row.classList.contains("person") && !text.startsWith("/")) once("message " + text);
      if (row.classList.contains("answer")) once("answer to " + command);
    }
  };
  new MutationObserver(check).observe(document, { childList: true, subtree: true, characterData: true });
`;

export interface ShownRow {
  readonly kind: "person" | "answer" | "notice" | "failure" | undefined;
  /** An answer that still grows, or that was stopped while it did. */
  readonly live: boolean;
  /** Undefined until the host has given it one. */
  readonly seq: number | undefined;
  readonly command: number | undefined;
  readonly state: string | undefined;
  readonly text: string;
  /** What stands below it, without the time. */
  readonly note: string;
}

/** The conversation as it stands on the page, from top to bottom, without the lines of the days. */
export function shownRows(page: Page): Promise<ShownRow[]> {
  return page.locator("#log .row:not(.day)").evaluateAll((rows) =>
    rows.map((row) => {
      const number = (text: string | undefined) => (text === undefined ? undefined : Number(text));
      return {
        kind: (["person", "answer", "notice", "failure"] as const).find((kind) => row.classList.contains(kind)),
        live: row.classList.contains("live"),
        seq: number(row.dataset.seq),
        command: number(row.dataset.command),
        state: row.dataset.state,
        // biome-ignore lint/performance/useDomNodeTextContent: as it is seen, with the line breaks between paragraphs
        text: row.querySelector(".body").innerText,
        note: row.querySelector(".meta .state")?.textContent ?? "",
      };
    }),
  );
}
