/** What an all-seeing observer checks over all nodes and all their lives (docs/testing.md, invariants 1 to 10). */
import assert from "node:assert/strict";
import type { Configuration, Entry, Index, Message, NodeId } from "../../src/index.js";
import { MembershipGhost } from "./membership-ghost.js";
import type { TestNode } from "./node.js";

interface PendingConfirm {
  readonly committed: number;
  readonly leaderTerm: number;
}

export class Ghost {
  readonly membership = new MembershipGhost();
  readonly #leaders = new Map<number, NodeId>();
  readonly #votes = new Map<string, NodeId>();
  readonly #chains = new Map<string, number>();
  readonly #committed = new Map<number, number>();
  readonly #applied = new Map<number, number>();
  readonly #confirms = new Map<number, PendingConfirm>();
  #lastCommitted = 0;
  #newestTerm = 0;

  get lastCommitted(): number {
    return this.#lastCommitted;
  }

  get leaderCount(): number {
    return this.#leaders.size;
  }

  /** Log matching: the same index and term mean the same chain value, hence the same prefix. */
  onAppended(entries: readonly Entry[]): void {
    for (const { index, term, chain } of entries) {
      const key = `${index}/${term}`;
      const known = this.#chains.get(key);
      assert.ok(known === undefined || known === chain, `log matching at ${key}`);
      this.#chains.set(key, chain);
    }
  }

  /** Election safety and leader completeness, when a node has become leader. */
  onLeader(node: TestNode): void {
    const { term, id } = node.raft;
    const other = this.#leaders.get(term);
    assert.ok(other === undefined || other === id, `one leader in term ${term}: ${other} and ${id}`);
    this.#leaders.set(term, id);
    this.#newestTerm = Math.max(this.#newestTerm, term);
    const hasVoted = (each: NodeId): boolean => each === id || this.#votes.get(`${each}/${term}`) === id;
    assert.ok(isQuorum(node.raft.configuration, hasVoted), `a quorum has voted for ${id} in term ${term}`);
    const last = this.#lastCommitted as Index;
    if (last > node.raft.logBase.position.index) {
      assert.equal(node.raft.chainAt(last), this.#committed.get(last), `leader completeness of ${id} in term ${term}`);
    }
  }

  /** A leader that has not heard a quorum for an election timeout is none. */
  onLeading(node: TestNode, electionTimeoutMsMin: number): void {
    const { id, raft, status } = node;
    const silent = status?.peers.filter((peer) => peer.heardMsAgo >= electionTimeoutMsMin).map((peer) => peer.id);
    const isHeard = (each: NodeId): boolean => silent?.includes(each) !== true;
    assert.ok(
      isQuorum(raft.configuration, isHeard),
      `leader ${id} has not heard a quorum, ${silent?.join()} are silent`,
    );
  }

  /** Nothing is committed twice in different ways; a leader commits only what a quorum holds durably. */
  onCommitted(node: TestNode, from: number, nodes: ReadonlyMap<NodeId, TestNode>, configuration: Configuration): void {
    const { raft } = node;
    for (let index = from + 1; index <= raft.commitIndex; index += 1) {
      const chain = raft.chainAt(index as Index);
      if (chain === null) continue;
      const known = this.#committed.get(index);
      assert.ok(known === undefined || known === chain, `entry ${index} is committed once`);
      this.#committed.set(index, chain);
      const entry = raft.entryAt(index as Index);
      if (entry !== null && known === undefined) this.membership.onCommitted(entry);
    }
    if (raft.role === "leader") {
      const isHeld = (id: NodeId): boolean => holds(nodes.get(id), raft.commitIndex, raft.chainAt(raft.commitIndex));
      assert.ok(isQuorum(configuration, isHeld), `a quorum holds entry ${raft.commitIndex} durably`);
    }
    this.#lastCommitted = Math.max(this.#lastCommitted, raft.commitIndex);
  }

  /** State machine safety: equal index, equal state, however a node got there. */
  onApplied(index: number, hash: number): void {
    const known = this.#applied.get(index);
    assert.ok(known === undefined || known === hash, `states differ at index ${index}`);
    this.#applied.set(index, hash);
  }

  /** Durable promises: what leaves after the disk is on the disk, and votes are given once over all lives. */
  onLeaving(node: TestNode, to: NodeId, message: Message): void {
    const { disk, id } = node;
    assert.ok(disk.hardState.term >= message.term, `${message.kind} of a term that is not durable`);
    if (message.kind === "vote") this.#onVote(node, id, message.term);
    if (message.kind === "voteAnswer" && message.granted) this.#onVote(node, to, message.term);
    // In a batch of several outputs the term may have moved on: then the promise was kept as long as it bound.
    if (disk.hardState.term > message.term) return;
    const index = message.kind === "appendAccepted" ? message.matchIndex : 0;
    assert.ok(disk.lastIndex >= index, `acknowledged ${index}, durable up to ${disk.lastIndex}`);
    if (message.kind === "snapshotAnswer" && message.installed) {
      assert.ok(disk.lastIndex >= message.snapshotIndex, "an installed snapshot is durable");
    }
  }

  /** Nothing that promises leaves before the disk. */
  onSent(message: Message): void {
    const early = ["heartbeat", "heartbeatAnswer", "preVote", "preVoteAnswer", "append", "timeoutNow", "snapshotChunk"];
    assert.ok(early.includes(message.kind), `${message.kind} left before the disk`);
  }

  onConfirmAsked(id: number): void {
    this.#confirms.set(id, { committed: this.#lastCommitted, leaderTerm: this.#newestTerm });
  }

  /** Linearizable reads: all that anybody knew to be committed when it was asked is covered, and no later leader was there. */
  onConfirmed(node: TestNode, id: number, index: number): void {
    const asked = this.#confirms.get(id);
    assert.ok(asked !== undefined, "only what was asked is confirmed, once");
    this.#confirms.delete(id);
    assert.ok(index >= asked.committed, `confirmed at ${index} what was asked at ${asked.committed}`);
    assert.ok(node.raft.term >= asked.leaderTerm, "a deposed leader confirms nothing");
  }

  onUnconfirmed(id: number): void {
    assert.ok(this.#confirms.delete(id), "an unconfirmed request was asked, and is answered once");
  }

  #onVote(node: TestNode, candidate: NodeId, term: number): void {
    const key = `${node.id}/${term}`;
    const known = this.#votes.get(key);
    assert.ok(known === undefined || known === candidate, `${node.id} votes once in term ${term}`);
    this.#votes.set(key, candidate);
    const { hardState } = node.disk;
    const isDurable = hardState.term > term || (hardState.term === term && hardState.votedFor === candidate);
    assert.ok(isDurable, `the vote of ${node.id} for ${candidate} in term ${term} is durable`);
  }
}

/** Counted here by hand: the observer shares no arithmetic with whom it watches. */
function isQuorum({ voters, outgoing }: Configuration, isIn: (id: NodeId) => boolean): boolean {
  return [voters, outgoing].every(
    (half) => half.length === 0 || 2 * half.filter(({ id }) => isIn(id)).length > half.length,
  );
}

function holds(node: TestNode | undefined, index: number, chain: number | null): boolean {
  if (node === undefined) return false;
  return index < node.disk.base.position.index || node.disk.chainAt(index) === chain;
}
