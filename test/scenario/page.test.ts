import type { Route } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { findChromium, shownRows } from "../support/browser.ts";
import { startCanary } from "../support/canary.ts";
import { settingsFor, writeSettings } from "../support/host.ts";
import { type Stage, startFirstHost, startStage } from "./page-stage.ts";
import { allTexts, focused, inSteps, isAnswered, isGrowing, isOpen, messageRow, say, WAIT } from "./page-steps.ts";
import { says } from "./puppet.ts";
import { last } from "./world.ts";

// The web chat in a real Chromium: one browser, one host with its model in the test's hand, one host without any model.

const chromium = findChromium();
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 3, isMobile: true, hasTouch: true };
/** Hang guard of the test that starts the host twice. */
const RESTART_LIMIT_MS = 180_000;
/** What the browser itself says on the console while the host is away. */
const HOST_AWAY = /^error: Failed to load resource: net::ERR_(CONNECTION|INCOMPLETE|EMPTY|SOCKET)/;
/** And when the host lets nobody in. */
const NOT_LET_IN = /^error: Failed to load resource: the server responded with a status of 401/;

describe.skipIf(chromium === undefined)("the page in a browser", () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await startStage(chromium ?? "");
  });
  afterEach(async () => {
    expect(await stage.settle()).toEqual([]);
  });
  afterAll(async () => {
    await stage?.[Symbol.asyncDispose]();
  });

  test("the first start, without settings, key and account, prints a link to a chat that answers", async (context) => {
    await using host = await startFirstHost();
    if (!/^Backend: offline/m.test(host.printed)) context.skip("the host found a model on this machine");
    const first = await stage.visitor();
    const chat = await first.open(host.link);
    await isOpen(chat);
    await say(chat, "Is anybody there?");
    await expect
      .poll(() => allTexts(chat), WAIT)
      .toEqual(["Is anybody there?", expect.stringContaining("You wrote: Is anybody there?")]);
    expect(new URL(chat.url()).hash).toBe("");
    await first.context.close();
  });

  test("the link's code leaves the address at once and opens the page for one browser only", async () => {
    const { home } = stage;
    const link = await stage.freshLink();
    const first = await stage.visitor();
    const opened = await first.open(link);
    await isOpen(opened);
    expect(opened.url()).toBe(`${home}/`);
    expect(await opened.evaluate("history.length")).toBe(2);

    const second = await stage.visitor();
    const refused = await second.open(link);
    await refused.locator("#gate").waitFor();
    await expect
      .poll(() => refused.locator("#gate-text").textContent(), WAIT)
      .toContain("has been used or has expired");
    expect(await refused.locator("#chat").isVisible()).toBe(false);
    expect(refused.url()).toBe(`${home}/`);
    await refused.reload();
    await expect.poll(() => refused.locator("#gate-text").textContent(), WAIT).toContain("laneway link");
    expect(second.troubles().filter((trouble) => !NOT_LET_IN.test(trouble))).toEqual([]);

    // Whoever was let in comes in without a code from now on, by the used link too.
    await isOpen(await first.open(`${home}/`));
    await isOpen(await first.open(link));
    expect(first.troubles().filter((trouble) => !NOT_LET_IN.test(trouble))).toEqual([]);
  });

  test("an answer grows word by word and ends as one; a reload keeps everything and shows nothing twice", async () => {
    const { puppet, page } = stage;
    const answer = inSteps("Once", " upon", " a time.");
    puppet.on("tell me a tale", answer.behaviour);
    await say(page, "tell me a tale");
    await isGrowing(page, "tell me a tale", "Once");
    answer.next();
    await isGrowing(page, "tell me a tale", "Once upon");
    answer.next();
    await isGrowing(page, "tell me a tale", "Once upon a time.");
    expect(await messageRow(page, "tell me a tale")).toMatchObject({ state: "running", note: "Working on it" });
    answer.next();
    await isAnswered(page, "tell me a tale", "Once upon a time.");
    await expect.poll(() => messageRow(page, "tell me a tale"), WAIT).toMatchObject({ state: "done", note: "" });

    await say(page, "and then?");
    await isAnswered(page, "and then?", "re: and then?");
    await stage.isWhole(page);
    const before = await allTexts(page);
    await page.locator("#input").fill("a draft");
    await page.reload();
    await isOpen(page);
    await expect.poll(() => allTexts(page), WAIT).toEqual(before);
    await stage.isWhole(page);
    expect(await page.locator("#input").inputValue()).toBe("a draft");
  });

  test("a second tab shows the same, also of an answer that grows, and both get what comes", async () => {
    const { puppet, home, owner, page } = stage;
    const answer = inSteps("for", " both");
    puppet.on("who is it for?", answer.behaviour);
    await say(page, "who is it for?");
    await isGrowing(page, "who is it for?", "for");
    const tab = await owner.open(home);
    await isGrowing(tab, "who is it for?", "for");
    expect(await allTexts(tab)).toEqual(await allTexts(page));
    answer.next();
    for (const each of [page, tab]) await isGrowing(each, "who is it for?", "for both");
    answer.next();
    for (const each of [page, tab]) await isAnswered(each, "who is it for?", "for both");

    // The answer to a sending that comes later than the message itself makes it no second message, in either tab.
    const held = Promise.withResolvers<void>();
    const slowly = async (route: Route) => {
      const response = await route.fetch();
      await held.promise;
      await route.fulfill({ response });
    };
    await page.route("**/api/send", slowly, { times: 1 });
    await say(page, "accepted already");
    for (const each of [page, tab]) await isAnswered(each, "accepted already", "re: accepted already");
    held.resolve();
    await say(tab, "from the second tab");
    for (const each of [page, tab]) await isAnswered(each, "from the second tab", "re: from the second tab");
    for (const each of [page, tab]) await stage.isWhole(each);
    await tab.close();
  });

  test("everything can be done with keys alone, and Esc stops an answer", async () => {
    const { puppet, page } = stage;
    await page.reload();
    await expect.poll(() => focused(page), WAIT).toBe("input");
    const { keyboard } = page;
    const tabTo = async (key: "Tab" | "Shift+Tab") => {
      await keyboard.press(key);
      return focused(page);
    };
    const answer = inSteps("I count: one,", " two,", " three");
    puppet.on("count\nslowly", answer.behaviour);
    await page.locator("#input").fill("");
    await keyboard.type("count");
    await keyboard.press("Shift+Enter");
    await keyboard.type("slowly");
    expect(await messageRow(page, "count")).toBeUndefined();
    expect(await tabTo("Tab")).toBe("send");
    expect(await tabTo("Shift+Tab")).toBe("input");
    await keyboard.press("Enter");
    await isGrowing(page, "count\nslowly", "I count: one,");
    expect(await page.locator("#input").inputValue()).toBe("");
    expect(await tabTo("Tab")).toBe("stop");
    expect(await tabTo("Shift+Tab")).toBe("input");
    expect(await tabTo("Shift+Tab")).toBe("scroller");
    expect(await tabTo("Tab")).toBe("input");

    // The first Esc closes the list of commands only.
    await keyboard.type("/st");
    await page.locator("#hints").waitFor();
    await keyboard.press("Escape");
    await page.locator("#hints").waitFor({ state: "hidden" });
    answer.next();
    await isGrowing(page, "count\nslowly", "I count: one, two,");
    await keyboard.press("Escape");
    await expect
      .poll(() => messageRow(page, "count\nslowly"), WAIT)
      .toMatchObject({ state: "cancelled", note: "Stopped" });
    await puppet.clientGone;
    await page.locator("#stop").waitFor({ state: "hidden" });
    const rows = await shownRows(page);
    const below = rows[rows.findIndex((row) => row.text === "count\nslowly") + 1];
    expect(below).toMatchObject({ live: true, text: "I count: one, two,", note: "Stopped here" });

    // Down and Enter take a command from the list, which then is sent like any other text.
    expect(await page.locator("#input").inputValue()).toBe("/st");
    for (const key of ["Control+A", "Delete"]) await keyboard.press(key);
    await keyboard.type("/he");
    await page.locator("#hints").waitFor();
    await keyboard.press("ArrowDown");
    await keyboard.press("Enter");
    expect(await page.locator("#input").inputValue()).toBe("/help ");
    await keyboard.press("Enter");
    await expect.poll(async () => last(await shownRows(page)), WAIT).toMatchObject({ kind: "notice" });
    expect(last(await allTexts(page))).toContain("/stop");
  });

  test("what a model writes is shown as text: nothing runs, nothing is fetched until it is clicked (INJ-R2)", async () => {
    const { puppet, home, owner, page } = stage;
    await using canary = await startCanary();
    const { address } = canary;
    const hostile = [
      `<script>window.pwned = 1; fetch("${address}/script")</script>`,
      `<img src="${address}/img" onerror="window.pwned = 1">`,
      `<iframe src="${address}/frame"></iframe><style>@import "${address}/style";</style>`,
      `<link rel="preconnect" href="${address}"><a href="javascript:window.pwned = 1">here</a>`,
      `![an image](${address}/image)`,
      "[a script](javascript:window.pwned=1)",
      "[data](data:text/html,<script>window.pwned=1</script>)",
      `[file](file:///etc/passwd) [relative](/api/stop)`,
    ];
    const answer = `${hostile.join("\n\n")}\n\n[the link](${address}/link)`;
    puppet.on("be hostile", says(answer));
    await say(page, "be hostile");
    await isAnswered(page, "be hostile", [...hostile, "the link"].join("\n\n"));
    // What a person writes, and what a backend says when it fails, is no better.
    puppet.on(hostile[1] ?? "", (response) => {
      response.writeHead(400, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: hostile[1] } }));
    });
    await say(page, hostile[1] ?? "");
    await expect.poll(async () => last(await shownRows(page)), WAIT).toMatchObject({ kind: "failure" });

    const link = page.locator("#log a[href]").filter({ hasText: "the link" });
    await link.hover();
    expect(
      await page.locator("#log").locator("script, img, iframe, style, link, object, embed, svg, form").count(),
    ).toBe(0);
    const targets = await page.locator("#log a").evaluateAll((links) => links.map((one) => one.href));
    expect(targets).toContain(`${address}/link`);
    expect(targets.filter((target) => new URL(target).origin !== address)).toEqual([]);
    expect(await page.evaluate("window.pwned")).toBeUndefined();
    expect(owner.asked.filter((url) => new URL(url).origin !== home)).toEqual([]);
    expect(canary.connections()).toBe(0);

    const [elsewhere] = await Promise.all([owner.context.waitForEvent("page"), link.click()]);
    await elsewhere.waitForURL(`${address}/link`);
    expect(canary.heard[0]).toMatchObject({ host: canary.authority });
    expect(canary.heard[0]).not.toHaveProperty("referer");
    expect(await elsewhere.evaluate("window.opener")).toBeNull();
    await elsewhere.close();
  });

  test("no address in the page's own address is ever contacted (NET-4)", async () => {
    const { home } = stage;
    await using canary = await startCanary();
    const code = new URL(await stage.freshLink()).hash;
    const names = ["gatewayUrl", "gateway", "url", "host", "ws", "api", "baseUrl"];
    const query = new URLSearchParams(
      names.map((name, at): [string, string] => [name, `${at % 2 === 0 ? "ws" : "http"}://${canary.authority}`]),
    );
    const lured = await stage.visitor();
    const tab = await lured.open(`${home}/?${query}${code}`);
    await isOpen(tab);
    await say(tab, "whom do you talk to?");
    await isAnswered(tab, "whom do you talk to?", "re: whom do you talk to?");
    expect(lured.asked.filter((url) => new URL(url).origin !== home)).toEqual([]);
    expect(canary.connections()).toBe(0);
  });

  test("on a phone nothing is wider than the screen, and the field is always in reach", async () => {
    const { puppet } = stage;
    const wide = "w".repeat(400);
    const words = `does this fit? ${wide}`;
    puppet.on(
      words,
      says(`${wide}\n\n\`${wide}\`\n\n- ${wide}\n\nhttps://example.invalid/${wide}\n\n\`\`\`\n${wide}\n\`\`\``),
    );
    const phone = await stage.visitor(PHONE);
    const chat = await phone.open(await stage.freshLink());
    await isOpen(chat);
    const input = chat.locator("#input");
    const isWithin = async (height: number) => {
      const box = await input.boundingBox();
      expect(box?.x).toBeGreaterThanOrEqual(0);
      expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(390);
      expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(height);
    };
    // Looked at before it is touched, since a touch may scroll it into view.
    await isWithin(844);
    await input.tap();
    await chat.keyboard.insertText(words);
    await isWithin(844);
    await chat.locator("#send").tap();
    await expect.poll(() => messageRow(chat, words), WAIT).toMatchObject({ state: "done" });
    await stage.isWhole(chat);
    const widths = await chat
      .locator("html, body, #chat, #scroller, #log, #foot")
      .evaluateAll((parts) => parts.map((part) => part.scrollWidth));
    expect(Math.max(...widths)).toBe(390);
    const edges = await chat
      .locator("#log .row, #log .body, #log .code")
      .evaluateAll((parts) => parts.map((part) => part.getBoundingClientRect().right));
    expect(Math.max(...edges)).toBeLessThanOrEqual(390);
    // As when the keyboard takes half of the screen.
    await chat.setViewportSize({ width: 390, height: 420 });
    await isWithin(420);
    await input.tap();
    expect(await focused(chat)).toBe("input");
  });

  test(
    "a host killed in mid-answer and started again: the page comes back by itself, each message is answered once, nothing typed is lost (G1)",
    async () => {
      const { puppet, world, home, owner, page } = stage;
      const words = "long before the crash";
      puppet.on(words, inSteps("half an", " never").behaviour);
      const tab = await owner.open(home);
      await say(page, words);
      for (const each of [page, tab]) await isGrowing(each, words, "half an");
      puppet.on(words, says("a whole answer"));
      await world.host().kill();

      for (const each of [page, tab]) await each.locator("#banner").waitFor();
      await say(page, "sent while it was away");
      await say(tab, "from a tab that is gone");
      await expect.poll(() => messageRow(tab, "from a tab that is gone"), WAIT).toMatchObject({ seq: undefined });
      await tab.close();
      await page.locator("#input").fill("not sent yet");
      expect(await messageRow(page, "sent while it was away")).toMatchObject({ seq: undefined });

      await writeSettings(world.home, settingsFor(puppet.baseUrl, "", Number(new URL(home).port)));
      // The third message that this host accepts is the last that it commits.
      const second = await world.start({ LANEWAY_CRASH_AT: "commit.after:accept#3" });
      expect(second.address).toBe(home);
      await page.locator("#banner").waitFor({ state: "hidden" });
      const sent = [words, "sent while it was away", "from a tab that is gone"];
      await isAnswered(page, words, "a whole answer");
      for (const text of sent.slice(1)) await isAnswered(page, text, `re: ${text}`);
      await stage.isWhole(page);
      expect((await allTexts(page)).slice(-6)).toEqual([
        words,
        "a whole answer",
        ...sent.slice(1).flatMap((text) => [text, `re: ${text}`]),
      ]);
      expect(await page.locator("#input").inputValue()).toBe("not sent yet");

      // Accepted, but the page is never told: it asks again, and the message is still one.
      await say(page, "did you get this?");
      expect(await second.ended).toMatchObject({ signal: "SIGKILL" });
      await world.start();
      await isAnswered(page, "did you get this?", "re: did you get this?");
      await say(page, "go on");
      await isAnswered(page, "go on", "re: go on");
      await stage.isWhole(page);
      const told = last(puppet.asked("go on")).flatMap(({ role, content }) => (role === "user" ? [content] : []));
      for (const text of [...sent, "did you get this?"]) expect(told.filter((one) => one === text)).toHaveLength(1);
      expect(owner.troubles().filter((trouble) => !HOST_AWAY.test(trouble))).toEqual([]);
    },
    RESTART_LIMIT_MS,
  );
});
