// Owns: what becomes of a part of which nobody knows whether it arrived, and how its owner is told (G4). SQL only, inside a write.
import type { Clock } from "../kernel/clock.ts";
import { type Route, routeOf } from "../store/commands.ts";
import type { Part, PartClass, Settled } from "../store/outbox.ts";
import type { Tx } from "../store/store.ts";
import type { Delivery, Placed } from "./delivery.ts";

/**
 * What a part of unknown outcome becomes: sent again once and marked, or left for the owner to decide. With `edit` answers are
 * edits of the message in which they grew, of which no outcome is unknown; what is no edit is left for the owner.
 */
export type Ambiguous = "resend" | "hold" | "edit";

/** A direct answer of unknown outcome goes once more only while its person still waits for it. */
const RESEND_WITHIN_MS = 600_000;
/** An answer is of use for a day, a notice for an hour. */
const TTL_MS: Readonly<Record<PartClass, number>> = { answer: 86_400_000, failure: 86_400_000, notice: 3_600_000 };
const HOST_ENDED = "the host ended while it was being sent";

/** sending → ready: unmarked for an edit, once and marked for a direct answer; else a person decides. */
export function afterAmbiguous(part: Part, reason: string, policy: Ambiguous, now: number): Settled {
  // It has the same effect however often it is made.
  if (part.editRef !== undefined) return { state: "ready", reason };
  // Nobody asked for it, so nobody waits for it.
  if (part.command === undefined) return { state: "held", reason };
  const mayGoAgain = policy === "resend" && !part.again && now - part.createdAt <= RESEND_WITHIN_MS;
  return mayGoAgain ? { state: "ready", reason, again: true } : { state: "unknown", reason };
}

export function isExpired(part: Part, now: number): boolean {
  return now - (part.resentAt ?? part.createdAt) > TTL_MS[part.class];
}

/** What went wrong with it is listed, and causes no further notice. */
export function isNoticeToOwner(part: Part, delivery: Pick<Delivery, "isOwners">): boolean {
  return part.command === undefined && delivery.isOwners(routeOf(part.chatKey));
}

interface Recovered {
  /** The notice to the owner, when there is something to tell. */
  readonly told: Placed | undefined;
  /** What is to go out, in order. */
  readonly ready: readonly Placed[];
  /** By account until when the platform asked for quiet. */
  readonly windows: ReadonlyMap<string, number>;
}

interface RecoverDeps {
  readonly clock: Clock;
  readonly outlet: (route: Route) => { readonly ambiguous: Ambiguous } | undefined;
  readonly delivery: Pick<Delivery, "tellOwner" | "isOwners">;
}

/** At boot: what an earlier host was sending has an unknown outcome; the owner is told of all in one notice. */
export function recoverOutbox(tx: Tx, deps: RecoverDeps): Recovered {
  const now = deps.clock.now();
  const ready: Placed[] = [];
  const windows = new Map<string, number>();
  const doubtful: Part[] = [];
  // Read first: the rows change below.
  for (const part of [...tx.outbox.undelivered()]) {
    const state = stateAtBoot(tx, part, deps);
    if (state === "unknown" || state === "held") doubtful.push(part);
    if (state !== "ready") continue;
    ready.push({ chatKey: part.chatKey, parts: [part.id] });
    const account = accountOf(routeOf(part.chatKey));
    if (part.notBefore > now) windows.set(account, Math.max(part.notBefore, windows.get(account) ?? 0));
  }
  return {
    ready,
    windows,
    told: doubtful.length === 0 ? undefined : deps.delivery.tellOwner(tx, doubtfulText(doubtful, deps.delivery)),
  };
}

/** The state that it has now; undefined for what is none of ours: a pull door's, or begun by this host already. */
function stateAtBoot(tx: Tx, part: Part, { clock, outlet }: RecoverDeps): Settled["state"] | undefined {
  const found = outlet(routeOf(part.chatKey));
  if (found === undefined) return undefined;
  if (part.state === "ready") return "ready";
  if (part.generation === tx.generation) return undefined;
  const settled = afterAmbiguous(part, HOST_ENDED, found.ambiguous, clock.now());
  tx.outbox.settle(part.id, settled, tx.generation);
  return settled.state;
}

export function accountOf(route: Route): string {
  return `${route.channel}:${route.account}`;
}

export function undeliveredText(part: Part, { state, reason }: Settled): string {
  const what = state === "failed" ? "was not delivered" : "may not have arrived";
  return `A message to ${part.chatKey} ${what}: ${reason}. \`/resend ${part.id}\` sends it again.`;
}

/** Enough to act on; `laneway outbox list` has them all. */
const MAX_LISTED = 10;

/** A notice that was lost is repeated in the next one up to this length, so that a host that dies at each start makes no heap. */
const MAX_REPEATED_CHARS = 3_000;

/** What a lost notice told of would otherwise be told of by nobody (G4): it is repeated. */
function doubtfulText(parts: readonly Part[], delivery: Pick<Delivery, "isOwners">): string {
  const lines = parts.slice(0, MAX_LISTED).map((part) => `- ${part.chatKey}: \`/resend ${part.id}\``);
  const more =
    parts.length > MAX_LISTED ? [`- and ${parts.length - MAX_LISTED} more, see \`laneway outbox list\``] : [];
  const repeated = parts
    .filter((part) => isNoticeToOwner(part, delivery) && part.text.length <= MAX_REPEATED_CHARS)
    .map((part) => `\nOf these, ${part.id} was a notice to you:\n\n${part.text}`);
  return [
    "The host ended while these messages were being sent; they may not have arrived:",
    ...[...lines, ...more, ...repeated],
  ].join("\n");
}
