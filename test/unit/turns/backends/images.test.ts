import { expect, test } from "vitest";
import { showImages } from "../../../../src/turns/backends/images.ts";
import type { ImageRef, ModelMessage, ReadImage } from "../../../../src/turns/backends/port.ts";

const png = (file: string): ImageRef => ({ file, mediaType: "image/png" });
const user = (text: string, ...images: ImageRef[]): ModelMessage => ({ role: "user", text, images });
const one: ReadImage = async () => Uint8Array.of(1, 2, 3);
const { signal } = new AbortController();

async function texts(messages: ModelMessage[], readImage: ReadImage | undefined, vision = true): Promise<string[]> {
  const shown = await showImages(messages, { readImage }, vision, signal);
  return shown.map((message) => {
    const count = message.role === "user" && message.images.length > 0 ? `${message.images.length}+` : "";
    return `${count}${message.text}`;
  });
}

test("a model that sees gets the bytes, and the text as it was written", async () => {
  const shown = await showImages([user("look", png("2026/a.png"))], { readImage: one }, true, signal);
  expect(shown).toEqual([
    { role: "user", text: "look", images: [{ mediaType: "image/png", data: Uint8Array.of(1, 2, 3) }] },
  ]);
});

test("a model that does not see is told so in a line for each image, and no file is read", async () => {
  const files: string[] = [];
  const read: ReadImage = async ({ file }) => {
    files.push(file);
    return Uint8Array.of(1);
  };
  const line = (name: string) => `[image ${name}: this model cannot see images]`;
  const messages = [user("look", png("2026/a.png"), png("b.png")), user("", png("c.png")), user("plain")];
  expect(await texts(messages, read, false)).toEqual([
    `look\n${line("a.png")}\n${line("b.png")}`,
    line("c.png"),
    "plain",
  ]);
  expect(files).toEqual([]);
});

test.each<[string, ReadImage | undefined, ImageRef, string]>([
  ["is gone", async () => undefined, png("a.png"), "it can no longer be read"],
  ["is empty", async () => new Uint8Array(), png("a.png"), "it can no longer be read"],
  ["cannot be read", () => Promise.reject(new Error("EIO")), png("a.png"), "it can no longer be read"],
  ["nobody can read", undefined, png("a.png"), "it can no longer be read"],
  ["is too large for Anthropic", async () => new Uint8Array(3_932_161), png("a.png"), "it is too large to be shown"],
  ["is of another type", one, { file: "a.tiff", mediaType: "image/tiff" }, "images of type image/tiff cannot be shown"],
])("an image that %s becomes a line, and the session stays usable", async (_, read, image, why) => {
  const name = image.file;
  expect(await texts([user("look", image)], read)).toEqual([`look\n[image ${name}: ${why}]`]);
});

test("the newest 20 images are shown, and no more than 20 MB of them", async () => {
  const many = Array.from({ length: 22 }, (_, n) => user(`${n}`, png("a.png")));
  const shown = await texts(many, one);
  expect(shown.slice(0, 3)).toEqual([
    "0\n[image a.png: too many newer images to show it again]",
    "1\n[image a.png: too many newer images to show it again]",
    "1+2",
  ]);
  const large: ReadImage = async () => new Uint8Array(3_900_000);
  const heavy = await texts(many.slice(0, 7), large);
  expect(heavy.filter((text) => text.startsWith("1+"))).toEqual(["1+2", "1+3", "1+4", "1+5", "1+6"]);
});

test("the type is taken without regard to case", async () => {
  const shown = await showImages([user("", { file: "a", mediaType: "Image/JPEG" })], { readImage: one }, true, signal);
  expect(shown).toMatchObject([{ images: [{ mediaType: "image/jpeg" }] }]);
});
