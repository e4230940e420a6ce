// Owns: making the attachments of a message usable for its turn: images become files that models are shown, voice becomes text,
// of the rest the model is told. Nothing is downloaded before a turn needs it, and nothing here ends a turn.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, normalize, sep } from "node:path";
import type { Media, ReadMedia, StoredAttachment } from "../agents/message.ts";
import type { Channel } from "../channels/port.ts";
import { messageOf } from "../kernel/errors.ts";
import { errorFields, type Log } from "../kernel/log.ts";
import { visible } from "../kernel/visible.ts";
import type { Command } from "../store/commands.ts";
import type { ImageRef, ReadImage } from "../turns/backends/port.ts";
import type { Transcribe } from "./transcribe.ts";

interface MediaDeps {
  /** `<home>/media`. */
  readonly folder: string;
  readonly channel: (command: Command) => Pick<Channel, "download"> | undefined;
  /** Undefined when the settings name nothing that can hear. */
  readonly transcribe: Transcribe | undefined;
  readonly log: Log;
}

/** What Telegram's servers hand out at most (core.telegram.org/bots/api#getfile). */
const MAX_BYTES = 20 * 1_048_576;
/** The types that model endpoints take. */
const IMAGE_TYPES: Readonly<Record<string, string>> = {
  "image/jpeg": "jpg",
  "image/png": "png",
  "image/gif": "gif",
  "image/webp": "webp",
};

export function makeReadMedia(deps: MediaDeps): ReadMedia {
  return async (command, extra, signal) => {
    const found: Media[] = [];
    for (const [index, attachment] of extra.attachments.entries()) {
      found.push(await usable({ attachment, index, command, signal }, deps));
    }
    return { lines: found.flatMap(({ lines }) => lines), images: found.flatMap(({ images }) => images) };
  };
}

interface One {
  readonly attachment: StoredAttachment;
  readonly index: number;
  readonly command: Command;
  readonly signal: AbortSignal;
}

async function usable(one: One, deps: MediaDeps): Promise<Media> {
  const { attachment } = one;
  const type = attachment.mediaType?.toLowerCase() ?? (attachment.kind === "image" ? "image/jpeg" : "");
  try {
    if (Object.hasOwn(IMAGE_TYPES, type)) return { lines: [], images: [await keepImage(one, type, deps)] };
    if (attachment.kind === "voice" || attachment.kind === "audio") return line(await heard(one, deps));
    return line(`[${nameOf(attachment)}: this kind of file cannot be read yet]`);
  } catch (thrown) {
    deps.log.warn("media.unreadable", { commandId: one.command.id, kind: attachment.kind, ...errorFields(thrown) });
    return line(`[${nameOf(attachment)}: it could not be fetched: ${messageOf(thrown)}]`);
  }
}

function line(text: string): Media {
  return { lines: [text], images: [] };
}

function nameOf({ kind, name, bytes }: StoredAttachment): string {
  const size = bytes === undefined ? "" : `, ${Math.ceil(bytes / 1024)} KB`;
  return `${kind}${name === undefined ? "" : ` ${visible(name)}`}${size}`;
}

/** The name follows from command and place, so that a turn that runs again after a crash writes the same file. */
async function keepImage(
  { attachment, index, command, signal }: One,
  mediaType: string,
  deps: MediaDeps,
): Promise<ImageRef> {
  const bytes = await download(attachment, command, signal, deps);
  const file = join(String(command.id), `${index + 1}.${IMAGE_TYPES[mediaType]}`);
  await mkdir(join(deps.folder, String(command.id)), { recursive: true, mode: 0o700 });
  await writeFile(join(deps.folder, file), bytes, { mode: 0o600 });
  return { file, mediaType };
}

async function heard({ attachment, command, signal }: One, deps: MediaDeps): Promise<string> {
  const { transcribe, log } = deps;
  if (transcribe === undefined) {
    return `[${nameOf(attachment)}: it cannot be heard here, since no transcription is set up (settings: media.transcribe). Say so, and ask for text.]`;
  }
  const bytes = await download(attachment, command, signal, deps);
  try {
    const text = await transcribe({ bytes, mediaType: attachment.mediaType ?? "audio/ogg" }, signal);
    return text.trim() === ""
      ? `[${nameOf(attachment)}: nothing was understood]`
      : `[${attachment.kind}, transcribed] ${text.trim()}`;
  } catch (thrown) {
    log.warn("media.unheard", { commandId: command.id, ...errorFields(thrown) });
    return `[${nameOf(attachment)}: it could not be heard: ${messageOf(thrown)}]`;
  }
}

function download(attachment: StoredAttachment, command: Command, signal: AbortSignal, { channel }: MediaDeps) {
  const from = channel(command);
  if (from === undefined) throw new Error(`the channel ${command.route.channel} is not set up any more`);
  return from.download(attachment.ref, MAX_BYTES, signal);
}

/** Reads an image of the media folder; undefined when it is gone. A reference that leads out of the folder is none. */
export function makeReadImage(folder: string): ReadImage {
  return async ({ file }: ImageRef, signal) => {
    const inside = normalize(file);
    if (inside.startsWith("..") || inside.startsWith(sep)) return undefined;
    try {
      return await readFile(join(folder, inside), { signal });
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      return undefined;
    }
  };
}
