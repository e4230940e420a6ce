// Owns: the form of what the host answers, as far as this side reads it. Fields that a newer host adds pass through.
import { z } from "zod";

/** An instant as ISO 8601, whichever way the host writes it. */
const instant = z.union([z.string(), z.number().transform((ms) => new Date(ms).toISOString())]);
const state = z.string();
const id = z.int();

export const accepted = z.looseObject({ command: id, seq: id, duplicate: z.boolean() });

const outcome = z.looseObject({ reason: z.string().optional(), message: z.string().optional() });
const part = z.looseObject({ seq: id, class: z.string(), text: z.string() });
export const waited = z.looseObject({
  command: id,
  state,
  final: z.boolean(),
  parts: z.array(part),
  outcome: outcome.optional(),
});
export type Waited = z.infer<typeof waited>;

const personItem = z.looseObject({
  kind: z.literal("person"),
  seq: id,
  command: id,
  text: z.string(),
  at: instant,
  state,
});
const partItem = z.looseObject({
  kind: z.literal("part"),
  seq: id,
  command: id.optional(),
  text: z.string(),
  at: instant,
  state,
  class: z.string(),
});
export const item = z.discriminatedUnion("kind", [personItem, partItem]);
export type PartItem = z.infer<typeof partItem>;
export type Item = z.infer<typeof item>;
export const history = z.looseObject({ items: z.array(item), more: z.boolean() });
export const acknowledged = z.looseObject({ acknowledged: z.number() });

const lane = z.looseObject({
  lane: z.string(),
  size: z.number(),
  running: z.number(),
  queued: z.number(),
  oldestWaitMs: z.number().optional(),
});
export type Lane = z.infer<typeof lane>;
export const lanes = z.looseObject({ lanes: z.array(lane) });

export const status = z.looseObject({
  version: z.string(),
  generation: z.number(),
  pid: z.number().optional(),
  startedAt: instant.optional(),
  uptimeMs: z.number(),
  settings: z.looseObject({ state, path: z.string().optional(), problem: z.string().optional() }),
  lanes: z.array(lane),
  channels: z.array(
    z.looseObject({
      name: z.string(),
      state,
      reason: z.string().optional(),
      since: instant.optional(),
      lastEventAt: instant.optional(),
    }),
  ),
  backends: z.array(
    z.looseObject({
      name: z.string(),
      kind: z.string().optional(),
      model: z.string().optional(),
      state,
      class: z.string().optional(),
    }),
  ),
  store: z.looseObject({ paused: z.boolean() }).optional(),
  counts: z.looseObject({
    queued: z.number(),
    running: z.number(),
    outbox: z.record(z.string(), z.number()).optional(),
  }),
});
export type Status = z.infer<typeof status>;

const command = z.looseObject({
  id,
  state,
  lane: z.string(),
  priority: z.number(),
  session: z.string(),
  source: z.string(),
  acceptedAt: instant,
  startedAt: instant.optional(),
  finishedAt: instant.optional(),
  waitedMs: z.number().optional(),
  strikes: z.number(),
  position: z.number().optional(),
  preview: z.string(),
});
export type CommandRow = z.infer<typeof command>;
export const commands = z.looseObject({ commands: z.array(command) });

const step = z.looseObject({
  n: z.number(),
  kind: z.string(),
  name: z.string(),
  state,
  startedAt: instant,
  endedAt: instant.optional(),
});
export type StepRow = z.infer<typeof step>;
export const shownCommand = z.looseObject({
  command: command.extend({ claim: z.number(), generation: z.number().optional(), outcome: outcome.optional() }),
  steps: z.array(step),
  parts: z.array(z.looseObject({ id, state, class: z.string() })),
});

export const changed = z.looseObject({ id, state });
export const retried = z.looseObject({ id, of: id });

const outboxPart = z.looseObject({
  id,
  chat: z.string(),
  command: id.optional(),
  class: z.string(),
  state,
  attempts: z.number(),
  reason: z.string().optional(),
  createdAt: instant,
  sentAt: instant.optional(),
  preview: z.string(),
});
export type OutboxRow = z.infer<typeof outboxPart>;
export const outboxParts = z.looseObject({ parts: z.array(outboxPart) });

const session = z.looseObject({
  key: z.string(),
  agent: z.string(),
  channel: z.string().optional(),
  chat: z.string().optional(),
  messages: z.number(),
  lastAt: instant.optional(),
});
export type SessionRow = z.infer<typeof session>;
export const sessions = z.looseObject({ sessions: z.array(session) });

const message = z.looseObject({ id, role: z.string(), text: z.string(), at: instant });
export type MessageRow = z.infer<typeof message>;
export const shownSession = z.looseObject({ session: z.looseObject({ key: z.string() }), messages: z.array(message) });

export const peer = z.looseObject({ id: z.string(), name: z.string(), state, expiresAt: instant.optional() });
export type PeerRow = z.infer<typeof peer>;
export const peers = z.looseObject({ peers: z.array(peer) });

export const link = z.looseObject({ url: z.string() });
export const checks = z.looseObject({
  checks: z.array(z.looseObject({ name: z.string(), ok: z.boolean(), detail: z.string() })),
});
