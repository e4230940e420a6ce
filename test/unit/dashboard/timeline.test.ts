// Proves: what comes by stream, history and answers becomes one conversation: each item once, each growing answer
// replaced by its final part, in an order that reads well.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Timeline } from "../../../src/dashboard/timeline.js";
import type { Item, PartItem, PersonItem } from "../../../src/dashboard/wire.js";

const AT = "2026-01-01T10:00:00.000Z";

function person(seq: number, state = "done", text = `q${seq}`): PersonItem {
  return { seq, kind: "person", command: seq, text, at: AT, state };
}

function part(
  seq: number,
  command: number | undefined,
  text = `a${seq}`,
  kind: PartItem["class"] = "answer",
): PartItem {
  return { seq, kind: "part", command, text, at: AT, state: "ready", class: kind };
}

/** The rows in short: a person's text, a part's text, `~` and the text of a growing answer. */
function shown(timeline: Timeline): string[] {
  return timeline.rows().map((row) => (row.kind === "live" ? `~${row.live.text}` : row.item.text));
}

function timelineOf(...items: Item[]): Timeline {
  const timeline = new Timeline();
  timeline.mergeHistory(items, timeline.mark(), { first: true });
  return timeline;
}

describe("items", () => {
  test("the same seq by history, stream and a reconnect is shown once, with its latest state", () => {
    const timeline = timelineOf(person(1, "queued"), part(2, 1));
    timeline.addItem(part(2, 1));
    timeline.addItem(person(1, "done"));
    timeline.mergeHistory([person(1), part(2, 1)], timeline.mark());
    expect(shown(timeline)).toEqual(["q1", "a2"]);
    expect(timeline.rows()[0]).toMatchObject({ state: "done" });
  });

  test("only the stream and the first history move the place where a new stream goes on", () => {
    const timeline = timelineOf(person(1));
    timeline.addAccepted(person(9, "queued"));
    timeline.mergeHistory([part(8, 1)], timeline.mark());
    expect(timeline.cursor).toBe(1);
    timeline.addItem(part(5, 1));
    timeline.addItem(part(5, 1));
    expect(timeline.cursor).toBe(5);
  });

  test("an accepted message does not overwrite what the stream has told of it already", () => {
    const timeline = new Timeline();
    timeline.addItem(person(3, "running"));
    timeline.addAccepted(person(3, "queued"));
    expect(timeline.rows()[0]).toMatchObject({ state: "running" });
  });

  test("an older history does not undo a state that came while it was under way", () => {
    const timeline = timelineOf(person(1, "queued"));
    const mark = timeline.mark();
    timeline.setState(1, "running", undefined);
    timeline.mergeHistory([person(1, "queued")], mark);
    expect(timeline.isBusy()).toBe(true);
    timeline.mergeHistory([person(1, "done")], timeline.mark());
    expect(timeline.isBusy()).toBe(false);
  });

  test("of two histories the one that was asked for later is believed, in whatever order they come", () => {
    for (const laterFirst of [true, false]) {
      const timeline = timelineOf(person(1, "queued"));
      const answers = ["running", "done"].map((state) => {
        const mark = timeline.mark();
        return () => timeline.mergeHistory([person(1, state)], mark);
      });
      if (laterFirst) answers.reverse();
      for (const answer of answers) answer();
      expect(timeline.rows()).toMatchObject([{ state: "done" }]);
    }
  });

  test("letting go of old items keeps the newest", () => {
    const timeline = timelineOf(...Array.from({ length: 20 }, (_, index) => person(index + 1)));
    timeline.trim(5);
    expect([timeline.oldest, timeline.newest, timeline.size]).toEqual([16, 20, 5]);
  });
});

