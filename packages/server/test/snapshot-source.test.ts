import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Index, LogBase, PeerStatus, Term } from "@holdfast/raft";
import type { SnapshotInfo, Store } from "@holdfast/storage";
import { SnapshotSource } from "../src/snapshot-source.js";

const indexOf = (index: number): Index => index as Index;

/** A store whose snapshots are chunks of one byte, their index. */
function storeOf(): { store: Store; complete(index: number, chunks: number): void; remove(below: number): void } {
  const kept = new Map<number, number>();
  let newest: SnapshotInfo | null = null;
  const configuration = { voters: [], outgoing: [], learners: [], removed: [] };
  const store: Store = {
    get snapshot() {
      return newest;
    },
    write: async () => {},
    readChunk: async (index, chunk) => (chunk < (kept.get(index) ?? 0) ? new Uint8Array([index]) : null),
    close: async () => {},
  };
  return {
    store,
    complete: (index, chunks) => {
      kept.set(index, chunks);
      const base: LogBase = { position: { term: 1 as Term, index: indexOf(index) }, chain: 0, configuration };
      newest = { base, chunks };
    },
    remove: (below) => {
      for (const index of kept.keys()) if (index < below) kept.delete(index);
    },
  };
}

function peerTaking(index: number | null, heardMsAgo = 0): PeerStatus {
  const snapshot = index === null ? null : { index: indexOf(index), chunk: 0 };
  const numbers = { matchIndex: indexOf(0), nextIndex: indexOf(1), behindEntries: 0, inFlight: 0, heardMsAgo };
  return { id: "n2", membership: "voter", state: "snapshot", ...numbers, isCaughtUp: false, snapshot };
}

describe("snapshot source", () => {
  it("counts each snapshot's chunks by its own number", async () => {
    const { store, complete, remove } = storeOf();
    complete(10, 3);
    const source = new SnapshotSource(store);
    complete(20, 2);
    const bytes = (index: number): Uint8Array => new Uint8Array([index]);
    assert.deepEqual(await source.read(indexOf(10), 1), { bytes: bytes(10), done: false });
    assert.deepEqual(await source.read(indexOf(20), 1), { bytes: bytes(20), done: true });
    assert.deepEqual(await source.read(indexOf(10), 2), { bytes: bytes(10), done: true });
    assert.deepEqual(await source.read(indexOf(10), 3), { bytes: null, done: false });
    assert.deepEqual(await source.read(indexOf(15), 0), { bytes: null, done: false }, "of one that it never saw");
    remove(20);
    assert.deepEqual(await source.read(indexOf(10), 2), { bytes: null, done: false }, "the last one of what is gone");
  });

  it("keeps an older one for a backup, as it does for a follower", () => {
    const { store, complete } = storeOf();
    complete(10, 3);
    const source = new SnapshotSource(store);
    const taken = (): Index | null => source.takeRemovable({ peers: [] }, 500);
    source.pin(indexOf(10));
    complete(20, 3);
    source.noteTaken(indexOf(20));
    assert.equal(taken(), null);
    source.pin(null);
    assert.equal(taken(), 20);
    source.pin(indexOf(20));
    for (let index = 30; index <= 100; index += 10) {
      complete(index, 3);
      source.noteTaken(indexOf(index));
      assert.equal(taken(), null);
    }
    source.noteTaken(indexOf(110));
    assert.equal(taken(), 110, "and not for ever");
  });

  it("keeps an older one while a follower that is heard takes it, and not for ever", () => {
    const { store, complete } = storeOf();
    complete(10, 3);
    const source = new SnapshotSource(store);
    const taken = (peers: PeerStatus[]): Index | null => source.takeRemovable({ peers }, 500);
    assert.equal(taken([]), null, "nothing has been taken yet");
    complete(20, 3);
    source.noteTaken(indexOf(20));
    assert.equal(taken([peerTaking(10)]), null);
    assert.equal(source.isRemovalDue, true);
    assert.equal(
      taken([peerTaking(10, 501), peerTaking(20), peerTaking(null)]),
      20,
      "a follower that is gone keeps nothing",
    );
    assert.equal(source.isRemovalDue, false);
    for (let index = 30; index <= 100; index += 10) {
      complete(index, 3);
      source.noteTaken(indexOf(index));
      assert.equal(taken([peerTaking(20)]), null);
    }
    source.noteTaken(indexOf(110));
    assert.equal(taken([peerTaking(20)]), 110);
  });
});
