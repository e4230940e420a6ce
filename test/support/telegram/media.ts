// Owns: the form of the files that people send.
import type { StoredFile, World } from "./world.ts";

export interface SentFile {
  readonly bytes: Uint8Array;
  readonly name?: string;
  readonly type?: string;
  /** The size that the platform tells, when it is to differ: a large file without its bytes. */
  readonly size?: number;
}

/** At most one of them. */
export interface MediaOptions {
  readonly photo?: Uint8Array;
  readonly document?: SentFile;
  readonly voice?: SentFile & { readonly seconds?: number };
}

/** core.telegram.org/bots/api#message: "photo", "document" or "voice", or undefined when there is no file. */
export function mediaForm(world: World, { photo, document, voice }: MediaOptions): object | undefined {
  if (photo !== undefined) return { photo: photoSizes(world, photo) };
  if (document !== undefined) return { document: documentForm(world.addFile(document)) };
  if (voice === undefined) return undefined;
  const { id, size, type = "audio/ogg" } = world.addFile({ type: "audio/ogg", ...voice });
  return {
    voice: {
      file_id: id,
      file_unique_id: uniqueId(id),
      duration: voice.seconds ?? 1,
      mime_type: type,
      file_size: size,
    },
  };
}

/** core.telegram.org/bots/api#photosize: the same picture in several sizes, the largest last; each is a file of its own. */
function photoSizes(world: World, bytes: Uint8Array): object[] {
  const sides = [90, 320, 1280];
  return sides.map((side) => {
    const { id, size } = world.addFile({
      name: "photo.jpg",
      type: "image/jpeg",
      bytes: side === 1280 ? bytes : bytes.slice(0, side),
    });
    return { file_id: id, file_unique_id: uniqueId(id), width: side, height: side, file_size: size };
  });
}

/** core.telegram.org/bots/api#document */
export function documentForm({ id, name, type, size }: StoredFile): object {
  const described = { ...(name !== undefined && { file_name: name }), ...(type !== undefined && { mime_type: type }) };
  return { file_id: id, file_unique_id: uniqueId(id), ...described, file_size: size };
}

/** The same for a file over time and for each bot, and not usable to download it. */
export function uniqueId(fileId: string): string {
  return `AQAD${fileId.slice(-8)}`;
}