describe("growing answers", () => {
  test("grow in place and are replaced by the final part, whichever comes first, part or end", () => {
    for (const endFirst of [true, false]) {
      const timeline = timelineOf(person(1, "running"));
      timeline.startStream(1, "Hel");
      timeline.appendStream(1, "lo");
      expect(shown(timeline)).toEqual(["q1", "~Hello"]);
      if (endFirst) timeline.setState(1, "done", undefined);
      if (endFirst) expect(shown(timeline)).toEqual(["q1", "~Hello"]);
      timeline.addItem(part(2, 1, "Hello"));
      if (!endFirst) timeline.setState(1, "done", undefined);
      timeline.appendStream(1, " late");
      expect(shown(timeline)).toEqual(["q1", "Hello"]);
      expect(timeline.isBusy()).toBe(false);
    }
  });

  test("a new start of the same command replaces what was shown", () => {
    const timeline = timelineOf(person(1, "running"));
    timeline.startStream(1, "first try");
    timeline.startStream(1, "");
    timeline.appendStream(1, "second");
    expect(shown(timeline)).toEqual(["q1", "~second"]);
  });

  test("a notice leaves the growing answer alone; an answer in the middle of a turn empties it", () => {
    const timeline = timelineOf(person(1, "running"));
    timeline.startStream(1, "thinking");
    timeline.addItem(part(2, 1, "moved to local", "notice"));
    expect(shown(timeline)).toEqual(["q1", "moved to local", "~thinking"]);
    timeline.addItem(part(3, 1, "first half"));
    timeline.appendStream(1, "more");
    expect(shown(timeline)).toEqual(["q1", "moved to local", "first half", "~more"]);
  });

  test("earlier parts of the same command that the history brings leave it alone", () => {
    const timeline = timelineOf(part(8, 5));
    timeline.startStream(5, "going on");
    timeline.mergeHistory([person(5, "running"), part(6, 5)], timeline.mark());
    expect(shown(timeline)).toEqual(["q5", "a6", "a8", "~going on"]);
  });

  test("after a reconnect only what the host tells anew grows", () => {
    const timeline = timelineOf(person(1, "running"));
    timeline.startStream(1, "lost");
    timeline.setState(77, "running", undefined);
    timeline.streamOpened();
    expect(shown(timeline)).toEqual(["q1", "~"]);
    timeline.startStream(1, "lost and found");
    expect(shown(timeline)).toEqual(["q1", "~lost and found"]);
    timeline.setState(1, "done", undefined);
    expect(timeline.isBusy()).toBe(false);
  });

  test("a stopped one keeps its words where they were said; one that ended without a part is let go", () => {
    const timeline = timelineOf(person(1, "running"));
    timeline.startStream(1, "half an ans");
    timeline.setState(1, "cancelled", undefined);
    timeline.dropEnded(1);
    timeline.addItem(person(2, "running"));
    timeline.startStream(2, "NO_REPLY");
    timeline.setState(2, "done", undefined);
    expect(shown(timeline)).toEqual(["q1", "~half an ans", "q2", "~NO_REPLY"]);
    timeline.dropEnded(2);
    // A host that comes back tells of every state anew.
    timeline.streamOpened();
    timeline.setState(1, "cancelled", undefined);
    timeline.mergeHistory([person(1, "cancelled"), person(2)], timeline.mark());
    expect(shown(timeline)).toEqual(["q1", "~half an ans", "q2"]);
  });

  test("a stopped one stays below its message, above what waited and the stop itself", () => {
    const timeline = timelineOf(person(1, "running"), person(2, "queued"));
    timeline.startStream(1, "half an ans");
    expect(shown(timeline)).toEqual(["q1", "~half an ans", "q2"]);
    timeline.addItem(person(3, "done", "/stop"));
    timeline.addItem(part(4, 3, "stopped", "notice"));
    for (const command of [1, 2]) timeline.setState(command, "cancelled", undefined);
    expect(shown(timeline)).toEqual(["q1", "~half an ans", "q2", "/stop", "stopped"]);
  });

  test("a running command without words is shown as working, with what it does", () => {
    const timeline = timelineOf(person(1, "running"));
    expect(shown(timeline)).toEqual(["q1", "~"]);
    timeline.setNote(1, "reading notes.md");
    expect(timeline.rows()[1]).toMatchObject({ live: { note: "reading notes.md" } });
    timeline.setState(1, "done", undefined);
    timeline.setNote(1, "late");
    expect(shown(timeline)).toEqual(["q1"]);
  });
});

