import { expect, test } from "vitest";
import type { CommandState } from "../../../src/kernel/events.ts";
import type { ClaimNumber, CommandId, Generation, SessionKey } from "../../../src/kernel/ids.ts";
import { isFinal, TRANSITIONS } from "../../../src/queue/command.ts";
import { commandReads } from "../../../src/store/commands.ts";
import type { Tx } from "../../../src/store/store.ts";
import { openTestStore } from "../../support/store.ts";
import { message } from "./rig.ts";

// The table of transitions against what the SQL does (DESIGN Commands: "a table lists every transition; each is one UPDATE
// guarded by the old state").

const STATES: readonly CommandState[] = [
  ...(["queued", "running", "waiting", "absorbed"] as const),
  ...(["done", "failed", "dead", "cancelled"] as const),
];

const CLAIM = 3 as ClaimNumber;
const OLD = 1 as Generation;

type Verb = (tx: Tx, id: CommandId) => unknown;

/** Every verb that changes a row, called so that nothing but the state can stop it. */
const VERBS: Readonly<Record<string, readonly Verb[]>> = {
  claim: [(tx, id) => tx.commands.claim(id, tx.generation, 9)],
  hold: [(tx, id) => tx.commands.hold({ id, claim: CLAIM, generation: OLD })],
  finish: (["done", "failed"] as const).map(
    (state) => (tx: Tx, id: CommandId) => tx.commands.finish({ id, claim: CLAIM, generation: OLD }, state, 9, "{}"),
  ),
  handBack: [(tx, id) => tx.commands.handBack({ id, claim: CLAIM, generation: OLD })],
  cancel: [(tx, id) => tx.commands.cancel(id, 9, "{}")],
  orphanToQueue: [(tx, id) => tx.commands.orphanToQueue(id, 1, "model", 4, tx.generation)],
  giveUp: [(tx, id) => tx.commands.giveUp(id, tx.generation, 9, "{}")],
  absorb: [(tx, id) => tx.commands.absorb(id, runningTurn(tx), 2)],
  giveBack: [(tx, id) => tx.commands.giveBack(id, 0)],
  endWith: (["done", "failed", "dead", "cancelled"] as const).map(
    (state) => (tx: Tx, id: CommandId) =>
      tx.commands.endWith(id, tx.commands.get(id)?.absorbedBy ?? (0 as CommandId), state, 9, "{}"),
  ),
  rewrite: [(tx, id) => tx.commands.rewrite(id, { text: "other", extra: "{}", notBefore: 0 })],
  preview: [(tx, id) => tx.commands.preview({ id, claim: CLAIM, generation: OLD }, "7")],
  forgive: [(tx, id) => tx.commands.forgive(id)],
};

/** A turn that runs at its claim, in a session of its own. */
function runningTurn(tx: Tx): { id: CommandId; claim: ClaimNumber; generation: Generation } {
  const id = tx.nextSeq() as CommandId;
  tx.commands.insert(id, { ...message(1, { session: `turn ${id}` as SessionKey }), orderKey: 1 }, "queued");
  const { claim, generation } = tx.commands.claim(id, tx.generation, 9)!;
  return { id, claim, generation };
}

async function movesOf(verb: Verb): Promise<string[]> {
  // The second life: a row of the first generation is an orphan's.
  await using first = await openTestStore();
  first.store.close();
  await using host = await openTestStore({ home: first.home });
  const { db } = host.opened;
  const ids = await host.store.write("rows", (tx) =>
    STATES.map((state) => {
      const id = tx.nextSeq() as CommandId;
      tx.commands.insert(id, { ...message(1, { session: state as string as SessionKey }), orderKey: 1 }, "queued");
      return id;
    }),
  );
  const force = db.prepare("update commands set state = ?, claim = ?, generation = ?, strikes = 1 where id = ?");
  for (const [i, id] of ids.entries()) force.run(STATES[i], CLAIM, OLD, id);
  // Whatever is absorbed is absorbed by something: here by itself.
  db.exec("update commands set absorbed_by = id, absorbed_step = 1, strikes = 0 where state in ('absorbed', 'queued')");
  await host.store.write("verb", (tx) => ids.map((id) => verb(tx, id)));
  const after = ids.map((id) => host.store.read.commands.get(id)!.state);
  return STATES.flatMap((from, i) => (after[i] === from ? [] : [`${from} → ${after[i]}`]));
}

test("over all verbs and all states a row moves exactly as the table of transitions says", async () => {
  const moves = await Promise.all(Object.values(VERBS).flat().map(movesOf));
  const table = TRANSITIONS.map(({ from, to }) => `${from} → ${to}`);
  expect(new Set(moves.flat())).toEqual(new Set(table));
  expect(table).toHaveLength(new Set(table).size);
});

test("every verb of the table commands is in that comparison", async () => {
  await using host = await openTestStore();
  const reads = [...Object.keys(commandReads(host.opened.db)), "absorbedBy", "hasAbsorbed"];
  const verbs = await host.store.write("look", (tx) => Object.keys(tx.commands));
  expect(verbs.filter((verb) => !reads.includes(verb)).toSorted()).toEqual(
    ["insert", ...Object.keys(VERBS)].toSorted(),
  );
});

test("done, failed, dead and cancelled are final, and no other state is", () => {
  expect(STATES.filter(isFinal)).toEqual(["done", "failed", "dead", "cancelled"]);
});
