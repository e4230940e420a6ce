// Owns: what surrounds the reference in the comparison with the real queue: a disk that cannot be written, work that does not
// listen when it is stopped, and time. Commands happen at whole seconds; what a clock brings about has its own fraction of a
// second, so that no two things happen at the same instant in an order that the reference would have to know.

import { boot, claimAll, type Item, type Model, nextClaim, release } from "./reference.ts";
import { SETTINGS } from "./rig.ts";

export const TICK_MS = 125;
export const GRACE_MS = 5_250;
export const BACK_OFF_FRACTION_MS = 125;
export const MAX_AGE_MS = 60_000;
export const SIZES = { ...SETTINGS.lanes, main: 4, subagent: 2, cron: 2, nestedTotal: 2, total: 6, mainReserved: 1 };
/** The first probes of a pause that began at 0; from the last on there is one every 10 s. */
const PROBES_MS = [500, 1_500, 3_500, 7_500, 15_500];

type End = "done" | "failed" | "handed-back";

/** The reference, and what surrounds it: a disk, work that does not listen, ends that wait for the disk. */
export interface World extends Model {
  isBroken: boolean;
  pausedAt: number | undefined;
  ending: { item: Item; end: End }[];
  deaf: { item: Item; until: number }[];
  /** What happens a number of commits from now. */
  soon: { at: number; run: () => void }[];
  round: number;
}

export const isDeaf = (item: { text?: string }) => item.text?.includes("deaf") === true;
export const cannotBegin = (item: { text?: string }) => item.text?.includes("broken") === true;
export interface Told extends Item {
  readonly text: string;
  parts: number;
}

export const cannotWrite = (world: World) => world.isBroken || world.pausedAt !== undefined;
export const live = (world: World) => world.items.filter((item) => ["queued", "running"].includes(item.state));
export const told = (item: Item) => item as Told;

/** Work in the test's hand: running or deaf, and not waiting for the disk with its end. */
export const inHand = (world: World) => world.held.filter((item) => !world.ending.some((one) => one.item === item));

function later(world: World, commits: number, run: () => void): void {
  world.soon.push({ at: world.round + commits, run });
}

export function settle(world: World): void {
  for (;;) {
    const next = world.soon.toSorted((a, b) => a.at - b.at)[0];
    if (next === undefined) return;
    world.soon.splice(world.soon.indexOf(next), 1);
    world.round = next.at;
    next.run();
  }
}

export function pump(world: World): void {
  if (world.pausedAt !== undefined) return;
  if (world.isBroken) {
    if (nextClaim(world) !== undefined) world.pausedAt = world.now;
    return;
  }
  const before = new Set(world.held);
  claimAll(world);
  for (const item of world.held.filter((one) => !before.has(one) && cannotBegin(told(one)))) {
    // The claim, the claim without a beginning, and the end.
    later(world, 3, () => finish(world, item, "failed"));
  }
}

export function finish(world: World, item: Item, end: End): void {
  if (cannotWrite(world)) {
    world.pausedAt ??= world.now;
    world.ending.push({ item, end });
    return;
  }
  apply(item, end);
  release(world, item);
  pump(world);
}

export function apply(item: Item, end: End): void {
  if (item.state !== "running") return;
  item.state = end === "handed-back" ? "queued" : end;
  if (end === "handed-back") return;
  item.open = false;
  told(item).parts = 1;
}

function resume(world: World): void {
  world.pausedAt = undefined;
  const { ending } = world;
  world.ending = [];
  pump(world);
  for (const { item, end } of ending) later(world, 1, () => finish(world, item, end));
  settle(world);
}

function isProbed(pausedForMs: number): boolean {
  return PROBES_MS.includes(pausedForMs) || (pausedForMs > 15_500 && pausedForMs % 10_000 === 5_500);
}

/** Lets a tick pass in the reference. */
export function tick(world: World): void {
  world.now += TICK_MS;
  if (world.pausedAt !== undefined && !world.isBroken && isProbed(world.now - world.pausedAt)) resume(world);
  for (const { item } of world.deaf.filter(({ until }) => until === world.now)) stopsListening(world, item);
  pump(world);
  settle(world);
}

function stopsListening(world: World, item: Item): void {
  world.deaf = world.deaf.filter((one) => one.item !== item);
  finish(world, item, "handed-back");
}

export function reboot(world: World, planned: boolean): void {
  Object.assign(world, { isBroken: false, pausedAt: undefined, ending: [], deaf: [] });
  const before = new Map(world.items.map((item) => [item, item.state]));
  boot(world, planned, MAX_AGE_MS);
  for (const item of world.items) if (item.state === "dead" && before.get(item) !== "dead") told(item).parts = 1;
  pump(world);
  settle(world);
}
