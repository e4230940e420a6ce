import { symlinkSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { DataUnusable } from "../../../src/kernel/errors.ts";
import { mountTypeOf, refuseNetworkFileSystem } from "../../../src/store/filesystem.ts";
import { temporaryFolder } from "../../support/files.ts";

/** A table of mounts as the kernel writes it: each `[id, parent, point, type]`, with the optional fields that some have. */
function table(...mounts: readonly (readonly [number, number, string, string])[]): string {
  const lines = mounts.map(
    ([id, parent, point, type], n) =>
      `${id} ${parent} 0:${30 + n} / ${point} rw,relatime${n % 2 === 0 ? " shared:1 master:2" : ""} - ${type} /dev/some rw`,
  );
  return `${lines.join("\n")}\n`;
}

describe("the file system that holds a folder (guarantees 5.1)", () => {
  const ROOT = [1, 0, "/", "ext4"] as const;

  test.each([
    { case: "only the root", mounts: [ROOT], path: "/home/u", type: "ext4" },
    { case: "the root itself", mounts: [ROOT], path: "/", type: "ext4" },
    {
      case: "a mount above the folder",
      mounts: [ROOT, [2, 1, "/home", "nfs4"]],
      path: "/home/u/.laneway",
      type: "nfs4",
    },
    { case: "a mount at the folder", mounts: [ROOT, [2, 1, "/home", "nfs4"]], path: "/home", type: "nfs4" },
    { case: "a mount below the folder", mounts: [ROOT, [2, 1, "/home/nas", "nfs4"]], path: "/home", type: "ext4" },
    {
      case: "a name that only begins alike",
      mounts: [ROOT, [2, 1, "/home/u", "nfs4"]],
      path: "/home/user",
      type: "ext4",
    },
    {
      case: "nested mounts, the inner one counts",
      mounts: [ROOT, [2, 1, "/mnt", "nfs4"], [3, 2, "/mnt/disk", "xfs"]],
      path: "/mnt/disk/home",
      type: "xfs",
    },
    {
      case: "a later mount over an earlier one at the same point",
      mounts: [ROOT, [2, 1, "/mnt", "autofs"], [3, 2, "/mnt", "nfs4"]],
      path: "/mnt/x",
      type: "nfs4",
    },
    {
      case: "a later mount over a parent folder hides the mounts further down",
      mounts: [ROOT, [2, 1, "/mnt/disk", "ext4"], [3, 1, "/mnt", "cifs"]],
      path: "/mnt/disk/home",
      type: "cifs",
    },
    {
      case: "a mount moved here after its parent was mounted over, listed before it",
      mounts: [ROOT, [2, 3, "/mnt/disk", "nfs4"], [3, 1, "/mnt", "ext4"]],
      path: "/mnt/disk/home",
      type: "nfs4",
    },
    { case: "a root that is not listed first", mounts: [[2, 1, "/sys", "sysfs"], ROOT], path: "/sys/x", type: "sysfs" },
    {
      case: "a root that lies on itself",
      mounts: [
        [1, 1, "/", "rootfs"],
        [2, 1, "/", "btrfs"],
      ],
      path: "/x",
      type: "btrfs",
    },
    { case: "a process that sees no root mount", mounts: [[7, 3, "/data", "nfs4"]], path: "/data/x", type: "nfs4" },
    {
      case: "blanks in the name",
      mounts: [ROOT, [2, 1, "/my\\040big\\011disk", "cifs"]],
      path: "/my big\tdisk/x",
      type: "cifs",
    },
    {
      case: "a backslash in the name",
      mounts: [ROOT, [2, 1, "/a\\134040b", "cifs"]],
      path: "/a\\040b/x",
      type: "cifs",
    },
  ] as const)("$case", ({ mounts, path, type }) => {
    expect(mountTypeOf(path, table(...mounts))).toBe(type);
  });

  test("an empty table answers nothing", () => {
    expect(mountTypeOf("/home", "")).toBeUndefined();
  });
});

const NETWORK =
  "nfs nfs4 cifs smb3 smbfs afs ncpfs coda 9p ceph lustre glusterfs beegfs davfs fuse.sshfs fuse.rclone fuse.s3fs fuse.goofys fuse.gcsfuse " +
  "fuse.glusterfs fuse.davfs2 fuse.curlftpfs fuse.ceph fuse.juicefs";
const LOCAL = "ext4 xfs btrfs zfs tmpfs overlay f2fs bcachefs fuseblk apfs vfat";

describe("a home on a network file system is refused", () => {
  test.each(NETWORK.split(" "))("%s: exit 65, naming folder and type", async (type) => {
    await using folder = await temporaryFolder();
    const refuse = () => refuseNetworkFileSystem(folder.path, table([1, 0, "/", "ext4"], [2, 1, folder.path, type]));
    expect(refuse).toThrow(DataUnusable);
    expect(refuse).toThrow(`${folder.path} is on a network file system (${type})`);
  });

  test.each(LOCAL.split(" "))("%s is local and taken", async (type) => {
    await using folder = await temporaryFolder();
    refuseNetworkFileSystem(folder.path, table([1, 0, "/", "nfs4"], [2, 1, folder.path, type]));
  });

  test("a link to a network folder counts as what it leads to", async () => {
    await using folder = await temporaryFolder();
    await mkdir(folder.at("nas"));
    symlinkSync(folder.at("nas"), folder.at("home"));
    const mounts = table([1, 0, "/", "ext4"], [2, 1, folder.at("nas"), "nfs4"]);
    expect(() => refuseNetworkFileSystem(folder.at("home"), mounts)).toThrow(DataUnusable);
  });

  test("the file systems of this machine are read, and the folder of the tests is local", async () => {
    await using folder = await temporaryFolder();
    refuseNetworkFileSystem(folder.path);
  });

  test("where nothing is known of mounts, nothing is refused", async () => {
    await using folder = await temporaryFolder();
    refuseNetworkFileSystem(folder.path, "");
  });
});
