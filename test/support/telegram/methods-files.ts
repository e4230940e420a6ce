// Owns: the methods that carry files, and their download.
import { z } from "zod";
import { documentForm, uniqueId } from "./media.ts";
import { endDrafts, type Method, type MethodCall, method, type Platform, Sending, sendForm } from "./method.ts";
import { CAPTION_LIMIT, readText } from "./text-rules.ts";
import { breach, json, Refused, refuse, text } from "./wire.ts";
import type { StoredFile, World } from "./world.ts";

/** core.telegram.org/bots/api#getfile: "bots can download files of up to 20MB in size". */
const MAX_DOWNLOAD_BYTES = 20 * 1024 * 1024;
/** core.telegram.org/bots/api#senddocument: "files of any type of up to 50 MB in size". */
const MAX_UPLOAD_BYTES = 50 * 1024 * 1024;

const SendDocument = Sending.extend({
  document: z.string().optional(),
  caption: text.optional(),
  caption_entities: json(z.unknown()).optional(),
});
const GetFile = z.looseObject({ file_id: z.string() });

export function fileMethods(platform: Platform): Record<string, Method> {
  const { world } = platform;
  return {
    sendDocument: method(SendDocument, (params, call) => {
      const { room, form } = sendForm(platform, params, call.record);
      const given = { text: params.caption ?? "", parseMode: params.parse_mode, entities: params.caption_entities };
      const { text: caption, entities } = readText(given, CAPTION_LIMIT);
      const file = documentOf(world, params.document, call);
      const captioned = caption !== "" && { caption, ...(entities.length > 0 && { caption_entities: entities }) };
      endDrafts(room, params.message_thread_id);
      return world.add(room, { ...form, document: documentForm(file), ...captioned }, { byBot: true, file }).message;
    }),

    getFile: method(GetFile, ({ file_id }) => {
      const file = world.files.get(file_id);
      if (file === undefined) refuse("wrong file_id or the file is temporarily unavailable");
      if (file.size > MAX_DOWNLOAD_BYTES) refuse("file is too big");
      return { file_id, file_unique_id: uniqueId(file_id), file_size: file.size, file_path: file.path };
    }),
  };
}

/** core.telegram.org/bots/api#sending-files: a known file by its id, or a new one in the form, named there by "attach://". */
function documentOf(world: World, given: string | undefined, { files }: MethodCall): StoredFile {
  const known = given === undefined ? undefined : world.files.get(given);
  if (known !== undefined) return known;
  const upload = files.get(given?.startsWith("attach://") ? given.slice("attach://".length) : "document");
  if (upload === undefined)
    breach(given === undefined ? "there is no document in the request" : "wrong file identifier/HTTP URL specified");
  if (upload.bytes.length === 0) breach("file must be non-empty");
  if (upload.bytes.length > MAX_UPLOAD_BYTES) throw new Refused(413, "Request Entity Too Large", { breach: true });
  return world.addFile(upload);
}

/** The bytes behind `/file/bot<token>/<path>`; core.telegram.org/bots/api#getfile. */
export function download(world: World, path: string): Uint8Array {
  const file = [...world.files.values()].find((stored) => stored.path === path);
  if (file === undefined || file.size > MAX_DOWNLOAD_BYTES) throw new Refused(404, "Not Found");
  return file.bytes;
}
