// Owns: the tables, as numbered migrations. Each runs in one transaction and is never changed once released:
// a later change is a new number (G20).

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

const spine = `
create table meta (
  key text primary key,
  value any not null
) strict, without rowid;

-- One row for each accepted event: a redelivery finds it and makes no second command (G2).
create table inbox (
  channel text not null,
  account text not null,
  event_key text not null,
  received_at integer not null,
  raw_hash text not null,
  -- Null: none came of it (its sender was not let in, or it was a button).
  command integer,
  primary key (channel, account, event_key)
) strict, without rowid;
-- Only clients of the API repeat a request without a key of their own.
create index inbox_by_hash on inbox (raw_hash, received_at) where channel = 'api';

-- Where a platform is to go on, by the bot's own numeric id: a new token of another bot begins anew (G3).
create table positions (
  channel text not null,
  identity text not null,
  position text not null,
  primary key (channel, identity)
) strict, without rowid;

-- An event that could not be read or kept, as it came.
create table rejected (
  id integer primary key,
  at integer not null,
  channel text not null,
  account text not null,
  event_key text not null,
  raw text not null,
  problem text not null
) strict;

-- Who is let in besides those that the settings name (ID-R2, ID-2).
create table peers (
  channel text not null,
  account text not null,
  sender text not null,
  name text not null,
  state text not null check (state in ('pending','approved','denied')),
  -- Shown to the sender, typed by the owner; void after its time or too many wrong tries.
  code text,
  expires_at integer not null default 0,
  wrong integer not null default 0,
  told_at integer not null default 0,
  decided_at integer,
  primary key (channel, account, sender)
) strict, without rowid;

create index peers_pending on peers (expires_at) where state = 'pending';

-- Wrong pairing codes by channel, to slow guessing down across restarts (ID-2).
create table pairing_misses (
  id integer primary key,
  channel text not null,
  at integer not null
) strict;
create index pairing_misses_by_time on pairing_misses (at);

create table sessions (
  key text primary key,
  agent text not null,
  channel text not null,
  account text not null,
  chat text not null,
  thread text,
  created_at integer not null,
  -- The model sees transcript rows after this one only; /new moves it and deletes nothing.
  starts_after integer not null default 0,
  -- The backend that /model chose; it goes before the agent's own.
  backend text,
  -- What happens to messages while it is busy, when /queue chose it.
  mode text check (mode in ('steer','followup','collect','interrupt')),
  -- The newest transcript row: each points at the one before it.
  last_message integer not null default 0,
  messages integer not null default 0,
  last_at integer
) strict, without rowid;

-- The newest row that people of a chat see: a command or an outbox part; each points at the one before it. An index that begins
-- with the chat would dirty a page of its own for every chat that speaks, the largest cost of a commit (docs/performance.md).
create table chats (
  key text primary key,
  last integer not null
) strict, without rowid;

create table commands (
  id integer primary key,
  state text not null check (state in ('queued','running','waiting','absorbed','done','failed','dead','cancelled')),
  lane text not null,
  priority integer not null,
  order_key integer not null,
  -- A stateless request has a session of its own that is no conversation, so there is no row for it.
  session text not null,
  channel text not null,
  account text not null,
  chat text not null,
  thread text,
  sender text not null,
  actor text not null,
  role text not null check (role in ('owner','user','guest')),
  source text not null,
  kind text not null,
  -- What happens to it while its session is busy; decided at acceptance.
  mode text not null check (mode in ('steer','followup','collect','interrupt')),
  -- The row of this chat before it.
  prev integer not null default 0,
  text text not null,
  extra text,
  accepted_at integer not null,
  not_before integer not null default 0,
  claim integer not null default 0,
  generation integer not null default 0,
  open integer not null default 0,
  -- The platform's id of the message in which a push channel shows the answer while it grows.
  preview text,
  strikes integer not null default 0,
  strike_kind text check (strike_kind in ('model','tool')),
  death_step integer not null default 0,
  started_at integer,
  finished_at integer,
  absorbed_by integer references commands (id),
  absorbed_step integer,
  outcome text
) strict;
-- The session gate: one command of a session runs, waits, or has a half-done turn.
create unique index commands_session_gate on commands (session)
  where state in ('running','waiting') or (state = 'queued' and open = 1);
create index commands_live on commands (state, id) where state in ('queued','running','waiting','absorbed');
create index commands_absorbed on commands (absorbed_by) where absorbed_by is not null;

create table steps (
  command integer not null references commands (id),
  n integer not null,
  kind text not null check (kind in ('model','tool')),
  state text not null check (state in ('intent','done','unknown')),
  name text not null,
  call_id text,
  input_hash text,
  result text,
  started_at integer not null,
  ended_at integer,
  primary key (command, n)
) strict, without rowid;

-- The transcript: what the model sees. Row 0 of a command is the person's message.
create table messages (
  id integer primary key,
  session text not null references sessions (key),
  -- The row of this session before it.
  prev integer not null,
  command integer not null references commands (id),
  n integer not null,
  role text not null check (role in ('user','assistant','tool','note')),
  body text not null,
  created_at integer not null,
  unique (command, n)
) strict;

-- What must reach a person, until it has.
create table outbox (
  id integer primary key,
  chat_key text not null,
  -- The row of this chat before it.
  prev integer not null,
  command integer references commands (id),
  part integer not null,
  class text not null check (class in ('answer','notice','failure')),
  text text not null,
  extra text,
  state text not null check (state in ('ready','sending','sent','unknown','failed','held')),
  generation integer not null,
  attempts integer not null default 0,
  -- The platform's id of the message that it answers.
  reply_to text,
  -- The platform's id of the message that becomes this part, instead of a new one.
  edit_ref text,
  not_before integer not null default 0,
  -- It was sent once already with an outcome unknown; there is no third time by itself (G4).
  again integer not null default 0,
  created_at integer not null,
  -- When the owner sent it again: from then on it has its whole time anew.
  resent_at integer,
  sent_at integer,
  ext_id text,
  reason text
) strict;
create unique index outbox_parts on outbox (command, part) where command is not null;
create index outbox_live on outbox (state, id) where state in ('ready','sending','unknown','held');

-- Privileged actions and refusals, committed before the action (G26).
create table audit (
  id integer primary key,
  at integer not null,
  actor text not null,
  action text not null,
  target text not null,
  detail text not null
) strict;
`;

export const migrations: readonly Migration[] = [{ version: 1, name: "spine", sql: spine }];
