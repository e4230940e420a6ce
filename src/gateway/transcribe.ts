// Owns: turning a voice note into text, by an endpoint of OpenAI's form or by a command of the owner's.
import { type ChildProcess, spawn } from "node:child_process";
import { z } from "zod";
import type { Clock } from "../kernel/clock.ts";
import { Aborted } from "../kernel/errors.ts";
import type { Settings } from "../settings/schema.ts";

/** Rejects with what is wrong: the model is told that line. */
export type Transcribe = (
  audio: { readonly bytes: Uint8Array; readonly mediaType: string },
  signal: AbortSignal,
) => Promise<string>;

type TranscribeSettings = NonNullable<Settings["media"]["transcribe"]>;

const LIMIT_MS = 120_000;
const MAX_TEXT_CHARS = 50_000;
/** Room for a transcript of that length in any script, as JSON. */
const MAX_BYTES = 400_000;

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

const transcription = z.looseObject({ text: z.string() });

/** https://platform.openai.com/docs/api-reference/audio/createTranscription; JSON is the one form that all its models give. */
async function byEndpoint(settings: TranscribeSettings, audio: Audio, signal: AbortSignal): Promise<string> {
  const form = new FormData();
  form.set("model", settings.model);
  form.set("file", new Blob([new Uint8Array(audio.bytes)], { type: audio.mediaType }), fileNameOf(audio.mediaType));
  const response = await fetch(`${settings.baseUrl.replace(/\/$/, "")}/audio/transcriptions`, {
    method: "POST",
    body: form,
    headers: settings.apiKey === undefined ? {} : { authorization: `Bearer ${settings.apiKey}` },
    signal,
  });
  if (!response.ok) {
    await response.body?.cancel();
    throw new Error(`the transcription endpoint answered ${response.status}`);
  }
  const body = await beginningOf(response.body ?? []);
  const isJson = response.headers.get("content-type")?.includes("json") === true;
  return isJson ? transcription.parse(JSON.parse(body)).text : body;
}

/** Endpoints go by the ending: `audio/x-wav` is a wav. */
function fileNameOf(mediaType: string): string {
  return `audio.${/^audio\/(?:x-)?([a-z0-9]+)/i.exec(mediaType)?.[1]?.toLowerCase() ?? "ogg"}`;
}

/** As much as is of use; the rest is read and thrown away, so that the other side is not blocked. */
async function beginningOf(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<string> {
  const kept: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    if (bytes < MAX_BYTES) kept.push(chunk);
    bytes += chunk.byteLength;
  }
  return Buffer.concat(kept).toString("utf8");
}

/** The command gets the audio on its standard input and writes the text to its standard output. No shell is involved. */
async function byCommand(
  [program = "", ...args]: readonly string[],
  audio: Audio,
  signal: AbortSignal,
): Promise<string> {
  if (signal.aborted) throw new Aborted(signal.reason);
  const stopped = Promise.withResolvers<never>();
  // A group of its own, so that what it starts ends with it. What still holds its output then is not waited for.
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "ignore"], detached: true });
  const stop = () => {
    killGroup(child);
    stopped.reject(signal.reason);
  };
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([stopped.promise, outputOf(child, audio)]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

async function outputOf(child: ChildProcess, audio: Audio): Promise<string> {
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on("error", (thrown) => reject(new Error(`the transcription command could not be run: ${thrown.message}`)));
    child.once("close", resolve);
  });
  // A command that does not read to the end closes the pipe; its exit code says whether that was right.
  child.stdin?.on("error", () => {});
  child.stdin?.end(audio.bytes);
  const [text, code] = await Promise.all([beginningOf(child.stdout ?? []), ended]);
  if (code !== 0) throw new Error(`the transcription command ended with code ${String(code)}`);
  return text;
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has ended already, or this system knows no groups.
    child.kill("SIGKILL");
  }
  child.stdout?.destroy();
}
