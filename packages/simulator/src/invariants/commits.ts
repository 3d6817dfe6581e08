/** Rule 7: what is committed, by whom, and on whose disks it lies at that moment. */
import type { Configuration, Entry, Index, NodeId, PeerStatus, RaftStatus } from "@holdfast/raft";
import type { GhostLog } from "./ghost-log.js";
import { demand } from "./invariant-error.js";
import { isQuorum } from "./quorums.js";
import type { Life, WatchedNode } from "./watched-node.js";

export interface CommitListener {
  onCommitted(entry: Entry, node: NodeId): void;
}

export class Commits {
  readonly #nodes: ReadonlyMap<NodeId, WatchedNode>;
  readonly #ghost: GhostLog;
  readonly #listener: CommitListener;
  /** In force when the newest entry was committed. */
  #configuration: Configuration | null = null;

  constructor(nodes: ReadonlyMap<NodeId, WatchedNode>, ghost: GhostLog, listener: CommitListener) {
    this.#nodes = nodes;
    this.#ghost = ghost;
    this.#listener = listener;
  }

  checkCommit(node: WatchedNode, life: Life): void {
    const { raft } = life.probe;
    demand(raft.commitIndex >= life.commitIndex && raft.lastApplied >= life.lastApplied, "monotonic", () => {
      return `${node.id} goes back from commitIndex ${life.commitIndex}, lastApplied ${life.lastApplied}`;
    });
    if (raft.commitIndex === life.commitIndex) return;
    const ghost = this.#ghost;
    const from = Math.max(life.commitIndex, raft.logBase.position.index) + 1;
    const knownTo = Math.min(raft.commitIndex, ghost.commitPoint);
    for (let index = from; index <= knownTo; index += 1) {
      const known = ghost.committedChain(index);
      demand(known === null || raft.chainAt(index as Index) === known, "commit-agreement", () => {
        return `${node.id} commits another entry ${index} than was committed before`;
      });
    }
    if (raft.commitIndex > ghost.commitPoint) this.#onNews(node, life);
  }

  /** What is committed stays on a quorum's disks, whoever crashes: asked when a node starts on what its disk has kept. */
  checkKept(id: NodeId): void {
    const { commitPoint } = this.#ghost;
    if (this.#configuration === null) return;
    const isKept = this.#isHeldByQuorum(this.#configuration, commitPoint, this.#ghost.committedChain(commitPoint));
    demand(
      isKept,
      "commit-quorum",
      () => `${id} starts, and no quorum of disks holds the committed entry ${commitPoint}`,
    );
  }

  /** matchIndex never falls while a leader leads, and its peers' disks hold what it says. */
  checkMatches(node: WatchedNode, life: Life, status: RaftStatus): void {
    if (status.role !== "leader") return;
    const isSameLeader = life.role === "leader" && life.term === status.term;
    const before = isSameLeader ? (life.status?.peers ?? []) : [];
    for (const [at, peer] of status.peers.entries()) {
      const known = before[at]?.id === peer.id ? before[at] : before.find(({ id }) => id === peer.id);
      const matchBefore = known?.matchIndex ?? 0;
      demand(peer.matchIndex >= matchBefore, "monotonic", () => {
        return `${node.id} takes matchIndex of ${peer.id} back from ${matchBefore} to ${peer.matchIndex}`;
      });
      if (peer.matchIndex !== matchBefore) this.#checkMatch(node, life, status, peer);
    }
  }

  #checkMatch(node: WatchedNode, life: Life, status: RaftStatus, { id, matchIndex }: PeerStatus): void {
    const peer = this.#nodes.get(id);
    const disk = peer?.disk ?? null;
    // A peer that follows a later leader may have truncated what this one has not committed.
    if (peer === undefined || disk === null || disk.hardState.term > status.term) return;
    const chain = life.probe.raft.chainAt(matchIndex);
    const isHeld = chain === null ? disk.last.index >= matchIndex : peer.holds(matchIndex, chain);
    demand(isHeld || peer.promises.forgivenIndex >= matchIndex, "match-index", () => {
      return `${node.id} says that ${id} matches up to ${matchIndex}, its disk ends at ${disk.last.index} or differs`;
    });
  }

  /** The first node commits these. */
  #onNews(node: WatchedNode, life: Life): void {
    const { raft } = life.probe;
    const { commitIndex } = raft;
    const ghost = this.#ghost;
    // A leader may have been deposed in the same turn, after it had counted.
    const isLeader = raft.role === "leader";
    const term = isLeader ? raft.term : life.term;
    demand(isLeader || life.role === "leader", "commit-quorum", () => {
      return `${node.id} commits up to ${commitIndex} without leading, committed was up to ${ghost.commitPoint}`;
    });
    demand(raft.termAt(commitIndex) === term, "commit-own-term", () => {
      return `${node.id} commits up to ${commitIndex} of term ${raft.termAt(commitIndex)} in its term ${term}`;
    });
    const chain = raft.chainAt(commitIndex);
    // An entry of the same turn may have changed the configuration after the count.
    const before = life.status?.configuration ?? raft.configuration;
    const counted = [raft.configuration, before].find((each) => this.#isHeldByQuorum(each, commitIndex, chain));
    demand(counted !== undefined, "commit-quorum", () => {
      return `${node.id} commits up to ${commitIndex}, no quorum of disks holds that`;
    });
    this.#configuration = counted;
    while (ghost.commitPoint < commitIndex) {
      const entry = raft.entryAt((ghost.commitPoint + 1) as Index);
      demand(entry !== null, "commit-agreement", () => {
        return `${node.id} commits up to ${commitIndex} and has no entry ${ghost.commitPoint + 1}`;
      });
      ghost.commit(entry.chain);
      this.#listener.onCommitted(entry, node.id);
    }
  }

  #isHeldByQuorum(configuration: Configuration, index: Index, chain: number | null): boolean {
    if (chain === null) return false;
    return isQuorum(configuration, (id) => this.#nodes.get(id)?.holds(index, chain) === true);
  }
}
