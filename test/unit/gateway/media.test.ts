import { readdir, readFile, stat, symlink } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import {
  type MessageExtra,
  messageExtraOf,
  type StoredAttachment,
  shownText,
  storedExtra,
} from "../../../src/agents/message.ts";
import { makeReadImage, makeReadMedia } from "../../../src/gateway/media.ts";
import type { CommandId } from "../../../src/kernel/ids.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import type { Command } from "../../../src/store/commands.ts";
import { temporaryFolder } from "../../support/files.ts";

// What becomes of the files of a message before its turn (Q7.5).

const BYTES = new Uint8Array([1, 2, 3]);
const command = (id = 7) => ({ id: id as CommandId, route: { channel: "telegram" } }) as unknown as Command;
const extra = (...attachments: StoredAttachment[]): MessageExtra => ({ refs: ["1"], attachments, full: false });
const image = (ref: string, mediaType?: string): StoredAttachment => ({ kind: "image", ref, mediaType });
const live = new AbortController().signal;

type MediaDeps = Parameters<typeof makeReadMedia>[0];

function reading(folder: string, deps: Partial<MediaDeps> = {}) {
  const download = async (ref: string) => {
    if (ref === "gone") throw new Error("the platform has it no more");
    return BYTES;
  };
  return makeReadMedia({ folder, channel: () => ({ download }), transcribe: undefined, log: silentLog, ...deps });
}

test("images land in files that only the host's user can read, named by command and place", async () => {
  await using home = await temporaryFolder();
  const read = reading(home.at("media"));
  const media = await read(command(), extra(image("a"), image("b", "image/PNG")), live);
  expect(media).toEqual({
    lines: [],
    images: [
      { file: path.join("7", "1.jpg"), mediaType: "image/jpeg" },
      { file: path.join("7", "2.png"), mediaType: "image/png" },
    ],
  });
  const file = await stat(home.at("media/7/1.jpg"));
  expect([file.mode & 0o777, (await stat(home.at("media/7"))).mode & 0o777]).toEqual([0o600, 0o700]);
  expect(new Uint8Array(await readFile(home.at("media/7/2.png")))).toEqual(BYTES);
});

test("a turn that runs again after a death writes the same files, also over a half-written one", async () => {
  await using home = await temporaryFolder();
  const read = reading(home.path);
  const first = await read(command(), extra(image("a")), live);
  await home.write("7/1.jpg", "half of something much longer");
  expect(await read(command(), extra(image("a")), live)).toEqual(first);
  expect(await readdir(home.at("7"))).toEqual(["1.jpg"]);
  expect(new Uint8Array(await readFile(home.at("7/1.jpg")))).toEqual(BYTES);
});

test.each([
  { attachment: image("a", "image/tiff"), line: "[image: this kind of file cannot be read yet]" },
  { attachment: image("a", "../../x"), line: "[image: this kind of file cannot be read yet]" },
  { attachment: image("a", "constructor"), line: "[image: this kind of file cannot be read yet]" },
  {
    attachment: { kind: "document", ref: "a", name: "a\u202eb\n.pdf", bytes: 2_000, mediaType: "application/pdf" },
    line: "[document a\\u{202e}b\\n.pdf, 2 KB: this kind of file cannot be read yet]",
  },
  { attachment: { kind: "video", ref: "a" }, line: "[video: this kind of file cannot be read yet]" },
  { attachment: image("gone"), line: "[image: it could not be fetched: the platform has it no more]" },
  {
    attachment: { kind: "voice", ref: "a" },
    line: expect.stringMatching(/^\[voice: it cannot be heard here, .*media\.transcribe/),
  },
] as const)("what cannot be shown is a line, and nothing is written ($line)", async ({ attachment, line }) => {
  await using home = await temporaryFolder();
  const media = await reading(home.path)(command(), extra(attachment), live);
  expect(media).toEqual({ lines: [line], images: [] });
  expect(await readdir(home.path)).toEqual([]);
});

test("what cannot be had of one file does not touch the others", async () => {
  await using home = await temporaryFolder();
  const media = await reading(home.path)(command(), extra(image("gone"), image("b")), live);
  expect([media.lines.length, media.images]).toEqual([1, [{ file: path.join("7", "2.jpg"), mediaType: "image/jpeg" }]]);
});

test("a channel that is not set up any more, a full disk and a stop are lines too: nothing here ends a turn", async () => {
  await using home = await temporaryFolder();
  const gone = await reading(home.path, { channel: () => undefined })(command(), extra(image("a")), live);
  expect(gone.lines).toEqual([expect.stringContaining("telegram is not set up any more")]);
  const file = await home.write("taken", "");
  expect((await reading(file)(command(), extra(image("a")), live)).lines).toHaveLength(1);
  const download = async (_ref: string, _max: number, signal: AbortSignal) => {
    signal.throwIfAborted();
    return BYTES;
  };
  const stopped = await reading(home.path, { channel: () => ({ download }) })(
    command(),
    extra(image("a")),
    AbortSignal.abort(),
  );
  expect(stopped.lines).toHaveLength(1);
});

test("voice becomes text; what fails or says nothing is a line", async () => {
  await using home = await temporaryFolder();
  const said = ["hello there \n", "  ", new Error("the transcription endpoint answered 500")];
  const transcribe = async () => {
    const next = said.shift();
    if (typeof next !== "string") throw next;
    return next;
  };
  const read = reading(home.path, { transcribe });
  const voice: StoredAttachment = { kind: "voice", ref: "a" };
  expect((await read(command(), extra(voice, voice, voice), live)).lines).toEqual([
    "[voice, transcribed] hello there",
    "[voice: nothing was understood]",
    "[voice: it could not be heard: the transcription endpoint answered 500]",
  ]);
});

test.each(["../secret", "7/../../secret", "/etc/passwd", "..", ".", "", "7/\0", "7/none.jpg"])(
  "an image reference %j that leads out of the folder, or nowhere, is none (FILE, G25)",
  async (file) => {
    await using home = await temporaryFolder();
    await home.write("secret", "secret");
    await home.write("media/7/1.jpg", "an image");
    const read = makeReadImage(home.at("media"));
    expect(await read({ file, mediaType: "image/jpeg" }, live)).toBeUndefined();
    expect(String(await read({ file: "7/1.jpg", mediaType: "image/jpeg" }, live))).toBe("an image");
  },
);

test("a stop while an image is read is a stop, not a missing image", async () => {
  await using home = await temporaryFolder();
  await home.write("1.jpg", "x");
  await symlink(home.at("1.jpg"), home.at("2.jpg"));
  const read = makeReadImage(home.path)({ file: "1.jpg", mediaType: "image/jpeg" }, AbortSignal.abort());
  await expect(read).rejects.toThrow();
});

test("what a message holds beside its text survives its row, and is shown with other people's words marked as theirs", () => {
  const whole: MessageExtra = {
    ...extra(image("a", "image/png")),
    ...{
      author: "Bob",
      quoted: { author: "Ann\nOwner", text: `${"x".repeat(999)}😀 and more` },
      album: "x",
      full: true,
    },
  };
  expect(messageExtraOf({ extra: storedExtra(whole) })).toEqual(whole);
  const shown = shownText("hi", whole, { lines: ["[a line]"], images: [] });
  expect(shown).toBe(`[Answers Ann\\nOwner: "${"x".repeat(999)}"]\n[Bob] hi\n[a line]`);
  expect(shown.isWellFormed()).toBe(true);
  expect(shownText("hi", undefined, { lines: [], images: [] })).toBe("hi");
});
