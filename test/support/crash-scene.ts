// Owns: the words of crash scripts: what a script is, and what it has to act with.
import type { Sent } from "./crash-checks.ts";
import type { Client, Person } from "./crash-clients.ts";
import type { EchoModel } from "./echo-model.ts";
import type { HostProcess } from "./host.ts";

export interface Scene {
  readonly home: string;
  readonly address: string;
  readonly model: EchoModel;
  readonly person: Person;
  /** What was sent: each must end answered once. */
  readonly sent: Sent[];
  /** Clients that watch: they are waited for and stopped at the end. */
  readonly clients: Client[];
}

export interface Script {
  /** Points in the order in which the script reaches them: `cancel#2` is the second commit of that name. */
  readonly reaches: readonly string[];
  /** Longest wait for the death. */
  readonly withinMs?: number;
  /** On a host without a crash point, which is killed afterwards. */
  before?(scene: Scene, host: HostProcess): Promise<void>;
  /**
   * On the host that will die. What a person sends goes on through the death; a call of `host` ends the act when it is not
   * answered, and nobody repeats it. What is in `sent` must have been answered at the end, however the act ended.
   */
  act(scene: Scene, host: Promise<HostProcess>): Promise<void>;
  /** What is wrong when the next host has made it good. `happened`: those of `reaches` that were committed. */
  check?(scene: Scene, happened: readonly string[]): string[];
}

/** Answers to texts with this mark are never told while the host that will die lives. */
export const HELD = "[held]";
/** Never at all. */
export const STUCK = "[stuck]";

/** As in `accept#1`, `accept#2`: the first commits of one name. */
export const times = (write: string, most: number) => Array.from({ length: most }, (_, i) => `${write}#${i + 1}`);

/** A turn that is in its second call, after a tool, while the answer is held. */
export const HALF_DONE = `half done [tool] ${HELD}`;

/** The requests for the answer to a text, by the role of their last message. */
export function asked(model: EchoModel, text: string): (string | undefined)[] {
  return model.requests
    .filter((request) => request.findLast((one) => one.role === "user")?.content === text)
    .map((request) => request.at(-1)?.role);
}
