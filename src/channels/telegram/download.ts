// Owns: fetching the bytes of an attachment. Never more of them than was asked for, and never the token in an error: the address of
// a file holds it, so no error of the connection is passed on.
import { z } from "zod";
import type { Clock } from "../../kernel/clock.ts";
import { InvalidInput, NotFound, systemCode } from "../../kernel/errors.ts";
import type { Account } from "./account.ts";

const LOOKUP_MS = 30_000;
/** The Bot API gives out files of up to 20 MB: https://core.telegram.org/bots/api#getfile */
const FETCH_MS = 120_000;

const fileSchema = z.looseObject({ file_path: z.string().optional(), file_size: z.number().optional() });

export interface Download {
  readonly ref: string;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/**
 * @throws InvalidInput when the file is larger than `maxBytes` or than Telegram gives out, NotFound when it is gone, Error when it
 * could not be fetched now.
 */
export async function download(
  deps: { account: Account; clock: Clock; token: string; apiRoot: string },
  wanted: Download,
): Promise<Uint8Array> {
  const path = await pathOf(deps.account, wanted);
  const address = [
    deps.apiRoot.replace(/\/+$/, ""),
    "file",
    `bot${deps.token}`,
    ...path.split("/").map(encodeURIComponent),
  ];
  const end = new AbortController();
  const stopTimer = deps.clock.after(FETCH_MS, () => end.abort(), { keepAlive: false });
  try {
    const signal = AbortSignal.any([end.signal, wanted.signal]);
    return await fetched(address.join("/"), wanted.maxBytes, signal);
  } finally {
    stopTimer();
  }
}

async function pathOf(account: Account, { ref, maxBytes, signal }: Download): Promise<string> {
  const answer = await account.now((api, apiSignal): Promise<unknown> => api.getFile({ file_id: ref }, apiSignal), {
    limitMs: LOOKUP_MS,
    signal,
  });
  if (!answer.ok) {
    const { fault } = answer;
    if (fault.kind !== "answered" || fault.code !== 400)
      throw new Error(`the file could not be looked up: ${fault.reason}`);
    if (/too big/i.test(fault.reason)) throw tooLarge("20 MB, which is what Telegram gives out");
    throw new NotFound(`Telegram does not have the file any more (${fault.reason})`);
  }
  const { file_path: path, file_size: bytes } = fileSchema.parse(answer.result);
  if (bytes !== undefined && bytes > maxBytes) throw tooLarge(`${maxBytes} bytes`);
  // A server that runs with --local answers with a path on its own disk.
  if (path === undefined || path.startsWith("/")) throw new NotFound("Telegram names no address for the file");
  return path;
}

async function fetched(address: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
  const response = await fetch(address, { signal, redirect: "error" }).catch(unfetched);
  if (response.status === 404) throw new NotFound("Telegram does not have the file any more");
  if (!response.ok || response.body === null)
    throw new Error(`the file could not be fetched: status ${response.status}`);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch(unfetched);
    if (done) return Buffer.concat(chunks);
    bytes += value.byteLength;
    if (bytes > maxBytes) {
      await reader.cancel();
      throw tooLarge(`${maxBytes} bytes`);
    }
    chunks.push(value);
  }
}

function unfetched(thrown: unknown): never {
  const code = systemCode(thrown instanceof Error ? thrown.cause : thrown);
  throw new Error(`the file could not be fetched: the connection failed (${code ?? "no code"})`);
}

function tooLarge(limit: string): InvalidInput {
  return new InvalidInput(`the file is larger than ${limit}`);
}
