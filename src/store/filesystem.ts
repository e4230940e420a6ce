// Owns: telling whether a folder lies on a network file system, where SQLite's locks and syncs do not hold.
import { readFileSync, realpathSync } from "node:fs";
import { DataUnusable, systemCode } from "../kernel/errors.ts";

const NETWORK_TYPES = new Set([
  "nfs",
  "nfs4",
  "cifs",
  "smb3",
  "smbfs",
  "afs",
  "ncpfs",
  "coda",
  "9p",
  "ceph",
  "lustre",
  "glusterfs",
  "beegfs",
  "davfs",
  "fuse.sshfs",
  "fuse.rclone",
  "fuse.s3fs",
  "fuse.goofys",
  "fuse.gcsfuse",
  "fuse.glusterfs",
  "fuse.davfs2",
  "fuse.curlftpfs",
  "fuse.ceph",
  "fuse.juicefs",
]);

/** The type of the file system that holds `path`, from the text of /proc/self/mountinfo (proc(5)). */
export function mountTypeOf(path: string, mountinfo: string): string | undefined {
  let best = { point: "", type: "" };
  for (const line of mountinfo.split("\n")) {
    const [left, right] = line.split(" - ");
    const point = unescapeMount(left?.split(" ")[4] ?? "");
    const type = right?.split(" ")[0] ?? "";
    const holds = point === "/" || path === point || path.startsWith(`${point}/`);
    // A later line of the same point is mounted over the earlier one.
    if (point !== "" && holds && point.length >= best.point.length) best = { point, type };
  }
  return best.type === "" ? undefined : best.type;
}

/** mountinfo writes space, tab, newline and backslash as three octal digits. */
function unescapeMount(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

export function isNetworkType(type: string): boolean {
  return NETWORK_TYPES.has(type);
}

/** Throws DataUnusable when `folder` is on a network file system. Where there is no mountinfo (not Linux) nothing is checked. */
export function refuseNetworkFileSystem(folder: string): void {
  let mountinfo: string;
  try {
    mountinfo = readFileSync("/proc/self/mountinfo", "utf8");
  } catch (thrown) {
    if (systemCode(thrown) === "ENOENT") return;
    throw thrown;
  }
  const type = mountTypeOf(realpathSync(folder), mountinfo);
  if (type === undefined || !isNetworkType(type)) return;
  throw new DataUnusable(`${folder} is on a network file system (${type}), where a database can lose committed rows`, {
    hint: "Set LANEWAY_HOME to a folder on a local disk.",
  });
}
