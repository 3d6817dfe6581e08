import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LockMachine } from "@holdfast/lock";
import type { IncomingChunk, Index, LogBase, Raft, Term } from "@holdfast/raft";
import type { Store } from "@holdfast/storage";
import type { Applier } from "../src/applier.js";
import { NodeSnapshots } from "../src/node-snapshots.js";

const configuration = { voters: [], outgoing: [], learners: [], removed: [] };

/** Of a node that has applied up to 100, and takes a snapshot after 10 entries. */
function snapshotsOf(persistedIndex: number): { snapshots: NodeSnapshots; begun: number[]; written: IncomingChunk[] } {
  const written: IncomingChunk[] = [];
  const begun: number[] = [];
  const raft: Partial<Raft> = {
    persistedIndex: persistedIndex as Index,
    baseAt: (index: Index): LogBase => {
      begun.push(index);
      return { position: { term: 1 as Term, index }, chain: 0, configuration };
    },
  };
  const applier: Partial<Applier> = { lastApplied: 100 as Index, machine: new LockMachine() };
  const store: Store = { snapshot: null, write: async () => {}, readChunk: async () => null, close: async () => {} };
  const options = { snapshotEntries: 10, snapshotBytes: 1_000_000, recordsPerPiece: 100, heardWithinMs: 500 };
  const snapshots = new NodeSnapshots(
    options,
    {
      raft: raft as Raft,
      applier: applier as Applier,
      store,
      persister: { enqueueOwnChunk: (chunk) => written.push(chunk), enqueueRemoval() {} },
    },
    {
      step() {},
      schedule() {},
      onFailed(error) {
        throw error;
      },
    },
  );
  return { snapshots, begun, written };
}

describe("a node's snapshots", () => {
  it("are begun after so many entries", () => {
    const { snapshots, written } = snapshotsOf(100);
    snapshots.noteApplied(9, 0);
    snapshots.advance();
    assert.equal(written.length, 0);
    snapshots.noteApplied(1, 0);
    snapshots.advance();
    assert.deepEqual([written.length, written[0]?.base.position.index], [1, 100]);
  });

  it("are not begun while a received one takes the log's place", () => {
    const { snapshots, begun } = snapshotsOf(0);
    snapshots.noteApplied(10, 0);
    snapshots.advance();
    assert.deepEqual(begun, []);
  });
});
