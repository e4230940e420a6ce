// Owns: what must be true when everything has come to rest after the hosts of a Telegram crash run have died. Each check answers
// with what is wrong; it changes nothing.
import { answerTo } from "./crash-telegram-model.ts";
import type { PartRow, Rows } from "./crash-telegram-rows.ts";
import { type Chat, isSend, type TelegramScene } from "./crash-telegram-stage.ts";
import type { CallRecord } from "./telegram/journal.ts";

/** A host that was killed. */
export interface Death {
  readonly at: number;
  /** Telegram was working on a send, and the host had noted that it sends and nothing of what became of it. */
  readonly inFlight: boolean;
  /** The parts that were being sent, as far as the host had noted. */
  readonly sending: readonly number[];
  /** It had noted that Telegram asked it to wait. */
  readonly knewOfWait: boolean;
}

/** What is known of the hosts. */
export interface Evidence {
  readonly deaths: readonly Death[];
  /** When one of them noted that Telegram asked it to wait. */
  readonly waits: readonly number[];
}

const MARK = "(sent again: the first try was not confirmed)\n";
const TOLD_WITHIN_MS = 60_000;

interface Shown {
  readonly id: number;
  readonly text: string;
  readonly marked: boolean;
}

function shownIn({ telegram }: TelegramScene, chat: Chat): Shown[] {
  return telegram
    .messages(chat.room)
    .filter(({ byBot }) => byBot)
    .map(({ id, text }) => ({
      id,
      marked: text.startsWith(MARK),
      text: text.startsWith(MARK) ? text.slice(MARK.length) : text,
    }));
}

export function checkEverything(scene: TelegramScene, rows: Rows, evidence: Evidence): string[] {
  return [
    ...(rows.integrity === "ok" ? [] : [`integrity: ${rows.integrity}`]),
    ...scene.chats.flatMap((chat) => [
      ...checkTaken(chat, rows),
      ...checkParts(scene, chat, rows),
      ...checkOrder(scene, chat, rows),
    ]),
    ...checkTold(scene, rows, evidence.deaths),
    ...checkRequests(scene),
    ...checkRules(scene, evidence),
  ];
}

/** G1, G2: each message has one command, in the order of the chat, and its whole answer stands in the outbox. */
function checkTaken({ name, room, said }: Chat, { commands, parts }: Rows): string[] {
  const own = commands.filter((command) => command.chat === String(room.id));
  const wrong = own.filter(({ state }) => state !== "done").map(({ text, state }) => `"${text}" is ${state}`);
  for (const text of said) {
    const found = own.filter((command) => command.text === text);
    if (found.length !== 1) wrong.push(`"${text}" has ${found.length} commands`);
    const told = parts.filter(({ command }) => command === found[0]?.id).map((part) => part.text);
    if (found.length === 1 && told.join(" ") !== answerTo(text)) {
      wrong.push(`"${text}" has another answer: ${JSON.stringify(told).slice(0, 300)}`);
    }
  }
  const order = own.map(({ text }) => said.indexOf(text)).filter((index) => index >= 0);
  if (!isAscending(order)) wrong.push(`${name}: messages were taken out of order: ${order.join(" ")}`);
  return wrong;
}

/** G4, G5: each part is seen, or is listed; it is seen once more only with the mark, and only under `resend`. */
function checkParts(scene: TelegramScene, chat: Chat, { parts }: Rows): string[] {
  const shown = shownIn(scene, chat);
  const own = parts.filter((part) => part.chat_key === chat.key);
  const known = new Set(own.map(({ text }) => text));
  const unknown = shown.filter(({ text }) => !known.has(text));
  return [
    ...unknown.map(({ text }) => `${chat.name}: shown, but in no part: ${text.slice(0, 80)}`),
    ...[...known].flatMap((text) => {
      const same = own.filter((part) => part.text === text);
      const copies = shown.filter((one) => one.text === text);
      return checkCopies(same, copies, scene.policy).map(
        (wrong) => `${chat.name}: part ${same.map(({ id }) => id).join("/")} (${text.slice(0, 40)}) ${wrong}`,
      );
    }),
  ];
}

const SETTLED: ReadonlySet<string> = new Set(["sent", "unknown", "held"]);

