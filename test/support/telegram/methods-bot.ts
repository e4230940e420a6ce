// Owns: the methods about the bot itself and what it may ask about chats: updates, webhook, commands, chats, queries.
import { z } from "zod";
import { type Method, method, type Platform } from "./method.ts";
import { breach, int, json, Refused, refuse, text } from "./wire.ts";
import { chatForm } from "./world.ts";

// core.telegram.org/bots/api#setmycommands: "At most 100 commands can be specified."
const MAX_COMMANDS = 100;

// core.telegram.org/bots/api#botcommand
const Command = z.looseObject({
  command: z.string().regex(/^[a-z0-9_]{1,32}$/, "BOT_COMMAND_INVALID"),
  description: text.min(1, "BOT_COMMAND_DESCRIPTION_INVALID").max(256, "BOT_COMMAND_DESCRIPTION_INVALID"),
});
// core.telegram.org/bots/api#botcommandscope
const SCOPES =
  `default all_private_chats all_group_chats all_chat_administrators chat chat_administrators chat_member`.split(" ");
const Scope = z.looseObject({ type: z.enum(SCOPES), chat_id: int.optional(), user_id: int.optional() });
const Scoped = z.looseObject({ scope: json(Scope).optional(), language_code: z.string().optional() });
const SetCommands = Scoped.extend({ commands: json(z.array(Command)) });

const Chat = z.looseObject({ chat_id: int });
const Member = z.looseObject({ chat_id: int, user_id: int });
// core.telegram.org/bots/api#answercallbackquery: text of "0-200 characters".
const Answer = z.looseObject({ callback_query_id: z.string(), text: text.max(200, "MESSAGE_TOO_LONG").optional() });

export function botMethods(platform: Platform): Record<string, Method> {
  const { world, updates, webhook, queries } = platform;
  const commands = new Map<string, unknown>();
  return {
    /** core.telegram.org/bots/api#getme, with the fields that only this method returns. */
    getMe: () => ({
      ...world.bot,
      ...{ can_join_groups: true, can_read_all_group_messages: true, supports_inline_queries: false },
      ...{ can_connect_to_business: false, has_main_web_app: false, has_topics_enabled: true },
    }),

    getUpdates: ({ record, gone }) => {
      if (webhook.active()) throw webhookActive();
      return updates.poll(record, gone);
    },
    setWebhook: ({ record }) => webhook.set(record.params),
    deleteWebhook: ({ record }) => webhook.remove(record.params),
    getWebhookInfo: () => webhook.info(),

    setMyCommands: method(SetCommands, (params) => {
      if (params.commands.length > MAX_COMMANDS) breach("BOT_COMMANDS_TOO_MUCH");
      const names = params.commands.map(({ command }) => command);
      if (new Set(names).size < names.length) breach("BOT_COMMAND_DUPLICATE");
      commands.set(scopeKey(params), params.commands);
      return true;
    }),
    getMyCommands: method(Scoped, (params) => commands.get(scopeKey(params)) ?? []),

    /** core.telegram.org/bots/api#chatfullinfo */
    getChat: method(Chat, ({ chat_id }) => {
      const room = world.room(chat_id);
      if (room === undefined) refuse("chat not found");
      return { ...chatForm(room), accent_color_id: 0, max_reaction_count: 11 };
    }),
    getChatMember: method(Member, ({ chat_id, user_id }) => {
      const room = world.room(chat_id);
      if (room === undefined) refuse("chat not found");
      const user = room.members.get(user_id);
      if (user !== undefined) return { status: "member", user };
      const stranger = world.people.get(user_id);
      if (stranger === undefined) refuse("user not found");
      return { status: "left", user: stranger };
    }),

    answerCallbackQuery: method(Answer, ({ callback_query_id }) => {
      const query = queries.get(callback_query_id);
      if (query === undefined || query.answered)
        refuse("query is too old and response timeout expired or query ID is invalid");
      query.answered = true;
      return true;
    }),
  };
}

/** core.telegram.org/bots/api#getupdates: "This method will not work if an outgoing webhook is set up." */
function webhookActive(): Refused {
  const what = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
  return new Refused(409, `Conflict: ${what}`, { breach: true });
}

function scopeKey({ scope, language_code }: z.infer<typeof Scoped>): string {
  return JSON.stringify([scope ?? { type: "default" }, language_code ?? ""]);
}
