// Owns: what goes into the outbox. A pull door (web, terminal, API) gets Markdown in one part, which stays `ready` until a client
// has acknowledged its row sequence and holds back nothing. A push channel gets what it renders, and is told after the commit.
import type { Clock } from "../kernel/clock.ts";
import type { PartId } from "../kernel/ids.ts";
import { type Command, chatKey, type Route } from "../store/commands.ts";
import type { NewPart, PartClass } from "../store/outbox.ts";
import type { Tx } from "../store/store.ts";

/** Where the owner is told of things when no channel reaches him. */
const OWNER_ROUTE: Route = { channel: "web", account: "default", chat: "main", thread: undefined };

/** Parts that a write has made, to be handed to `Delivery.send` once it has committed. */
export interface Placed {
  readonly chatKey: string;
  readonly parts: readonly PartId[];
}

interface PartOptions {
  readonly class: PartClass;
  /** Markdown. */
  readonly text: string;
  /** JSON for a pull door. */
  readonly extra?: string | undefined;
  /** The platform's id of the message that this answers. */
  readonly replyTo?: string | undefined;
}

export interface Delivery {
  /** Inside a write: what answers a command, as its parts from 0 on. */
  answer(tx: Tx, command: Pick<Command, "id" | "route">, part: PartOptions): Placed;
  /** Inside a write: something that belongs to no command. */
  notice(tx: Tx, route: Route, text: string): Placed;
  /** Inside a write: a notice to the owner, where he is reached best. @param except the channel that it is about. */
  tellOwner(tx: Tx, text: string, except?: string): Placed;
  /** Whether this is a chat in which the owner is told. */
  isOwners(route: Route): boolean;
  /** After the commit: a push channel begins to send. What is not handed over goes out at the next start. */
  send(placed: Placed): void;
}

export interface DeliveryDeps {
  readonly clock: Clock;
  /** How a push channel puts Markdown; undefined for a pull door. */
  readonly render: (
    route: Route,
    markdown: string,
  ) => readonly { text: string; extra: string | undefined }[] | undefined;
  /** Routes to the owner, the best first. */
  readonly ownerRoutes: readonly Route[];
  readonly send: (placed: Placed) => void;
}

/** When a model's whole answer is nothing that can be seen, its person must not wait for ever. */
const NOTHING_VISIBLE = "(The answer was empty.)";

export function makeDelivery({ clock, render, ownerRoutes, send }: DeliveryDeps): Delivery {
  const insert = (tx: Tx, route: Route, part: Omit<NewPart, "chatKey" | "part">): Placed => {
    const rendered = render(route, part.text);
    const plain = rendered?.length === 0 ? [{ text: NOTHING_VISIBLE, extra: undefined }] : rendered;
    const pieces: readonly Pick<NewPart, "text" | "extra" | "replyTo">[] = plain ?? [part];
    const chat = chatKey(route);
    const parts = pieces.map(({ text, extra }, index) => {
      const id = tx.nextSeq() as PartId;
      const replyTo = index === 0 ? part.replyTo : undefined;
      const { command, class: kind } = part;
      // On a push channel the message in which the answer grew becomes its first part.
      const grew = rendered !== undefined && index === 0 && command !== undefined;
      const editRef = grew ? tx.commands.get(command)?.preview : undefined;
      tx.outbox.insert(
        id,
        { chatKey: chat, command, part: index, class: kind, text, extra, replyTo, editRef },
        tx.generation,
        clock.now(),
      );
      return id;
    });
    return { chatKey: chat, parts };
  };
  const notice = (tx: Tx, route: Route, text: string) =>
    insert(tx, route, { command: undefined, class: "notice", text });
  const owners = ownerRoutes.length === 0 ? [OWNER_ROUTE] : ownerRoutes;
  const ownerRoute = (except?: string) => ownerRoutes.find((route) => route.channel !== except) ?? OWNER_ROUTE;
  return {
    answer: (tx, command, part) => insert(tx, command.route, { command: command.id, ...part }),
    notice,
    tellOwner: (tx, text, except) => notice(tx, ownerRoute(except), text),
    isOwners: (route) => owners.some((owner) => chatKey(owner) === chatKey(route)),
    send,
  };
}
