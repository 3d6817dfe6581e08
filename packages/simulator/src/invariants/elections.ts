/**
 * Nobody disturbs a leader that is heard (PreVote and stickiness, thesis 9.6 and 4.2.3), judged by the messages alone: who campaigns has a
 * quorum's pre-votes or was asked to take over, and who hears its leader gives neither pre-vote nor vote, and doesn't follow a vote request into a
 * later term. And nobody votes for a log that is behind its own (thesis 3.6.1). Voters alone stand for election and count in one (thesis
 * 4.2.1), and whose removal is known to be committed gets nobody's vote.
 */
import type { Event, Message, NodeId, Position, Raft, RoleName } from "@holdfast/raft";
import { demand } from "./invariant-error.js";
import { isQuorum } from "./quorums.js";
import { Recent } from "./recent.js";

const remembered = 256;

/** What is committed at an index or below it. */
export interface CommittedMembers {
  isRemovedAt(id: NodeId, index: number): boolean;
  hadVoteAt(id: NodeId, index: number): boolean;
}

const nobodyRemoved: CommittedMembers = { isRemovedAt: () => false, hadVoteAt: () => false };

/** Of one life of a node. */
export class Elections {
  readonly #id: NodeId;
  readonly #electionTimeoutMs: number;
  #leader: NodeId | null = null;
  #leaderTerm = 0;
  #heardMs = 0;
  /** Who would vote for it, by the term that it asked for. */
  readonly #preVotes = new Recent<number, Set<NodeId>>(remembered);
  readonly #takeOvers = new Recent<number, true>(remembered);
  /** Questions that came only while the leader was heard. */
  readonly #toRefuse = new Recent<string, boolean>(remembered);
  /** Questions of those whose log was behind whenever they asked. */
  readonly #isBehind = new Recent<string, boolean>(remembered);
  /** Questions that came from, or to, a node that was removed, as this one knew. */
  readonly #isOfRemoved = new Recent<string, boolean>(remembered);
  /** Who has voted for it, by term. */
  readonly #votes = new Recent<number, Set<NodeId>>(remembered);
  readonly #committed: CommittedMembers;
  #termAtVote: number | null = null;
  #role: RoleName = "follower";

  constructor(id: NodeId, electionTimeoutMs: number, committed: CommittedMembers = nobodyRemoved) {
    this.#id = id;
    this.#electionTimeoutMs = electionTimeoutMs;
    this.#committed = committed;
  }

