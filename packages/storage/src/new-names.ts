import { close, fstatSync, fsync, open } from "node:fs";
import { promisify } from "node:util";

const openDescriptor = promisify(open);
const closeDescriptor = promisify(close);
const syncDescriptor = promisify(fsync);

/** File systems note times with the kernel's tick, 10 ms at most: two names made in one tick leave the same time. */
const tickMs = 12;

/**
 * LevelDB syncs the bytes of a new log file, but its name only with the next edit of the MANIFEST, some time later. A power loss in
 * between may take the file, with synced batches in it. So the directory is synced too, whenever its time of change shows a new name.
 */
export interface NewNames {
  /** Syncs the directory if a name was made or removed since it was last found settled; says whether it did. */
  syncIfChanged(): Promise<boolean>;
  close(): Promise<void>;
}

export async function watchNewNames(directory: string): Promise<NewNames> {
  const descriptor = await openDescriptor(directory, "r");
  let settledMs = Number.NaN;
  return {
    async syncIfChanged() {
      // Synchronous: it asks the kernel's memory, not the disk, and costs a tenth of a turn through the thread pool.
      const { mtimeMs } = fstatSync(descriptor);
      if (mtimeMs === settledMs) return false;
      await syncDescriptor(descriptor);
      if (Math.abs(Date.now() - mtimeMs) > tickMs) settledMs = mtimeMs;
      return true;
    },
    close: () => closeDescriptor(descriptor),
  };
}
