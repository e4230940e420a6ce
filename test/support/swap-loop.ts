// Owns: the adversary of the race tests, a process of its own: it lets one name be in turn a folder and a link that leads
// elsewhere, as fast as it can, until its standard input ends. It says `swapping` once it does.
// Arguments: the name, the folder and the link that take turns under it (both beside it).
import { renameSync } from "node:fs";

const [name = "", folder = "", link = ""] = process.argv.slice(2);
const SWAPS_PER_TURN = 20;
let running = true;

process.stdin.on("end", () => {
  running = false;
});
process.stdin.resume();
swap();
process.stdout.write("swapping\n");

function swap(): void {
  for (let count = 0; count < SWAPS_PER_TURN; count++) {
    renameSync(folder, name);
    renameSync(name, folder);
    renameSync(link, name);
    renameSync(name, link);
  }
  if (running) setImmediate(swap);
}
