/** A small file system of its own under a directory, so that it can be full: ext4 in a file where that can be mounted, else one in memory. */
import { closeSync, cpSync, existsSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "./command.js";
import { startKeeper, waitForStarter } from "./keeper.js";
import type { Keeper } from "./keeper.js";

/** Room for the log of a run and its tables many times over, and quickly filled. ext4 needs 8 MiB for itself. */
const diskMegabytes = 48;

type DiskKind = "ext4" | "tmpfs";

/** A real file system first. */
const diskKinds: readonly DiskKind[] = ["ext4", "tmpfs"];

export type FoundDisk =
  | { readonly kind: DiskKind; readonly missing: null }
  | { readonly kind: null; readonly missing: string };

const mountWords: Readonly<Record<DiskKind, string>> = {
  ext4: 'mount -t ext4 -o loop "$1/image" "$1/disk"',
  tmpfs: `mount -t tmpfs -o size=${diskMegabytes}m tmpfs "$1/disk"`,
};

/** The second mount hides the filler from the process. `-l`: a process that lives on keeps its files and nothing else. */
function script(kind: DiskKind): string {
  return [
    `${mountWords[kind]} || exit`,
    'mkdir "$1/disk/data"',
    'mount --bind "$1/disk/data" "$2" || { umount -l "$1/disk"; exit 1; }',
    waitForStarter,
    'umount -l "$2"',
    'umount -l "$1/disk"',
    'rm -rf -- "$1"',
  ].join("\n");
}

export class SmallDisk {
  readonly #folder: string;
  readonly #keeper: Keeper;

  private constructor(folder: string, keeper: Keeper) {
    this.#folder = folder;
    this.#keeper = keeper;
  }

  /** `folder`: for the image and the like; made here, removed at the end. What lies in the directory moves to the new disk. */
  static async mount(kind: DiskKind, folder: string, directory: string): Promise<SmallDisk> {
    mkdirSync(join(folder, "disk"), { recursive: true });
    mkdirSync(directory, { recursive: true });
    if (kind === "ext4") await makeImage(join(folder, "image"));
    const kept = join(folder, "kept");
    cpSync(directory, kept, { recursive: true, preserveTimestamps: true });
    const keeper = await startKeeper(["sh", "-c", script(kind), "sh", folder, directory]);
    const disk = new SmallDisk(folder, keeper);
    // The mount point is the process's, not only its content.
    cpSync(kept, directory, { recursive: true, preserveTimestamps: true });
    rmSync(kept, { recursive: true });
    return disk;
  }

  /** Until not a byte is free. */
  fill(): void {
    const file = openSync(this.#filler, "a");
    try {
      for (const size of [1_048_576, 4_096, 1]) while (hasRoom(file, Buffer.alloc(size))) continue;
    } finally {
      closeSync(file);
    }
  }

  free(): void {
    rmSync(this.#filler, { force: true });
  }

  async unmount(): Promise<void> {
    await this.#keeper.end();
  }

  get #filler(): string {
    return join(this.#folder, "disk", "filler");
  }
}

/** Writes what fits. */
function hasRoom(file: number, bytes: Buffer): boolean {
  try {
    return writeSync(file, bytes) === bytes.length;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") return false;
    throw error;
  }
}

/** No reserve for root, for a full disk must be full to all; sparse, so it takes the room of what is written. */
async function makeImage(image: string): Promise<void> {
  if (existsSync(image)) return;
  await runCommand(["truncate", "-s", `${diskMegabytes}M`, image]);
  await runCommand(["mkfs.ext4", "-q", "-F", "-m", "0", image]);
}

/** The first kind that this process may mount, tried out, or why it may mount none. */
export async function findDisk(newFolder: () => string): Promise<FoundDisk> {
  const problems: string[] = [];
  for (const kind of diskKinds) {
    const folder = newFolder();
    try {
      const disk = await SmallDisk.mount(kind, join(folder, "disk"), join(folder, "directory"));
      await disk.unmount();
      return { kind, missing: null };
    } catch (error) {
      problems.push(`${kind}: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  return { kind: null, missing: `no small disk can be mounted: ${problems.join("; ")}` };
}
