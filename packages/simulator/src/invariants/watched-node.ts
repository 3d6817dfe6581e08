/** What the watch keeps of one node: over all its lives, and of the running one. */
import type { HardState, Index, NodeId, Position, RaftStatus, RoleName, Term } from "@holdfast/raft";
import type { CoreTap } from "./core-tap.js";
import type { HostProbe } from "./host-probe.js";
import { Promises } from "./promises.js";

/** What of a disk is durable at the moment of asking. */
export interface DurableView {
  readonly hardState: HardState;
  readonly last: Position;
  termAt(index: Index): Term | null;
  /** Null outside of the stored log and its base. */
  chainAt(index: Index): number | null;
}

export interface NodeClock {
  monotonicMs(): number;
}

/** A configuration entry that stands in the node's log. */
export interface ConfigurationEntry {
  readonly index: Index;
  readonly chain: number;
  readonly payload: Uint8Array;
}

/** One life of a node's process, as it stood after its last event. */
export class Life {
  readonly probe: HostProbe;
  readonly clock: NodeClock;
  tap: CoreTap | null = null;
  /** It has stopped by itself. */
  isOver = false;
  status: RaftStatus | null = null;
  role: RoleName = "follower";
  term: number;
  commitIndex: number;
  lastApplied: number;
  lastIndex: Index;
  lastChain: number;
  baseIndex: number;
  snapshotIndex: number;
  persistedIndex: number;
  /** Of the log's entries. */
  configurations: ConfigurationEntry[] = [];
  /** So many stood in its log, and were cut off again. */
  truncatedConfigurations = 0;
  /** The configuration in force, as it was last checked: an object of the core. */
  configuration: object | null = null;
  machine: object | null = null;
  snapshotBegun: object | null = null;
  /** Own clock: when its last event was; when it woke after a gap; when it was first seen leading; when silence is looked at next. */
  eventMs: number;
  wokenMs: number;
  leadingSinceMs = 0;
  /** When the voters were last seen to change. */
  votersSinceMs: number = Number.NEGATIVE_INFINITY;
  silenceDueMs = 0;
  /** When something of a peer was last delivered, by the own clock; empty when nobody tells. */
  readonly heardMs: Map<NodeId, number> = new Map();

  constructor(probe: HostProbe, clock: NodeClock) {
    const { raft } = probe;
    this.probe = probe;
    this.clock = clock;
    this.term = raft.term;
    this.commitIndex = raft.commitIndex;
    this.lastApplied = raft.lastApplied;
    this.baseIndex = raft.logBase.position.index;
    this.snapshotIndex = raft.snapshotIndex;
    this.persistedIndex = raft.persistedIndex;
    // Nothing of its log was looked at yet.
    this.lastIndex = raft.logBase.position.index;
    this.lastChain = raft.logBase.chain;
    this.eventMs = clock.monotonicMs();
    this.wokenMs = this.eventMs;
  }

  /** Whether anything can have changed that a rule speaks of; of a leader peers may have. */
  get hasChanged(): boolean {
    const { raft } = this.probe;
    return (
      this.status === null ||
      raft.role === "leader" ||
      this.role !== raft.role ||
      this.term !== raft.term ||
      this.commitIndex !== raft.commitIndex ||
      this.lastApplied !== raft.lastApplied ||
      this.lastIndex !== raft.lastIndex ||
      this.persistedIndex !== raft.persistedIndex ||
      this.snapshotIndex !== raft.snapshotIndex ||
      this.lastChain !== raft.chainAt(raft.lastIndex) ||
      this.baseIndex !== raft.logBase.position.index ||
      this.status.votedFor !== raft.votedFor ||
      this.machine !== this.probe.machine ||
      this.snapshotBegun !== this.probe.snapshotBegun
    );
  }

  note(status: RaftStatus): void {
    this.status = status;
    this.role = status.role;
    this.term = status.term;
    this.commitIndex = status.commitIndex;
    this.lastApplied = status.lastApplied;
    this.lastIndex = status.last.index;
    this.lastChain = status.lastChain;
    this.baseIndex = status.logBase.index;
    this.snapshotIndex = status.snapshot.index;
    this.persistedIndex = status.persistedIndex;
  }
}

export class WatchedNode {
  readonly id: NodeId;
  readonly promises: Promises;
  /** Of log bases; objects of the core. */
  readonly checkedConfigurations: WeakSet<object> = new WeakSet();
  /** Its directory was emptied: it must never again take part under this id. */
  isWiped = false;
  /** Of its last life; what is durable outlives the process. */
  disk: DurableView | null = null;
  life: Life | null = null;
  /** Its log counted as durable up to here when it was last looked at, in this life or the last. */
  persistedIndex = 0;

  constructor(id: NodeId) {
    this.id = id;
    this.promises = new Promises(id);
  }

  /** Whether its disk holds the entry with this chain value. A disk whose loss is forgiven counts as holding what it had acknowledged. */
  holds(index: Index, chain: number): boolean {
    const { disk } = this;
    if (this.isWiped) return this.promises.forgivenIndex >= index;
    if (disk === null) return false;
    const stored = disk.chainAt(index);
    if (stored !== null && stored === chain) return true;
    // Covered by its snapshot: that only committed entries are compacted is checked where it happens.
    if (stored === null && disk.last.index >= index) return true;
    return this.promises.forgivenIndex >= index;
  }
}
