// Owns: telling whether a folder lies on a network file system, where SQLite's locks and syncs do not hold.
import { readFileSync, realpathSync } from "node:fs";
import { DataUnusable, messageOf, systemCode } from "../kernel/errors.ts";

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

interface Mount {
  readonly id: string;
  /** The mount that this one lies on. */
  readonly parent: string;
  readonly point: string;
  readonly type: string;
}

/**
 * The type of the file system that holds `path`, from the text of /proc/self/mountinfo (proc(5)). Walks down from the root
 * as the kernel does: a mount over one of the parent folders hides what was mounted further down before.
 */
export function mountTypeOf(path: string, mountinfo: string): string | undefined {
  const onTheWay = mountinfo
    .split("\n")
    .map(parseMount)
    .filter((mount) => holds(mount.point, path));
  const ids = new Set(onTheWay.map((mount) => mount.id));
  // The root lies on a mount that this process cannot see, or on itself.
  const isRoot = (mount: Mount) => mount.parent === mount.id || !ids.has(mount.parent);
  const passed = new Set<Mount>();
  let here: Mount | undefined;
  let next = firstCrossed(onTheWay.filter(isRoot));
  while (next !== undefined) {
    here = next;
    passed.add(here);
    next = firstCrossed(onTheWay.filter((mount) => mount.parent === here?.id && !passed.has(mount)));
  }
  return here?.type;
}

/** Of several mounts on one parent, the one nearest to the root; of two at the same point, the later. */
function firstCrossed(mounts: readonly Mount[]): Mount | undefined {
  return mounts.toSorted((a, b) => b.point.length - a.point.length).at(-1);
}

/** `36 35 98:0 /inside /point rw,noatime master:1 - ext4 /dev/root rw`: id, parent, device, root, point … type. */
function parseMount(line: string): Mount {
  const [before = "", after = ""] = line.split(" - ");
  const [id = "", parent = "", , , point = ""] = before.split(" ");
  return { id, parent, point: unescapeMount(point), type: after.split(" ")[0] ?? "" };
}

function holds(point: string, path: string): boolean {
  return point === "/" || path === point || (point !== "" && path.startsWith(`${point}/`));
}

/** mountinfo writes space, tab, newline and backslash as three octal digits. */
function unescapeMount(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

function isNetworkType(type: string): boolean {
  return NETWORK_TYPES.has(type);
}

/**
 * Throws DataUnusable when `folder` is on a network file system or cannot be reached.
 * @param mountinfo the text of /proc/self/mountinfo; empty (not Linux) means that nothing is checked
 */
export function refuseNetworkFileSystem(folder: string, mountinfo = readMountinfo()): void {
  const type = mountTypeOf(realPath(folder), mountinfo);
  if (type === undefined || !isNetworkType(type)) return;
  throw new DataUnusable(`${folder} is on a network file system (${type}), where a database can lose committed rows`, {
    hint: "Set LANEWAY_HOME to a folder on a local disk.",
  });
}

function readMountinfo(): string {
  try {
    return readFileSync("/proc/self/mountinfo", "utf8");
  } catch (thrown) {
    if (systemCode(thrown) === "ENOENT") return "";
    throw thrown;
  }
}

function realPath(folder: string): string {
  try {
    return realpathSync(folder);
  } catch (thrown) {
    throw new DataUnusable(`expected the folder ${folder} for the data, but cannot reach it: ${messageOf(thrown)}`, {
      hint: "Check LANEWAY_HOME and the rights of the folder.",
      cause: thrown,
    });
  }
}
