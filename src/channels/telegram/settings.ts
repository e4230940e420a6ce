// Owns: what the Telegram channel is told about one account. The settings of the host are read elsewhere and are valid here.

export type TelegramSettings = {
  readonly token: string;
  /** Without or with a slash at its end; https://api.telegram.org for the real one. */
  readonly apiRoot: string;
  /** Without a completed poll for so long, the connection is taken for dead. */
  readonly stallMs: number;
} & (
  | { readonly mode: "polling" }
  /** `secret`: 1-256 of A-Z, a-z, 0-9, _ and -. `url`: where Telegram reaches this host. */
  | { readonly mode: "webhook"; readonly url: string; readonly secret: string }
);
