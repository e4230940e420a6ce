// Owns: who is let in by a channel, and in which role; decided at acceptance from the settings and from what the owner approved.
// Unknown means no (ID-R1 … ID-R5); it costs no model call and no tool call (G22).
import type { ChannelEvent } from "../channels/port.ts";
import { OWNER } from "../queue/lane.ts";
import type { TelegramAccount } from "../settings/channels.ts";
import type { Role } from "../store/commands.ts";
import type { Reads } from "../store/store.ts";

/** What the settings say of one account, read at every event, so that a revocation works at once. */
export type AccessRules = Pick<TelegramAccount, "dm" | "allow" | "groups">;

export type Admission =
  /** `actor` is on whose authority the command runs: all of the owner's ids count as one. */
  | { readonly kind: "in"; readonly role: Role; readonly actor: string }
  /** A stranger who may ask the owner to be let in. */
  | { readonly kind: "ask-owner" }
  /** Nothing is said: a group that is not ours, a message that is not for the bot, a sender who may not. */
  | { readonly kind: "ignored" };

const IGNORED: Admission = { kind: "ignored" };

export interface AdmissionDeps {
  readonly channel: string;
  readonly account: string;
  readonly rules: AccessRules;
  /** As in `telegram:123`. */
  readonly owners: readonly string[];
  readonly read: Pick<Reads, "peers">;
}

/** The decision about one event. Reads rows, writes none. */
export function admit(event: ChannelEvent, deps: AdmissionDeps): Admission {
  const { sender } = event;
  // Anonymous administrators, channel posts, other bots: nobody can be held to it (ID-3, Q12.4).
  if (sender === undefined || sender.bot) return IGNORED;
  const isOwner = deps.owners.includes(`${deps.channel}:${sender.id}`);
  return event.chatKind === "private"
    ? admitPrivately(sender.id, isOwner, deps)
    : admitInGroup(event, sender.id, isOwner, deps);
}

function admitPrivately(id: string, isOwner: boolean, { channel, account, rules, read }: AdmissionDeps): Admission {
  if (isOwner) return { kind: "in", role: "owner", actor: OWNER };
  if (rules.dm === "off") return IGNORED;
  const actor = actorOf(channel, account, id);
  if (rules.allow.includes(id)) return { kind: "in", role: "user", actor };
  if (rules.dm === "pairing") {
    const peer = read.peers.get({ channel, account, sender: id });
    return peer?.state === "approved" ? { kind: "in", role: "user", actor } : { kind: "ask-owner" };
  }
  return rules.dm === "open" ? { kind: "in", role: "guest", actor } : IGNORED;
}

/** Being let in privately says nothing about a group (ID-R3). */
function admitInGroup(
  event: ChannelEvent,
  id: string,
  isOwner: boolean,
  { channel, account, rules }: AdmissionDeps,
): Admission {
  const group = Object.hasOwn(rules.groups, event.chat) ? rules.groups[event.chat] : undefined;
  if (group === undefined) return IGNORED;
  // A button of the bot's own message is meant for it.
  if (group.mention && event.addressed === "none" && event.kind !== "stop") return IGNORED;
  if (isOwner) return { kind: "in", role: "owner", actor: OWNER };
  const actor = actorOf(channel, account, id);
  if (group.allow === undefined) return { kind: "in", role: "guest", actor };
  return group.allow.includes(id) ? { kind: "in", role: "user", actor } : IGNORED;
}

/** Who wrote: channel, account and the platform's own number. */
export function actorOf(channel: string, account: string, sender: string): string {
  return `${channel}:${account}:${sender}`;
}