/** @param same one part, or notices that read the same */
function checkCopies(same: readonly PartRow[], copies: readonly Shown[], policy: TelegramScene["policy"]): string[] {
  const wrong = same.filter(({ state }) => !SETTLED.has(state)).map(({ state, reason }) => `is ${state}: ${reason}`);
  const plain = copies.filter(({ marked }) => !marked).length;
  const marked = copies.length - plain;
  const again = policy === "hold" ? 0 : same.filter((part) => part.again === 1).length;
  if (plain > same.length) wrong.push(`was shown ${plain} times without the mark`);
  if (marked > again) wrong.push(`was shown ${marked} times with the mark (${policy})`);
  for (const { state, ext_id: ref } of same) {
    if (state === "sent" && !copies.some(({ id }) => String(id) === ref)) wrong.push("was sent and is not to be seen");
  }
  return wrong;
}

/** G6: parts stand in a chat in the order in which they were placed; one that is sent again goes before later ones. */
function checkOrder(scene: TelegramScene, chat: Chat, { parts }: Rows): string[] {
  const own = parts.filter((part) => part.chat_key === chat.key);
  const byRef = new Map(own.map((part) => [part.ext_id, part.id]));
  const order = shownIn(scene, chat).map(
    ({ id, text }) => byRef.get(String(id)) ?? own.find((part) => part.text === text)?.id ?? 0,
  );
  return isAscending(order) ? [] : [`${chat.name}: shown out of order: ${order.join(" ")}`];
}

function isAscending(numbers: readonly number[]): boolean {
  return numbers.every((number, i) => number >= (numbers[i - 1] ?? number));
}

/** G4: of each part that is left in doubt the owner reads, in his chat, within 60 s of the restart. */
function checkTold({ telegram, chats }: TelegramScene, { parts }: Rows, deaths: readonly Death[]): string[] {
  const notices = telegram.calls.filter(
    (call) => isSend(call) && Number(call.params["chat_id"]) === chats[0]?.room.id && tookEffect(call),
  );
  const doubtful = parts.filter(
    (part) => part.class !== "notice" && (part.state === "unknown" || part.state === "held"),
  );
  return doubtful.flatMap((part) => {
    const named = new RegExp(`/resend ${part.id}\\b`);
    const told = notices.find(({ params }) => named.test(String(params["text"])));
    const sentAt = telegram.calls.findLast((call) => String(call.params["text"]).endsWith(part.text))?.at ?? 0;
    const since = Math.max(sentAt, deaths.findLast(({ sending }) => sending.includes(part.id))?.at ?? 0);
    if (told === undefined) return [`the owner was never told of part ${part.id} (${part.chat_key}, ${part.reason})`];
    const afterMs = told.at - since;
    return afterMs <= TOLD_WITHIN_MS ? [] : [`the owner was told of part ${part.id} after ${afterMs} ms`];
  });
}

function tookEffect({ outcome }: CallRecord): boolean {
  if (outcome === undefined) return false;
  return outcome.kind === "ok" || ("accepted" in outcome && outcome.accepted);
}

/** G5: no request shows the model a message twice, or two in another order than they were written. */
function checkRequests({ model, chats, webSent }: TelegramScene): string[] {
  const written = [...chats.map(({ said }) => said), webSent.map(({ text }) => text)].flat();
  return model.requests().flatMap((users) => {
    const order = users.map((text) => written.indexOf(text));
    const isRight = order.every((index, i) => index >= 0 && index > (order[i - 1] ?? -1));
    return isRight ? [] : [`a request held ${users.join(" | ")}`];
  });
}

const IN_WINDOW = "called inside the window of a 429";

/** A call that had left the host before it knew is no offence. */
const ON_ITS_WAY_MS = 100;

/** Rules of Telegram that were broken, but for calls of a host that could not know that it was to wait. */
function checkRules({ telegram }: TelegramScene, { deaths, waits }: Evidence): string[] {
  return telegram.violations.flatMap(({ rule, call }) => {
    const told = telegram.calls.findLast((one) => one.id < call.id && isSend(one) && isWait(one))?.at ?? call.at;
    if (rule === IN_WINDOW && !couldKnow(told, call.at, deaths, waits)) return [];
    const params = JSON.stringify(call.params).slice(0, 80);
    return [`Telegram: ${rule}: ${call.method} ${params}, ${call.at - told} ms after the last 429`];
  });
}

function isWait({ outcome }: CallRecord): boolean {
  return outcome?.kind === "refused" && outcome.status === 429;
}

/** A host that was told to wait and died before it could note it leaves one that does not know; a slow one learns it late. */
function couldKnow(toldAt: number, callAt: number, deaths: readonly Death[], waits: readonly number[]): boolean {
  const death = deaths.find(({ at }) => at >= toldAt && at <= callAt);
  if (death !== undefined) return death.knewOfWait;
  return waits.some((at) => at >= toldAt && at <= callAt - ON_ITS_WAY_MS);
}
