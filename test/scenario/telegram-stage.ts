// Owns: a host that talks on the strict stand-in for Telegram, with a model that echoes.
import { type EchoModel, startEchoModel } from "../support/echo-model.ts";
import { settingsFor } from "../support/host.ts";
import { type FakeTelegram, startTelegram } from "../support/telegram/telegram.ts";
import { startWorld, type World } from "./world.ts";

export const OWNER_ID = 5_000_000_001;

export interface TelegramStage extends AsyncDisposable {
  readonly telegram: FakeTelegram;
  readonly model: EchoModel;
  readonly world: World;
}

interface StageOptions {
  /** Keys of `channels.telegram` besides the token, as YAML flow entries. */
  readonly telegram?: string;
  /** Further settings, as YAML. */
  readonly more?: string;
  readonly pieceMs?: number;
}

/** The owner is user 5000000001; nobody else is let in unless the settings say so. */
export async function startStage(options: StageOptions = {}): Promise<TelegramStage> {
  const telegram = await startTelegram({ limits: false, insecureWebhooks: true });
  const model = await startEchoModel(() => options.pieceMs ?? 1);
  const channel = `{ token: "${telegram.token}", apiRoot: "${telegram.address}"${options.telegram === undefined ? "" : `, ${options.telegram}`} }`;
  const yaml = settingsFor(
    model.baseUrl,
    `owner: [ "telegram:${OWNER_ID}" ]\nchannels: { telegram: ${channel} }\n${options.more ?? ""}`,
  );
  const world = await startWorld(yaml);
  return {
    ...{ telegram, model, world },
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
      await model.stop();
      await telegram.stop();
    },
  };
}

/** What people of a chat see of the bot: the texts of its messages, oldest first. */
export function botTexts(telegram: FakeTelegram, chat: { id: number }): string[] {
  return telegram
    .messages(chat as never)
    .filter((message) => message.byBot)
    .map((message) => message.text ?? "");
}
