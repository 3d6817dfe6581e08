/** The lock machine as the newest snapshot on disk has it. */
import { LockMachine, NewerSnapshotError, SnapshotError, SnapshotLoader, versionRange } from "@holdfast/lock";
import type { SnapshotPiece, VersionRange } from "@holdfast/lock";
import { StorageError } from "@holdfast/storage";
import type { Store } from "@holdfast/storage";
import { decodeSnapshotPiece, WireError } from "@holdfast/wire";

/**
 * Rejects with a StorageError: "damaged" for a snapshot that can't have been written by any release, "newer_format" for one of a later
 * release; and with a VersionError when the cluster has reached a version that is not in `versions`.
 */
export async function loadMachine(
  store: Pick<Store, "snapshot" | "readChunk">,
  versions: VersionRange = versionRange,
): Promise<LockMachine> {
  const { snapshot } = store;
  if (snapshot === null) return new LockMachine();
  const { index } = snapshot.base.position;
  const loader = new SnapshotLoader(versions);
  try {
    for (let chunk = 0; chunk < snapshot.chunks; chunk += 1) {
      const bytes = await store.readChunk(index, chunk);
      if (bytes === null) throw new SnapshotError(`chunk ${chunk} is missing`);
      loader.push(decodeSnapshotPiece(bytes) as SnapshotPiece);
    }
    return loader.finish();
  } catch (error) {
    if (!(error instanceof SnapshotError) && !(error instanceof WireError)) throw error;
    if (isNewerFormat(error)) {
      throw new StorageError("newer_format", `the snapshot at index ${index} is of a later release: ${error.message}`);
    }
    throw new StorageError("damaged", `the snapshot at index ${index} is damaged: ${error.message}`, error);
  }
}

/** A later release wrote it. */
export function isNewerFormat(error: unknown): boolean {
  return error instanceof NewerSnapshotError || (error instanceof WireError && error.code === "newer_format");
}
