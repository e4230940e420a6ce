// Owns: `npm run bench`: all figures of docs/performance.md in one run. `--json` prints one object; `--idle MS` sets how long
// the idle host is watched (60 s by default).
import { cpus, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { benchDurable } from "./durable.ts";
import { benchHost } from "./host.ts";
import { benchTelegram } from "./telegram.ts";

const { values } = parseArgs({
  options: { json: { type: "boolean", default: false }, idle: { type: "string", default: "60000" } },
});

const durable = await benchDurable([1, 8, 64]);
const host = await benchHost(Number(values.idle));
const telegram = await benchTelegram();
const machine = {
  cpu: cpus()[0]?.model,
  cores: cpus().length,
  memoryGb: Math.round(totalmem() / 2 ** 30),
  node: process.version,
};

if (values.json) {
  console.log(JSON.stringify({ machine, durable, host, telegram }));
} else {
  const round = (value: number) => Math.round(value * 100) / 100;
  console.log(`${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB, Node ${machine.node}`);
  console.table(
    durable.map(({ inFlight, perSecond, barePerSecond, ratio }) => ({
      "in flight": inFlight,
      "turns/s": perSecond,
      "bare loop/s": barePerSecond,
      ratio: round(ratio),
    })),
  );
  const figures = {
    ...host,
    ...Object.fromEntries(Object.entries(telegram).map(([name, ms]) => [`telegram ${name}`, ms])),
  };
  console.table(Object.entries(figures).map(([figure, value]) => ({ figure, value: round(value) })));
}
