// Owns: colours. They never carry meaning alone, since a pipe and NO_COLOR take them away.
import { styleText } from "node:util";
import type { Output } from "../shell.ts";

export type Paint = Parameters<typeof styleText>[0];

/** The text in a colour where the output shows colours, else as it is. */
export function paint({ colour }: Pick<Output, "colour">, how: Paint | undefined, text: string): string {
  return colour && how !== undefined && text !== "" ? styleText(how, text, { validateStream: false }) : text;
}

/** One colour for one kind of state, whatever it is a state of. */
export function paintOfState(state: string): Paint | undefined {
  if (["running", "sending", "waiting"].includes(state)) return "cyan";
  if (["done", "sent", "up", "ready", "ok"].includes(state)) return "green";
  if (["failed", "dead", "down", "fail"].includes(state)) return "red";
  if (["unknown", "held", "warn", "cooling", "last-good"].includes(state)) return "yellow";
  return state === "cancelled" ? "dim" : undefined;
}