describe("the order of reading", () => {
  test("a message that waits stands below the growing answer, and above its own when it is answered", () => {
    const timeline = timelineOf(person(1, "running"), person(2, "queued"));
    timeline.startStream(1, "one");
    expect(shown(timeline)).toEqual(["q1", "~one", "q2"]);
    timeline.addItem(part(3, 1, "one"));
    timeline.setState(1, "done", undefined);
    expect(shown(timeline)).toEqual(["q1", "one", "q2"]);
    timeline.setState(2, "running", undefined);
    timeline.startStream(2, "two");
    expect(shown(timeline)).toEqual(["q1", "one", "q2", "~two"]);
    timeline.addItem(part(4, 2, "two"));
    timeline.setState(2, "done", undefined);
    expect(shown(timeline)).toEqual(["q1", "one", "q2", "two"]);
  });

  test("is the same when the page is loaded again", () => {
    expect(shown(timelineOf(person(1), person(2), part(3, 1), part(4, 2)))).toEqual(["q1", "a3", "q2", "a4"]);
  });

  test("a message that was taken into a running turn stands above that turn's answer", () => {
    expect(shown(timelineOf(person(1), person(2, "absorbed"), part(3, 1)))).toEqual(["q1", "q2", "a3"]);
    expect(shown(timelineOf(person(1), person(2), person(3), part(4, 1), part(5, 2)))).toEqual([
      "q1",
      "a4",
      "q2",
      "q3",
      "a5",
    ]);
  });

  test("a chat command that is answered at once does not move the message that still runs", () => {
    const timeline = timelineOf(person(1, "running"), person(2, "done", "/status"), part(3, 2, "all well"));
    timeline.startStream(1, "still");
    expect(shown(timeline)).toEqual(["q1", "/status", "all well", "~still"]);
  });
});

/**
 * A host in small: it runs commands one after another and tells a page of it, which may miss events and come back.
 * Each step is one number; the page sees a random interleaving of losses, reconnects and late histories.
 */
function play(steps: readonly number[], check: (timeline: Timeline, final: ReadonlySet<number>) => void) {
  const items: Item[] = [];
  const timeline = new Timeline();
  const final = new Set<number>();
  const late: (() => void)[] = [];
  let connected = true;
  let seq = 0;
  let running: PersonItem | undefined;
  let words = "";

  const tell = (event: () => void) => connected && event();
  const setState = (item: PersonItem, state: string) => {
    item.state = state;
    tell(() => timeline.setState(item.command, state, undefined));
  };
  const add = (item: Item) => {
    items.push(item);
    const copy = { ...item };
    tell(() => timeline.addItem(copy));
  };
  const askHistory = () => {
    const mark = timeline.mark();
    const page = items.slice(-50).map((item) => ({ ...item }));
    late.push(() => timeline.mergeHistory(page, mark));
  };
  const begin = () => {
    running ??= items.find((item): item is PersonItem => item.kind === "person" && item.state === "queued");
    if (running?.state !== "queued") return;
    setState(running, "running");
    words = "";
    const { command } = running;
    tell(() => timeline.startStream(command, ""));
  };
  const end = (partFirst: boolean) => {
    const done = running;
    if (!done) return;
    running = undefined;
    const finish = [() => setState(done, "done"), () => add(part(++seq, done.command, words))];
    if (partFirst) finish.reverse();
    for (const act of finish) act();
    if (connected) final.add(done.command);
  };
  const acts = [
    () => add(person(++seq, "queued")),
    begin,
    () => {
      const command = running?.command;
      if (command === undefined) return;
      words += "x";
      tell(() => timeline.appendStream(command, "x"));
    },
    () => end(true),
    () => end(false),
    () => {
      connected = false;
    },
    () => {
      if (connected) return;
      connected = true;
      timeline.streamOpened();
      for (const item of items.filter((one) => one.seq > timeline.cursor)) timeline.addItem({ ...item });
      const command = running?.command;
      if (command !== undefined) timeline.startStream(command, words);
      askHistory();
    },
    () => late.shift()?.(),
  ];
  for (const step of steps) {
    acts[step]?.();
    check(timeline, final);
  }
  connected || acts[6]?.();
  for (const answer of late) answer();
  return { timeline, items };
}

test("whatever is lost, late or told twice: no item twice, no growing answer beside its final part, and in the end all", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 7 }), { maxLength: 60 }), (steps) => {
      const { timeline, items } = play(steps, (now, final) => {
        const seqs = now.rows().flatMap((row) => (row.kind === "item" ? [row.item.seq] : []));
        expect(new Set(seqs).size).toBe(seqs.length);
        for (const row of now.rows()) if (row.kind === "live") expect(final.has(row.live.command)).toBe(false);
      });
      const rows = timeline.rows().filter((row) => row.kind === "item");
      expect(rows.map((row) => row.item.seq).sort((a, b) => a - b)).toEqual(items.map((item) => item.seq));
      for (const row of rows) expect(row.state).toBe(items.find((item) => item.seq === row.item.seq)?.state);
      const live = timeline.rows().filter((row) => row.kind === "live");
      expect(live.length).toBe(items.filter((item) => item.state === "running").length);
    }),
    { numRuns: 2000 },
  );
});
