// Owns: which images of a history a model gets to see, and the line in the text that stands for one it does not.
// Reads files through the caller's function only. One image that cannot be sent must never make a session unusable.
import type { ImageRef, ModelMessage, ModelRequest, ReadImage } from "./port.ts";

export interface ShownImage {
  readonly mediaType: string;
  readonly data: Uint8Array;
}

type UserMessage = Extract<ModelMessage, { role: "user" }>;

/** A message whose images are bytes, or lines in the text. */
export type ShownMessage =
  | Exclude<ModelMessage, UserMessage>
  | { readonly role: "user"; readonly text: string; readonly images: readonly ShownImage[] };

/** What Anthropic and OpenAI take, and with them the servers that follow them. */
const MEDIA_TYPES: ReadonlySet<string> = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]);
/** Anthropic takes 5 MB of base64 (5242880 characters) an image. */
const MAX_IMAGE_BYTES = 3_932_160;
/** Anthropic takes 32 MB a request; base64 makes a third more of this, and the text needs room too. */
const MAX_TOTAL_BYTES = 20_000_000;
/** Above 20 images a request Anthropic refuses those with a side of over 2000 pixels. Older ones have been answered. */
const MAX_IMAGES = 20;

const BLIND = "this model cannot see images";
const GONE = "it can no longer be read";
const OLD = "too many newer images to show it again";
const LARGE = "it is too large to be shown";

/**
 * Reads the images that the model is to see, the newest first, within the limits above. Never rejects for a file that
 * cannot be read.
 * @param vision whether the model can see
 */
export async function showImages(
  messages: readonly ModelMessage[],
  { readImage }: Pick<ModelRequest, "readImage">,
  vision: boolean,
  signal: AbortSignal,
): Promise<ShownMessage[]> {
  const read = vision ? (readImage ?? (async () => undefined)) : undefined;
  const left = { images: MAX_IMAGES, bytes: MAX_TOTAL_BYTES };
  const shown: ShownMessage[] = [];
  for (const message of messages.toReversed()) {
    shown.push(message.role === "user" ? await showUser(message, read, left, signal) : message);
  }
  return shown.reverse();
}

/** The text with a line for each image, for a model that sees none. */
export function textOfUnseen({ text, images = [] }: UserMessage): string {
  return withLines(
    text,
    images.map((image) => unseenLine(image, BLIND)),
  );
}

interface Left {
  images: number;
  bytes: number;
}

async function showUser(
  message: UserMessage,
  read: ReadImage | undefined,
  left: Left,
  signal: AbortSignal,
): Promise<ShownMessage> {
  if (read === undefined) return { role: "user", text: textOfUnseen(message), images: [] };
  const images: ShownImage[] = [];
  const lines: string[] = [];
  for (const image of message.images ?? []) {
    const seen = await lookAt(image, read, left, signal);
    if (typeof seen === "string") lines.push(unseenLine(image, seen));
    else images.push(seen);
  }
  return { role: "user", text: withLines(message.text, lines), images };
}

/** The image, or why it cannot be shown. */
async function lookAt(image: ImageRef, read: ReadImage, left: Left, signal: AbortSignal): Promise<ShownImage | string> {
  const mediaType = image.mediaType.toLowerCase();
  if (!MEDIA_TYPES.has(mediaType)) return `images of type ${image.mediaType} cannot be shown`;
  if (left.images === 0) return OLD;
  const bytes = await readOrNothing(image, read, signal);
  if (bytes === undefined || bytes.byteLength === 0) return GONE;
  if (bytes.byteLength > MAX_IMAGE_BYTES) return LARGE;
  if (bytes.byteLength > left.bytes) return OLD;
  left.images -= 1;
  left.bytes -= bytes.byteLength;
  // A plain view: a Buffer writes itself out as a list of numbers wherever it meets JSON.
  return { mediaType, data: new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) };
}

async function readOrNothing(image: ImageRef, read: ReadImage, signal: AbortSignal): Promise<Uint8Array | undefined> {
  try {
    return await read(image, signal);
  } catch {
    // The line in its place says so; whoever read knows why.
    return undefined;
  }
}

function unseenLine({ file }: ImageRef, why: string): string {
  return `[image ${file.split(/[/\\]/).at(-1) ?? file}: ${why}]`;
}

function withLines(text: string, lines: readonly string[]): string {
  return [...(text.trim() === "" && lines.length > 0 ? [] : [text]), ...lines].join("\n");
}
