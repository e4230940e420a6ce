// Owns: what a message holds besides its text: files as attachments, places and contacts as lines in brackets, what it answers. Pure.
import type { Attachment, ChannelEvent } from "../port.ts";
import type { Chat, Content, File, Message, Origin, User } from "./schema.ts";

/** What models see as pictures, also when a person sends them uncompressed "as a file". */
const IMAGE_TYPES = /^image\/(jpeg|png|webp|gif)$/i;

export function attachmentsOf(content: Content): readonly Attachment[] {
  const { voice, audio, video, video_note: note, animation, document } = content;
  const photo = content.photo?.toSorted((a, b) => b.width * b.height - a.width * a.height)[0];
  return [
    ...optional(photo, "image", "image/jpeg"),
    ...optional(voice, "voice", "audio/ogg"),
    ...optional(audio, "audio"),
    ...optional(video, "video"),
    ...optional(note, "video", "video/mp4"),
    ...optional(animation, "video"),
    // For older clients an animation is repeated as a document: https://core.telegram.org/bots/api#message
    ...(animation === undefined ? optional(document, isImage(document) ? "image" : "document") : []),
  ];
}

function optional(file: File | undefined, kind: Attachment["kind"], mediaType?: string): readonly Attachment[] {
  return file === undefined ? [] : [attachment(kind, file, mediaType)];
}

function attachment(kind: Attachment["kind"], file: File, mediaType: string | undefined): Attachment {
  return {
    kind,
    ref: file.file_id,
    name: file.file_name,
    mediaType: file.mime_type ?? mediaType,
    bytes: file.file_size,
  };
}

function isImage(document: File | undefined): boolean {
  return IMAGE_TYPES.test(document?.mime_type ?? "");
}

/** What is neither text nor a file, as a line in brackets. */
export function noteOf(content: Content): string | undefined {
  const { sticker, dice, venue, location, contact, poll } = content;
  if (sticker) return `[sticker${sticker.emoji === undefined ? "" : `: ${sticker.emoji}`}]`;
  if (dice) return `[dice: ${dice.emoji} shows ${dice.value}]`;
  // A venue carries its location a second time.
  if (venue) return `[venue: ${venue.title}, ${venue.address} (${point(venue.location)})]`;
  if (location) return `[location: ${point(location)}]`;
  if (contact) return `[contact: ${nameOf(contact)}, ${contact.phone_number}]`;
  if (poll) return `[poll: ${poll.question} ${poll.options.map(({ text }) => `(${text})`).join(" ")}]`;
  return undefined;
}

function point({ latitude, longitude }: { latitude: number; longitude: number }): string {
  return `${latitude}, ${longitude}`;
}

/** Says whose words these are; the authority stays that of the person who forwarded them. */
export function forwardNote(message: Message): string | undefined {
  return message.forward_origin === undefined ? undefined : `[forwarded from ${originName(message.forward_origin)}]`;
}

export function quotedOf(message: Message): ChannelEvent["quoted"] {
  const { reply_to_message: replied, external_reply: external, quote } = message;
  if (replied !== undefined && replied.forum_topic_created === undefined) {
    return { author: authorOf(replied.from, replied.sender_chat), text: quote?.text ?? wordsOf(replied) };
  }
  if (external !== undefined) return { author: originName(external.origin), text: quote?.text ?? wordsOf(external) };
  return undefined;
}

/** The words of a message, or what stands in their place. */
function wordsOf(content: Content): string {
  const words = content.text ?? content.caption ?? noteOf(content);
  return (
    words ??
    attachmentsOf(content)
      .map(({ kind }) => `[${kind}]`)
      .join(" ")
  );
}

function originName(origin: Origin): string {
  return origin.sender_user_name ?? authorOf(origin.sender_user, origin.sender_chat ?? origin.chat);
}

function authorOf(from: User | undefined, chat: Chat | undefined): string {
  if (chat !== undefined) return chat.title ?? nameOf(chat);
  return from === undefined ? "unknown" : nameOf(from);
}

export function nameOf(person: { first_name?: string | undefined; last_name?: string | undefined }): string {
  return [person.first_name, person.last_name].filter((name) => name !== undefined && name !== "").join(" ");
}
