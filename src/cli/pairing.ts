// Owns: `laneway pairing …`: who asked to be let in by a channel, and the owner's word on it.
import { EXIT, type ExitCode } from "../kernel/errors.ts";
import { ask } from "./host/ask.ts";
import { type PeerRow, peer, peers } from "./host/replies.ts";
import { jsonLine } from "./print/json.ts";
import { readersNow, writeListing } from "./print/listing.ts";
import { instantText } from "./print/words.ts";
import type { JsonOption, Shell } from "./shell.ts";

interface ListOptions extends JsonOption {
  readonly limit?: number | undefined;
}

export async function pairingList(shell: Shell, { json, limit }: ListOptions): Promise<ExitCode> {
  const { peers: rows } = await ask(shell, "pairing.list", { limit }, peers);
  const now = readersNow(shell);
  const columns = [
    { title: "ID", cell: ({ id }: PeerRow) => id },
    { title: "STATE", cell: ({ state }: PeerRow) => state },
    { title: "NAME", cell: ({ name }: PeerRow) => name },
    { title: "CODE HOLDS UNTIL", cell: ({ expiresAt }: PeerRow) => instantText(expiresAt, now) },
  ];
  return writeListing(shell, { rows, columns, none: "nobody has asked", json });
}

/** Lets the sender in to whom this code was shown. */
export async function pairingApprove(shell: Shell, code: string, { json }: JsonOption): Promise<ExitCode> {
  return say(shell, await ask(shell, "pairing.approve", { code }, peer), "may write now", json);
}

/** Shuts a sender out. */
export async function pairingDeny(shell: Shell, id: string, { json }: JsonOption): Promise<ExitCode> {
  return say(shell, await ask(shell, "pairing.deny", { peer: id }, peer), "is shut out", json);
}

async function say(shell: Shell, found: PeerRow, what: string, json: boolean | undefined): Promise<ExitCode> {
  await shell.out.write(json ? jsonLine(found) : `${found.name} (${found.id}) ${what}\n`);
  return EXIT.ok;
}
