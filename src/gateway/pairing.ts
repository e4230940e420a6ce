// Owns: how a stranger is let in: he is told a code once an hour, the owner types it on a surface of his own (ID-R2). Codes and
// the count of wrong ones are rows, so that a restart forgives nothing (ID-2, ID-4).
import { timingSafeEqual } from "node:crypto";
import type { Clock } from "../kernel/clock.ts";
import { Forbidden, InvalidInput, NotFound } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import { OWNER } from "../queue/lane.ts";
import type { Peer, PeerKey } from "../store/peers.ts";
import type { Store, Tx } from "../store/store.ts";

/** ID-2: at least 40 bit, 10 min, 5 wrong a request, 10 wrong a channel and hour. ID-4: 20 pending, one line a sender and hour. */
const CODE_BITS = 48;
const CODE_LIFE_MS = 600_000;
const WRONG_A_REQUEST = 5;
const WRONG_AN_HOUR = 10;
const HOUR_MS = 3_600_000;
const MAX_PENDING = 20;

interface PairingDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** Inside a write: what to tell a stranger, or undefined when he has been told within the hour, or too many wait. */
export function invite(
  tx: Tx,
  key: PeerKey,
  name: string,
  { clock, ids }: Omit<PairingDeps, "store">,
): string | undefined {
  const now = clock.now();
  const known = tx.peers.get(key);
  if (known !== undefined && now - known.toldAt < HOUR_MS) return undefined;
  if (tx.peers.pending(now).length >= MAX_PENDING) return undefined;
  const code = newCode(ids);
  if (!tx.peers.ask(key, { name, code, expiresAt: now + CODE_LIFE_MS }, now)) return undefined;
  return [
    "This is a private assistant. If its owner knows you, give him this code within ten minutes:",
    `\`${code}\``,
    "He lets you in with `laneway pairing approve CODE`.",
  ].join("\n");
}

/** Lets the sender of a code in. Throws Forbidden while a channel is blocked, NotFound for a code that is none. */
export async function approve(code: string, { store, clock }: PairingDeps): Promise<Peer> {
  const now = clock.now();
  // One write from the look to the count, so that guesses that come at once count like those that come one by one.
  const approved = await store.write("pairing", (tx) => {
    const waiting = tx.peers.pending(now).filter((peer) => peer.code !== undefined);
    const channels = new Set(waiting.map((peer) => peer.channel));
    checkNotBlocked(tx, channels, now);
    // Every code is compared, so that the time tells nothing.
    const [found] = waiting.filter((peer) => isSame(code, peer.code ?? ""));
    if (found !== undefined && tx.peers.approve(found, code, now)) {
      const detail = { name: found.name };
      tx.audit.add({ actor: OWNER, action: "pairing.approve", target: targetOf(found), detail }, now);
      return { ...found, state: "approved" as const, code: undefined };
    }
    tx.audit.add({ actor: OWNER, action: "pairing.wrong-code", target: [...channels].join(" "), detail: {} }, now);
    for (const channel of channels) tx.peers.missed(channel, WRONG_A_REQUEST, now);
    return undefined;
  });
  if (approved !== undefined) return approved;
  throw new NotFound("no request has this code", {
    hint: "A code holds for ten minutes and is void after five wrong tries; the sender gets a new one by writing again after an hour.",
  });
}

function checkNotBlocked(tx: Tx, channels: Iterable<string>, now: number): void {
  for (const channel of channels) {
    if (tx.peers.misses(channel, now - HOUR_MS) < WRONG_AN_HOUR) continue;
    throw new Forbidden(`${WRONG_AN_HOUR} wrong codes came within an hour; ${channel} takes none for now`, {
      hint: "Wait an hour, or add the sender's numeric id to `allow` in the settings.",
    });
  }
}

/** Shuts a sender out, who asked or was let in. `peer` as `pairing.list` shows it: channel:account:sender. */
export async function deny(peer: string, { store, clock }: PairingDeps): Promise<Peer> {
  const [channel = "", account = "", sender = "", ...more] = peer.split(":");
  if (sender === "" || more.length > 0) {
    throw new InvalidInput(
      `expected channel:account:sender such as "telegram:default:123456789", but got ${JSON.stringify(peer)}`,
    );
  }
  const known = store.read.peers.get({ channel, account, sender });
  if (known === undefined)
    throw new NotFound(`nobody asked as ${peer}`, { hint: "`laneway pairing list` shows them." });
  await store.write("pairing", (tx) => {
    tx.audit.add({ actor: OWNER, action: "pairing.deny", target: peer, detail: { from: known.state } }, clock.now());
    tx.peers.deny(known, clock.now());
  });
  return { ...known, state: "denied", code: undefined };
}

export function targetOf({ channel, account, sender }: PeerKey): string {
  return `${channel}:${account}:${sender}`;
}

/** Hexadecimal: easy to say and to type, and never like an option of the command line. */
function newCode(ids: Ids): string {
  return Buffer.from(ids.random(CODE_BITS), "base64url").toString("hex");
}

function isSame(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}