  beforeStep(raft: Raft, event: Event): void {
    this.#termAtVote = null;
    this.#role = raft.role;
    if (event.kind !== "received") return;
    const { from, message } = event;
    if (message.kind === "voteAnswer" && message.granted) addTo(this.#votes, message.term, from);
    if (message.kind === "timeoutNow" && message.term === raft.term && raft.leader === from) {
      this.#takeOvers.set(message.term + 1, true);
    }
    if (message.kind !== "preVote" && message.kind !== "vote") return;
    this.#noteLog(raft, questionOf(message.kind, from, message.term), message.last);
    if (message.kind === "vote" && message.transfer) return;
    const isHeard = this.#hearsLeader(raft, event.nowMs);
    const key = questionOf(message.kind, from, message.term);
    const isRemoved =
      this.#committed.isRemovedAt(from, raft.commitIndex) || this.#committed.isRemovedAt(this.#id, raft.commitIndex);
    this.#isOfRemoved.set(key, isRemoved && this.#isOfRemoved.get(key) !== false);
    this.#toRefuse.set(key, isHeard && this.#toRefuse.get(key) !== false);
    if (isHeard && message.kind === "vote") this.#termAtVote = raft.term;
  }

  afterStep(raft: Raft, event: Event): void {
    if (raft.role !== this.#role) this.#checkRole(raft);
    if (event.kind === "peerGone" && event.peer === this.#leader) this.#leader = null;
    if (event.kind !== "received") return;
    const { from, message } = event;
    const before = this.#termAtVote;
    demand(before === null || raft.term === before, "stickiness", () => {
      return `${this.#id} hears its leader, and follows a vote request of ${from} from term ${before} to ${raft.term}`;
    });
    if (isOfLeader(message) && message.term === raft.term && raft.leader === from) {
      this.#leader = from;
      this.#leaderTerm = message.term;
      this.#heardMs = event.nowMs;
    }
    if (message.kind === "preVoteAnswer" && message.granted) addTo(this.#preVotes, message.term, from);
  }

  checkSent(raft: Raft, to: NodeId, message: Message): void {
    if (message.kind === "vote") this.#checkCampaign(raft, message.term, message.transfer);
    else if (message.kind === "preVoteAnswer" && message.granted) this.#checkGranted("preVote", to, message.term);
    else if (message.kind === "voteAnswer" && message.granted) this.#checkGranted("vote", to, message.term);
  }

  #checkCampaign(raft: Raft, term: number, transfer: boolean): void {
    const voters = this.#preVotes.get(term);
    const may = transfer
      ? this.#takeOvers.has(term)
      : isQuorum(raft.configuration, (id) => id === this.#id || voters?.has(id) === true);
    demand(may, "pre-vote", () => {
      return `${this.#id} campaigns in term ${term}, and ${transfer ? "nobody asked it to" : "no quorum would vote for it"}`;
    });
  }

  #checkRole({ role, term, configuration, commitIndex }: Raft): void {
    if (role !== "preCandidate" && role !== "candidate" && role !== "leader") return;
    const isVoter = [...configuration.voters, ...configuration.outgoing].some(({ id }) => id === this.#id);
    // Its removal may never be committed, and its log be the only one that can win (thesis 4.2.2).
    const mayStand = isVoter || this.#committed.hadVoteAt(this.#id, commitIndex);
    demand(mayStand, "vote-quorum", () => `${this.#id} becomes ${role} in term ${term}, and has no vote`);
    demand(!this.#committed.isRemovedAt(this.#id, commitIndex), "removed-node", () => {
      return `${this.#id} becomes ${role} in term ${term}, and knows that it was removed`;
    });
    if (role !== "leader") return;
    const votes = this.#votes.get(term);
    demand(
      isQuorum(configuration, (id) => id === this.#id || votes?.has(id) === true),
      "vote-quorum",
      () => {
        return `${this.#id} leads in term ${term} by the votes of ${[...(votes ?? [])].join(", ")}, no quorum`;
      },
    );
  }

  #noteLog(raft: Raft, question: string, last: Position): void {
    const ownTerm = raft.termAt(raft.lastIndex) ?? 0;
    const isBehind = last.term < ownTerm || (last.term === ownTerm && last.index < raft.lastIndex);
    this.#isBehind.set(question, isBehind && this.#isBehind.get(question) !== false);
  }

  #checkGranted(kind: "preVote" | "vote", to: NodeId, term: number): void {
    demand(this.#isBehind.get(questionOf(kind, to, term)) !== true, "leader-completeness", () => {
      return `${this.#id} grants ${to} a ${kind} for term ${term}, and that node's log is behind its own`;
    });
    demand(this.#isOfRemoved.get(questionOf(kind, to, term)) !== true, "removed-node", () => {
      return `${this.#id} grants ${to} a ${kind} for term ${term}, and knows that one of them was removed`;
    });
    demand(this.#toRefuse.get(questionOf(kind, to, term)) !== true, "stickiness", () => {
      return `${this.#id} hears its leader, and grants ${to} a ${kind} for term ${term}`;
    });
  }

  #hearsLeader({ role, term }: Raft, nowMs: number): boolean {
    if (role === "leader") return true;
    if (role !== "follower" && role !== "learner") return false;
    return this.#leader !== null && this.#leaderTerm === term && nowMs - this.#heardMs < this.#electionTimeoutMs;
  }
}

function questionOf(kind: "preVote" | "vote", from: NodeId, term: number): string {
  return `${kind} ${term} ${from}`;
}

function addTo(sets: Recent<number, Set<NodeId>>, term: number, id: NodeId): void {
  const known = sets.get(term);
  if (known === undefined) sets.set(term, new Set([id]));
  else known.add(id);
}

function isOfLeader({ kind }: Message): boolean {
  return kind === "append" || kind === "heartbeat" || kind === "snapshotChunk";
}
