/**
 * Gives chunks of this node's snapshots to followers, and keeps one that is on its way to a follower although a newer one is there: else
 * a follower that takes a snapshot more slowly than new ones come would begin anew for ever. A backup is read from it in the same way.
 */
import type { Index, RaftStatus } from "@holdfast/raft";
import type { Store } from "@holdfast/storage";

export interface SnapshotChunk {
  /** Null: that snapshot is gone. */
  readonly bytes: Uint8Array | null;
  readonly done: boolean;
}

/** So many newer ones may complete meanwhile: bounds what the disk holds. The core keeps no more of the log for long either. */
const newerMax = 8;

const gone: SnapshotChunk = { bytes: null, done: false };

export class SnapshotSource {
  private readonly store: Store;
  /** How many chunks each snapshot has that was the newest once, and may still be there. */
  private readonly chunks = new Map<Index, number>();
  /** The newest, while older ones are kept for followers. */
  private newest: Index | null = null;
  private newer = 0;
  /** Of a backup that is being read. */
  private pinned: Index | null = null;

  constructor(store: Store) {
    this.store = store;
    this.noteNewest();
  }

  /** Only the snapshot's own count says which chunk is its last. */
  async read(index: Index, chunk: number): Promise<SnapshotChunk> {
    this.noteNewest();
    const chunks = this.chunks.get(index);
    if (chunks === undefined || chunk >= chunks) return gone;
    const bytes = await this.store.readChunk(index, chunk);
    return { bytes, done: bytes !== null && chunk === chunks - 1 };
  }

  /** Null when it isn't known any more. */
  chunksOf(index: number): number | null {
    this.noteNewest();
    return this.chunks.get(index as Index) ?? null;
  }

  /** This node has completed a snapshot of its own. */
  noteTaken(index: Index): void {
    this.noteNewest();
    this.newest = index;
    this.newer += 1;
  }

  /** Keeps it for a backup as if a follower took it; null gives it free. */
  pin(index: Index | null): void {
    this.pinned = index;
  }

  get isRemovalDue(): boolean {
    return this.newest !== null;
  }

  /** Up to where the log and older snapshots may go now; null while a follower that is heard takes an older one. */
  takeRemovable({ peers }: Pick<RaftStatus, "peers">, heardWithinMs: number): Index | null {
    const { newest } = this;
    if (newest === null) return null;
    const isPinned = this.pinned !== null && this.pinned < newest;
    const isTaken = peers.some(
      ({ snapshot, heardMsAgo }) => snapshot !== null && snapshot.index < newest && heardMsAgo < heardWithinMs,
    );
    const isOlderOnItsWay = isPinned || isTaken;
    if (isOlderOnItsWay && this.newer <= newerMax) return null;
    this.newest = null;
    this.newer = 0;
    for (const index of this.chunks.keys()) if (index < newest) this.chunks.delete(index);
    return newest;
  }

  private noteNewest(): void {
    const { snapshot } = this.store;
    if (snapshot !== null) this.chunks.set(snapshot.base.position.index, snapshot.chunks);
  }
}
