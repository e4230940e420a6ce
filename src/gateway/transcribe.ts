// Owns: turning a voice note into text, by an endpoint of OpenAI's form or by a command of the owner's.
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Clock } from "../kernel/clock.ts";
import type { Settings } from "../settings/schema.ts";

/** Rejects with what is wrong: the model is told that line. */
export type Transcribe = (
  audio: { readonly bytes: Uint8Array; readonly mediaType: string },
  signal: AbortSignal,
) => Promise<string>;

type TranscribeSettings = NonNullable<Settings["media"]["transcribe"]>;

const LIMIT_MS = 120_000;
const MAX_TEXT_CHARS = 50_000;

export function makeTranscribe(settings: TranscribeSettings, clock: Clock): Transcribe {
  return async (audio, signal) => {
    const late = new AbortController();
    const stopLimit = clock.after(LIMIT_MS, () =>
      late.abort(new Error(`the transcription took longer than ${LIMIT_MS / 1_000} s`)),
    );
    const either = AbortSignal.any([signal, late.signal]);
    try {
      const text =
        settings.command === undefined
          ? await byEndpoint(settings, audio, either)
          : await byCommand(settings.command, audio, either);
      return text.slice(0, MAX_TEXT_CHARS);
    } finally {
      stopLimit();
    }
  };
}

type Audio = Parameters<Transcribe>[0];

/** https://platform.openai.com/docs/api-reference/audio/createTranscription */
async function byEndpoint(settings: TranscribeSettings, audio: Audio, signal: AbortSignal): Promise<string> {
  const form = new FormData();
  form.set("model", settings.model);
  form.set("response_format", "text");
  form.set(
    "file",
    new Blob([new Uint8Array(audio.bytes)], { type: audio.mediaType }),
    `audio.${audio.mediaType.split("/")[1] ?? "ogg"}`,
  );
  const headers: Record<string, string> =
    settings.apiKey === undefined ? {} : { authorization: `Bearer ${settings.apiKey}` };
  const response = await fetch(`${settings.baseUrl.replace(/\/$/, "")}/audio/transcriptions`, {
    method: "POST",
    body: form,
    headers,
    signal,
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`the transcription endpoint answered ${response.status}`);
  return text;
}

/** The command gets the audio on its standard input and writes the text to its standard output. No shell is involved. */
async function byCommand(
  [program = "", ...args]: readonly string[],
  audio: Audio,
  signal: AbortSignal,
): Promise<string> {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "ignore"], signal });
  const ended = once(child, "close");
  // A command that does not read to the end closes the pipe; its exit code says whether that was right.
  child.stdin.on("error", () => {});
  child.stdin.end(audio.bytes);
  const chunks: Buffer[] = [];
  for await (const chunk of child.stdout) chunks.push(Buffer.from(chunk));
  const [code] = await ended;
  if (code !== 0) throw new Error(`the transcription command ended with code ${String(code)}`);
  return Buffer.concat(chunks).toString("utf8");
}
