// Owns: one death at a named point: a host that kills itself there while people act, the look at what it left, and the next
// host, which must make it good.
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { checkRequests, checkRows, checkShown, checkWhole } from "./crash-checks.ts";
import { makePerson } from "./crash-clients.ts";
import { plannedDeath } from "./crash-points.ts";
import { HELD, type Scene, type Script, STUCK } from "./crash-scene.ts";
import { startEchoModel } from "./echo-model.ts";
import { type HostProcess, settingsFor, startHostProcess, writeSettings } from "./host.ts";
import { seeded } from "./seeded.ts";

export interface PointReport {
  readonly point: string;
  /** Empty when the host died there and nothing is lost, doubled or half. */
  readonly violations: readonly string[];
}

interface PointOptions {
  readonly home: string;
  /** One of CRASH_POINTS. */
  readonly point: string;
  readonly seed: number;
  /** A control: the host is told of a point that it does not have. The run must notice. */
  readonly unreachable?: boolean;
}

const DEATH_MS = 15_000;
const SETTLE_MS = 60_000;

/** The host kills itself at the point; the next one must make it good (R2). A point that is not reached is a violation. */
export async function crashAtPoint({ home, point, seed, unreachable = false }: PointOptions): Promise<PointReport> {
  const { script, happened } = plannedDeath(point);
  const random = seeded(seed);
  const model = await startEchoModel(() => random.between(1, 10));
  const port = await freePort();
  await writeSettings(home, settingsFor(model.baseUrl, "turns: { graceMs: 500 }\nqueue: { mode: followup }", port));
  const address = `http://127.0.0.1:${port}`;
  const end = new AbortController();
  const person = makePerson(address, end.signal);
  const scene: Scene = { home, address, model, person, sent: [], clients: [] };
  let doomed = true;
  model.isHeld = (text) => text.includes(STUCK) || (doomed && text.includes(HELD));
  try {
    await liveBefore(script, scene);
    const dying = startDoomed(home, unreachable ? `${point}00` : point);
    // How it ends is seen by what it has left: a call that the dying host did not answer ends it.
    const acting = script.act(scene, dying.host).catch(() => {});
    const patienceMs = unreachable ? 1_000 : (script.withinMs ?? DEATH_MS);
    const died = await Promise.race([dying.killed, delay(patienceMs, false, { signal: end.signal })]);
    if (!died) await dying.host.then((host) => host.kill());
    const violations = died ? checkWhole(home) : [`never reached ${point}`];
    doomed = false;
    const next = await startHostProcess(home);
    await Promise.race([acting.then(() => settled(scene, next)), delay(SETTLE_MS, undefined, { signal: end.signal })]);
    await next.stop();
    violations.push(...checkShown(scene.sent), ...checkRows(home, scene.sent), ...checkRequests(model));
    if (died) violations.push(...(script.check?.(scene, happened) ?? []));
    return { point, violations };
  } finally {
    end.abort();
    await Promise.all(scene.clients.map((client) => client.stop()));
    await model.stop();
  }
}

interface Doomed {
  /** Rejects when it did not live to print its link. */
  readonly host: Promise<HostProcess>;
  /** True when it has killed itself; false when it has ended in another way. */
  readonly killed: Promise<boolean>;
}

function startDoomed(home: string, point: string): Doomed {
  const host = startHostProcess(home, { LANEWAY_CRASH_AT: point });
  const killed = host.then(
    async (started) => (await started.ended).signal === "SIGKILL",
    (thrown: unknown) => String(thrown).includes("SIGKILL"),
  );
  return { host, killed };
}

async function liveBefore(script: Script, scene: Scene): Promise<void> {
  if (script.before === undefined) return;
  const host = await startHostProcess(scene.home);
  await script.before(scene, host);
  await host.kill();
}

async function settled({ clients, person }: Scene, host: HostProcess): Promise<void> {
  await Promise.all(clients.map((client) => client.settled(SETTLE_MS)));
  await person.until(async () => (await host.api("queue.list")).body.commands.length === 0);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const bound = server.address();
  server.close();
  await once(server, "close");
  return typeof bound === "object" && bound !== null ? bound.port : 0;
}
