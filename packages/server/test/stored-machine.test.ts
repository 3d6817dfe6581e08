import { strict as assert } from "node:assert";
import { describe, test } from "node:test";
import { LockMachine, VersionError } from "@holdfast/lock";
import { StorageError } from "@holdfast/storage";
import type { Store } from "@holdfast/storage";
import { encodeSnapshotPiece } from "@holdfast/wire";
import { loadMachine } from "../src/stored-machine.js";

type Snapshot = NonNullable<Store["snapshot"]>;

/** A store with a snapshot of one chunk. */
function storeOf(bytes: Uint8Array): Pick<Store, "snapshot" | "readChunk"> {
  const snapshot = { base: { position: { term: 1, index: 7 } }, chunks: 1 } as unknown as Snapshot;
  return { snapshot, readChunk: () => Promise.resolve(bytes) };
}

function pieceAt(version: number): unknown[] {
  const machine = new LockMachine();
  machine.apply(7, { kind: "setClusterVersion", version });
  return [...(machine.beginSnapshot().next(10) ?? [])];
}

describe("a stored snapshot", () => {
  test("is loaded, with the cluster version that it bears", async () => {
    const machine = await loadMachine(storeOf(encodeSnapshotPiece(pieceAt(2))), { min: 1, max: 2 });
    assert.equal(machine.clusterVersion, 2);
  });

  test("of a later release is no damage: its directory must not be put into quarantine for it", async () => {
    const [header = [], ...rest] = pieceAt(1) as unknown[][];
    const newerRecords = encodeSnapshotPiece([[header[0], 2, ...header.slice(2)], ...rest]);
    const newerEncoding = encodeSnapshotPiece(pieceAt(1)).slice();
    newerEncoding[0] = 2;
    for (const bytes of [newerRecords, newerEncoding]) {
      await assert.rejects(loadMachine(storeOf(bytes)), (error) => {
        return error instanceof StorageError && error.code === "newer_format";
      });
    }
    await assert.rejects(loadMachine(storeOf(encodeSnapshotPiece(pieceAt(2))), { min: 1, max: 1 }), VersionError);
  });

  test("that no release can have written is damage", async () => {
    const flipped = encodeSnapshotPiece(pieceAt(1)).slice();
    flipped[8] = (flipped[8] ?? 0) ^ 1;
    for (const bytes of [flipped, encodeSnapshotPiece([[0, 0, 7, []]]), encodeSnapshotPiece([[9]])]) {
      await assert.rejects(loadMachine(storeOf(bytes)), (error) => {
        return error instanceof StorageError && error.code === "damaged";
      });
    }
  });
});
