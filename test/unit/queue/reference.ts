// Owns: what the queue should do, said once more in the plainest way: all commands in one list, every rule of the design a
// filter over it, no index and no promise. The tests compare it with the real one; it shares no code with it.
import type { CommandState } from "../../../src/kernel/events.ts";
import type { LaneSizes } from "../../../src/queue/lane.ts";
import type { StepKind } from "../../../src/store/commands.ts";

export interface Item {
  readonly id: number;
  readonly lane: string;
  readonly session: string;
  readonly sender: string;
  readonly actor: string;
  readonly source: string;
  readonly kind: "message" | "completion";
  readonly acceptedAt: number;
  readonly key: number;
  readonly notBefore: number;
  state: CommandState;
  open: boolean;
  strikes: number;
  strikeKind: StepKind | undefined;
  deathStep: number;
  steps: { kind: StepKind; done: boolean }[];
}

export interface Model {
  readonly items: Item[];
  readonly sizes: LaneSizes;
  now: number;
  /** Commands that hold a slot and their session: running ones, and stopped ones that have not ended yet. */
  held: Item[];
  /** The command that must run alone and has not shown progress. */
  alone: Item | undefined;
  /** Every claim of this life. */
  claims: number[];
}

const byKey = (a: Item, b: Item) => a.key - b.key || a.id - b.id;
const isNested = (item: Item) => item.lane.startsWith("nested:");
const isOwner = (item: Item) => item.actor === "owner";

/** Whether its session and its sender let it go. */
function mayGo(item: Item, { items, held, now }: Model): boolean {
  const sameSession = items.filter((other) => other.session === item.session && other !== item);
  const sessionTaken =
    held.some((other) => other.session === item.session) ||
    sameSession.some((other) => other.state === "waiting" || (other.state === "queued" && other.open));
  const earlierOfSender = sameSession.some(
    (other) =>
      other.state === "queued" &&
      other.id < item.id &&
      other.lane === item.lane &&
      other.sender === item.sender &&
      ![other, item].some(({ source }) => source === "announce"),
  );
  return item.state === "queued" && item.notBefore <= now && !sessionTaken && (item.open || !earlierOfSender);
}

function fits(item: Item, { held, sizes }: Model): boolean {
  const inLane = held.filter((other) => other.lane === item.lane);
  const size = isNested(item) ? 1 : sizes[item.lane as keyof LaneSizes];
  const reserved = item.lane === "main" ? Math.min(sizes.mainReserved, size - 1) : 0;
  const forOthers = size - reserved;
  const ofActor = inLane.filter((other) => other.actor === item.actor);
  const notMain = held.filter((other) => other.lane !== "main");
  return (
    inLane.length < size &&
    held.length < sizes.total &&
    (item.lane === "main" || notMain.length < sizes.total - sizes.mainReserved) &&
    (!isNested(item) || held.filter(isNested).length < sizes.nestedTotal) &&
    (isOwner(item) || inLane.filter((other) => !isOwner(other)).length < forOthers) &&
    (isOwner(item) || ofActor.length < Math.ceil(size / 2))
  );
}

/** The command that is claimed next, if any. */
export function nextClaim(model: Model): Item | undefined {
  if (model.alone !== undefined) return undefined;
  const order = model.items.filter((item) => mayGo(item, model)).sort(byKey);
  const suspect = order.find((item) => item.strikes >= 2 && isFirstOfActor(item, order));
  if (suspect !== undefined) return model.held.length === 0 ? suspect : undefined;
  return order.find((item) => fits(item, model));
}

function isFirstOfActor(item: Item, order: readonly Item[]): boolean {
  const same = (other: Item) =>
    other.session === item.session && other.lane === item.lane && other.actor === item.actor;
  return order.find(same) === item;
}

function claim(model: Model, item: Item): void {
  item.state = "running";
  item.steps.push({ kind: "model", done: false });
  model.held.push(item);
  model.claims.push(item.id);
  if (item.strikes >= 2) model.alone = item;
}

export function claimAll(model: Model): void {
  for (let next = nextClaim(model); next !== undefined; next = nextClaim(model)) claim(model, next);
}

export function release(model: Model, item: Item): void {
  model.held = model.held.filter((other) => other !== item);
  if (model.alone === item) model.alone = undefined;
}

/** The step in flight finishes and one of kind `next` begins. */
export function step(model: Model, item: Item, next: StepKind): void {
  const ended = item.steps.at(-1);
  if (ended === undefined) throw new Error("a running command has a step");
  ended.done = true;
  item.open = true;
  if (ended.kind === item.strikeKind) {
    item.strikes = 0;
    item.strikeKind = undefined;
    if (model.alone === item) model.alone = undefined;
  }
  item.steps.push({ kind: next, done: false });
}

/** The next life begins: what boot makes of the rows (G7, G8, G9). */
export function boot(model: Model, planned: boolean, maxAgeMs: number): void {
  model.held = [];
  model.alone = undefined;
  model.claims = [];
  for (const item of model.items) {
    if (item.state === "running") orphan(item, planned);
    if (item.state !== "queued") continue;
    if (item.kind === "completion") item.state = "cancelled";
    else if (!item.open && model.now - item.acceptedAt > maxAgeMs) item.state = "dead";
    if (item.state !== "queued") item.open = false;
  }
}

function orphan(item: Item, planned: boolean): void {
  item.state = "queued";
  if (planned || item.kind === "completion") return;
  const kind = item.steps.at(-1)?.kind ?? "model";
  const progressed = item.steps.slice(item.deathStep).some((one) => one.done && one.kind === kind);
  item.strikes = progressed ? 0 : item.strikes + 1;
  item.strikeKind = progressed ? undefined : kind;
  item.deathStep = item.steps.length;
  if (item.strikes < 3) return;
  item.state = "dead";
  item.open = false;
}
