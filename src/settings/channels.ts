// Owns: the settings of channels: which account, who may write, how it receives. What involves two keys is in checks.ts.
import { z } from "zod";

/** The one kind of identity that grants anything: a platform's own number (ID-R1). */
const senderId = z
  .string()
  .regex(/^\d{1,20}$/, 'expected a numeric id such as "123456789" (names change hands, so they grant nothing)');
const chatId = z.string().regex(/^-?\d{1,20}$/, 'expected the numeric id of a chat such as "-1001234567890"');
/** Part of session keys, so no colon. */
const accountName = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,31}$/, "expected a name of small letters, digits, - and _ that begins with a letter")
  .refine((name) => name !== "default", '"default" is the account of the token beside `accounts`');

const telegramGroup = z.strictObject({
  mention: z
    .boolean()
    .default(true)
    .describe("Whether only messages that mention the bot, answer it or are commands are taken."),
  allow: z
    .array(senderId)
    .optional()
    .describe("Numeric ids of those who may write here. Absent: every member, as a guest."),
});

const telegramAccount = {
  token: z
    .string()
    .regex(/^\d{1,20}:[\w-]+$/, "expected a bot token as BotFather gives it: a number, a colon and letters")
    .meta({ description: "The bot's token.", writeOnly: true }),
  tokenFile: z.string().min(1).optional().describe("File (mode 0600) that holds the token, instead of `token`."),
  apiRoot: z
    .url({ protocol: /^https?$/, error: 'expected an http or https address such as "https://api.telegram.org"' })
    .default("https://api.telegram.org")
    .describe("Address of the Bot API server."),
  mode: z.enum(["polling", "webhook"]).default("polling").describe("How updates come in."),
  webhookUrl: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(
      "Where Telegram reaches this host's /channels/telegram/webhook from outside; needed for `mode: webhook`.",
    ),
  dm: z
    .enum(["pairing", "allowlist", "open", "off"])
    .default("pairing")
    .describe(
      "Who may write privately: whom the owner approved, only `allow`, everybody as a guest, or the owner alone.",
    ),
  allow: z.array(senderId).default([]).describe("Numeric ids that may write privately. Says nothing about groups."),
  stallMs: z
    .int()
    .min(5_000)
    .default(120_000)
    .describe("Without a completed poll for so long, the connection is taken for dead and made anew."),
  groups: z
    .record(chatId, telegramGroup)
    .default({})
    .describe("The groups in which the bot answers, by chat id; in others it says nothing."),
  ambiguous: z
    .enum(["resend", "hold", "edit"])
    .default("resend")
    .describe(
      "A message that may or may not have arrived: sent again once and marked, left for `/resend`, or (`edit`) an edit of the message in which the answer grew, which can be repeated unseen; what has none is left for `/resend`.",
    ),
};

const telegram = z.strictObject({
  ...telegramAccount,
  accounts: z
    .record(accountName, z.strictObject(telegramAccount))
    .default({})
    .describe("Further bots by name, each with all of these keys but `accounts`."),
});

const web = z.strictObject({
  enabled: z.boolean().default(true).describe("Whether the web page with its chat is served."),
});

export const channels = z.strictObject({
  web: web.prefault({}).describe("The web page."),
  telegram: telegram.optional().describe("Telegram. Absent: not used."),
});

export type TelegramAccount = Omit<z.infer<typeof telegram>, "accounts">;
