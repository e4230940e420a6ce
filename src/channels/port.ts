// Owns: what a channel is for the host, whatever platform stands behind it. A channel is a leaf: it is given callbacks and knows
// nothing of agents, sessions, rows or roles.

/** A file that came with a message. Nothing is downloaded until `Channel.download` is called. */
export interface Attachment {
  readonly kind: "image" | "voice" | "audio" | "video" | "document";
  /** The platform's id, by which the channel can download it, also after a restart. */
  readonly ref: string;
  readonly name: string | undefined;
  readonly mediaType: string | undefined;
  /** As the platform says; it may be wrong or absent. */
  readonly bytes: number | undefined;
}

/** What a person (or a bot) did on the platform, in the host's words. */
export interface ChannelEvent {
  /** Unique on this account of this channel for ever, the same at each redelivery (G2). */
  readonly key: string;
  /** Of the raw event, to tell a redelivery from a key that was used again. */
  readonly rawHash: string;
  readonly chat: string;
  readonly thread: string | undefined;
  readonly chatKind: "private" | "group";
  /** The real author of this very event: who edited, who pressed, who forwarded (ID-R6). Undefined: nobody can be held to it. */
  readonly sender: { readonly id: string; readonly name: string; readonly bot: boolean } | undefined;
  /** Why the bot is meant, in a chat of several; a private chat always means it. */
  readonly addressed: "mention" | "reply" | "command" | "none";
  /** The platform's id of the message, for replies to it. */
  readonly ref: string;
  readonly kind: "message" | "edit" | "stop";
  /** With the mention of the bot and the `@bot` of a command taken out. */
  readonly text: string;
  /** What the message answers or quotes, when it does. */
  readonly quoted: { readonly author: string; readonly text: string } | undefined;
  readonly attachments: readonly Attachment[];
  /** Events with the same value belong together (an album); the others stand alone. */
  readonly album: string | undefined;
  /** The text is as long as the platform lets one message be, so that the next one of this sender may be its rest. */
  readonly full: boolean;
}

/** An event that could not be read; it is kept raw so that nothing is lost without a trace. */
export interface UnreadableEvent {
  readonly key: string;
  readonly raw: string;
  readonly problem: string;
}

/** What one receive cycle brought, in the platform's order. */
export interface EventBatch {
  readonly events: readonly (ChannelEvent | UnreadableEvent)[];
  /** Where the platform is to go on, committed together with the events; opaque to the host. */
  readonly position: string;
}

/** One message for the platform, small enough for it. */
export interface RenderedPart {
  /** What people read, and what is sent again plainly when the platform refuses the markup. */
  readonly text: string;
  /** JSON owned by the channel: markup, or that it goes as a file. */
  readonly extra: string | undefined;
}

export interface OutgoingPart extends RenderedPart {
  readonly chat: string;
  readonly thread: string | undefined;
  /** The message that this part answers, on the first part of an answer. */
  readonly replyTo: string | undefined;
  /** The message that becomes this part, instead of a new one: the preview of an answer. */
  readonly editRef: string | undefined;
  /** It may have been sent before: a line says so. */
  readonly again: boolean;
}

/** What became of a part. Only `later` and `unedited` mean that it was certainly not sent and may be repeated. */
export type SendResult =
  | { readonly kind: "sent"; readonly ref: string }
  | { readonly kind: "later"; readonly afterMs: number; readonly wholeAccount: boolean; readonly reason: string }
  | { readonly kind: "refused"; readonly reason: string }
  /** `editRef` cannot become this part, and it is certainly not sent: it is to go again, without `editRef`. */
  | { readonly kind: "unedited"; readonly reason: string }
  /** Bytes may have left and no answer came. */
  | { readonly kind: "ambiguous"; readonly reason: string };

/** The growing text of a turn, shown while it comes. It is decoration: what is lost of it is lost. */
export interface Preview {
  /** The whole text so far. */
  show(text: string): void;
  /**
   * Resolves when nothing of it is in flight any more, within the send timeout: with the message that shows it, undefined when
   * there is none, because none was sent or because what shows it fades by itself. Called again it answers the same.
   */
  end(): Promise<string | undefined>;
  /** After the end: the message is taken away, or says that it was stopped. Never rejects. */
  discard(): Promise<void>;
}

export interface PreviewPlace {
  readonly chat: string;
  readonly chatKind: "private" | "group";
  readonly thread: string | undefined;
  /** The message that the answer answers. */
  readonly replyTo: string | undefined;
  /** The message that shows this turn since an earlier life of the host: it grows on, and no second one is made. */
  readonly ref: string | undefined;
  /** As a message from the first word on, also where the platform has something that fades by itself. */
  readonly asMessage: boolean;
}

export type ChannelState =
  | { readonly state: "starting" }
  | { readonly state: "up"; readonly lastEventAt: number | undefined }
  | { readonly state: "retrying"; readonly reason: string; readonly since: number }
  /** It will not come back by itself: the credential was refused, say. */
  | { readonly state: "stopped"; readonly reason: string; readonly since: number };

/** What the host does for a channel. */
export interface ChannelHost {
  /** The position that was committed last for this identity (the bot's own numeric id), if any (G3). */
  position(identity: string): string | undefined;
  /**
   * Commits the batch and its position in one transaction. The channel tells the platform only after this resolved; when it
   * rejects nothing was kept and the channel asks again for the same events.
   */
  take(identity: string, batch: EventBatch): Promise<void>;
  /** For observers and the owner: the state of the channel changed. */
  changed(state: ChannelState): void;
}

/** One life of a channel, from its start. */
export interface ChannelRun {
  /** Nothing more comes in; sends go on. */
  stopReceiving(): Promise<void>;
  /** Both; waits for what is in flight. */
  stop(): Promise<void>;
}

/** One account on one platform. The same object sends and receives. */
export interface Channel {
  readonly name: string;
  readonly account: string;
  /** Starts to receive; answers at once, whatever the platform says. */
  start(host: ChannelHost): ChannelRun;
  state(): ChannelState;
  /** Pure: the model's Markdown as messages of this platform, in order, none empty. */
  render(markdown: string): readonly RenderedPart[];
  /**
   * Never rejects. Bounded by the send timeout.
   * @param begin awaited when the pace lets the part go, before any byte leaves; when it rejects nothing is sent.
   */
  send(part: OutgoingPart, signal: AbortSignal, begin?: () => Promise<void>): Promise<SendResult>;
  /** No call goes out for so long: the platform asked an earlier host to be left alone, and this one knows it only from rows. */
  hold(ms: number): void;
  /** Shows that work goes on until the returned stop is called. */
  typing(chat: string, thread: string | undefined): () => void;
  /** @param keep called once, when the platform confirmed the message; when it resolves to false no more is shown. */
  preview(place: PreviewPlace, keep: (ref: string) => Promise<boolean>): Preview | undefined;
  /** The bytes of an attachment; rejects when it is larger than `maxBytes` or the platform has it no more. */
  download(ref: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array>;
  /** The commands of the one table, registered where the platform shows them. */
  announceCommands(commands: readonly { readonly name: string; readonly about: string }[]): void;
}
