/** The lock machine as the newest snapshot on disk has it. */
import { LockMachine, SnapshotError, SnapshotLoader } from "@holdfast/lock";
import type { SnapshotPiece } from "@holdfast/lock";
import { StorageError } from "@holdfast/storage";
import type { Store } from "@holdfast/storage";
import { decodeSnapshotPiece, WireError } from "@holdfast/wire";

/** Rejects with a StorageError ("damaged") for a snapshot that can't have been written by this program. */
export async function loadMachine(store: Store): Promise<LockMachine> {
  const { snapshot } = store;
  if (snapshot === null) return new LockMachine();
  const { index } = snapshot.base.position;
  const loader = new SnapshotLoader();
  try {
    for (let chunk = 0; chunk < snapshot.chunks; chunk += 1) {
      const bytes = await store.readChunk(index, chunk);
      if (bytes === null) throw new SnapshotError(`chunk ${chunk} is missing`);
      loader.push(decodeSnapshotPiece(bytes) as SnapshotPiece);
    }
    return loader.finish();
  } catch (error) {
    if (!(error instanceof SnapshotError) && !(error instanceof WireError)) throw error;
    throw new StorageError("damaged", `the snapshot at index ${index} is damaged: ${error.message}`, error);
  }
}
