import { SnapshotLoader } from "../src/index.js";
import type { LockMachine, SnapshotPiece } from "../src/index.js";

/** A copy of the machine by way of a snapshot, through JSON as through any codec. */
export function restored(machine: LockMachine, budget = 3): LockMachine {
  const cursor = machine.beginSnapshot();
  const loader = new SnapshotLoader({ min: 1, max: Number.MAX_SAFE_INTEGER });
  for (let piece = cursor.next(budget); piece !== null; piece = cursor.next(budget)) loader.push(throughJson(piece));
  return loader.finish();
}

export function throughJson(piece: SnapshotPiece): SnapshotPiece {
  return JSON.parse(JSON.stringify(piece)) as SnapshotPiece;
}
