/**
 * The facts that all parts of the core share, and the only ways to change them. Roles are replaced in the becomeX methods, nowhere else.
 */
import { assert, InvariantError } from "./assert.js";
import { entryBytes, Log, noEntries } from "./log.js";
import { Outbox } from "./outbox.js";
import { indexAfter, nextTerm, zeroIndex } from "./position.js";
import { matchPeers } from "./peers.js";
import type { Progress } from "./progress.js";
import { voterIdsFor, voterSetsFor } from "./quorum.js";
import type { VoterSets } from "./quorum.js";
import type { Candidate, Follower, Leader, PreCandidate, Role } from "./role.js";
import type {
  Entry,
  EntryCodec,
  EntryKind,
  HardState,
  Index,
  LogBase,
  Message,
  NodeId,
  RaftOptions,
  RaftParts,
  Random,
  Restored,
  RoleChange,
  RoleName,
  Term,
} from "./types.js";
import { Writes } from "./writes.js";

export class Core {
  readonly id: NodeId;
  readonly options: RaftOptions;
  readonly codec: EntryCodec;
  readonly random: Random;
  readonly log: Log;
  readonly writes: Writes;
  readonly outbox: Outbox = new Outbox();
  nowMs = 0;
  term: Term;
  votedFor: NodeId | null;
  commitIndex: Index;
  lastApplied: Index;
  /** The last index that this term's leader has verified: no commitIndex of its heartbeats counts beyond it. Outlives roles, not the term. */
  verifiedIndex: Index = zeroIndex;
  role: Role;
  /** The newest complete snapshot's base; the log's own base may lie behind it. */
  snapshotBase: LogBase;
  /** A received snapshot whose last chunk is not durable yet: nothing is applied meanwhile. */
  installing: LogBase | null = null;
  /** The state machine's position while `installing`, when the log no longer knows it. */
  appliedBase: LogBase | null = null;
  sets: VoterSets;
  voterIds: readonly NodeId[];
  isVoter: boolean;
  /** A committed configuration lists this node as removed, and it doesn't lead any more. It never counts again. */
  isRemoved = false;
  /** When a non-leader campaigns; Infinity for a node that must not. */
  electionDeadlineMs: number = Number.POSITIVE_INFINITY;
  electionReason = "";
  /** For quorumValueFor, and made once, since they run for every answer: durable log, time last heard, round answered. */
  readonly matchFor: (id: NodeId) => number;
  readonly heardFor: (id: NodeId) => number;
  readonly roundFor: (id: NodeId) => number;
  #isStarted = false;
  #toldRole: RoleChange;

  constructor(options: RaftOptions, parts: RaftParts, restored: Restored) {
    const { hardState, base, entries } = restored;
    this.id = options.id;
    this.options = options;
    this.codec = parts.codec;
    this.random = parts.random;
    this.log = new Log(parts.codec, base);
    this.log.restore(entries);
    assert(hardState.term >= this.log.lastTerm, "no entry is of a later term than the hard state");
    this.writes = new Writes(hardState, this.log.lastIndex);
    this.term = hardState.term;
    this.votedFor = hardState.votedFor;
    this.commitIndex = base.position.index;
    this.lastApplied = base.position.index;
    this.snapshotBase = base;
    this.role = newFollower(null, 0);
    this.sets = voterSetsFor(this.log.configuration);
    this.voterIds = voterIdsFor(this.sets);
    this.isVoter = this.voterIds.includes(this.id);
    this.#noteRemoval();
    this.#toldRole = { role: this.roleName, term: this.term, leader: null, reason: "" };
    this.matchFor = (id) => (id === this.id ? this.writes.persistedIndex : (this.peerFor(id)?.matchIndex ?? zeroIndex));
    this.heardFor = (id) => (id === this.id ? Number.POSITIVE_INFINITY : (this.peerFor(id)?.heardMs ?? 0));
    this.roundFor = (id) => (id === this.id ? Number.POSITIVE_INFINITY : (this.peerFor(id)?.round ?? 0));
  }

  get isStarted(): boolean {
    return this.#isStarted;
  }

  get roleName(): RoleName {
    return this.role.kind === "follower" && !this.isVoter ? "learner" : this.role.kind;
  }

  get leader(): NodeId | null {
    if (this.role.kind === "leader") return this.id;
    return this.role.kind === "follower" ? this.role.leader : null;
  }

  /** True while a write handed to the disk has not returned for too long: such a node neither leads nor helps others to. */
  get isDiskOverdue(): boolean {
    // The same sum as the deadline's: with fractions of a millisecond a difference could fall short of it.
    return this.nowMs >= this.writes.oldestMs + this.options.diskStallMs;
  }

  /** A follower that heard its leader within the election timeout, or a leader: it lets nobody else be elected (thesis 4.2.3). */
  get isSticky(): boolean {
    if (this.role.kind !== "follower") return this.role.kind === "leader";
    return this.role.leader !== null && this.nowMs - this.role.heardMs < this.options.electionTimeoutMsMin;
  }

  /**
   * Voters, and those whose removal is in their log and not known to be committed: theirs may be the only log that can win, and be what
   * brings that very removal to the others (thesis 4.2.2). They don't count their own votes.
   */
  get mayCampaign(): boolean {
    const { log } = this;
    if (this.isVoter || log.configurationIndex <= this.commitIndex) return this.isVoter;
    const former = log.previousConfiguration;
    return former !== null && voterIdsFor(voterSetsFor(former)).includes(this.id);
  }

  get isSoleVoter(): boolean {
    return this.isVoter && this.voterIds.length === 1;
  }

  /** Time begins with the first event, and never falls. A sole voter has nobody to wait for. */
  advanceTime(nowMs: number): void {
    if (nowMs > this.nowMs) this.nowMs = nowMs;
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.drawElectionDeadline();
    if (this.isSoleVoter) this.campaignWithin(0, "the only voter");
  }

  peerFor(id: NodeId): Progress | null {
    return this.role.kind === "leader" ? (this.role.peers.get(id) ?? null) : null;
  }

  /** A peer that was not heard for an election timeout gets no bulk data. */
  wasHeardLately(peer: Progress): boolean {
    return this.nowMs - peer.heardMs < this.options.electionTimeoutMsMin;
  }

  isMember(id: NodeId): boolean {
    return this.voterIds.includes(id) || this.log.configuration.learners.some((member) => member.id === id);
  }

  /** Whether a committed configuration has removed it. */
  isRemovedId(id: NodeId): boolean {
    return this.log.configurationAt(this.commitIndex).removed.includes(id);
  }

  send(to: NodeId, message: Message): void {
    if (message.kind === "append" || message.kind === "heartbeat") {
      assert(this.writes.hardState.term === this.term, "a leader's own vote is durable before it leads");
    }
    this.outbox.send(to, message);
  }

  // Elections.

  drawElectionDeadline(): void {
    const minimumMs = this.options.electionTimeoutMsMin;
    const timeoutMs = minimumMs + this.random.integer(minimumMs);
    this.electionDeadlineMs = this.mayCampaign ? this.nowMs + timeoutMs : Number.POSITIVE_INFINITY;
    this.electionReason = "";
  }

  /** Campaign soon: after a random time up to `withinMs`, unless a leader is heard before. */
  campaignWithin(withinMs: number, reason: string): void {
    if (!this.mayCampaign) return;
    const dueMs = this.nowMs + this.random.integer(withinMs + 1);
    if (dueMs >= this.electionDeadlineMs) return;
    this.electionDeadlineMs = dueMs;
    this.electionReason = reason;
  }

  /** Somebody else is about to campaign and may well win: give it time for that. */
  postponeCampaign(): void {
    const { heartbeatMs } = this.options;
    const untilMs = this.nowMs + heartbeatMs + this.random.integer(heartbeatMs);
    if (untilMs > this.electionDeadlineMs) this.electionDeadlineMs = untilMs;
  }

  setVote(candidate: NodeId): void {
    if (this.votedFor === candidate) return;
    assert(this.votedFor === null, "one vote in a term");
    this.votedFor = candidate;
    this.outbox.isHardStateDue = true;
  }

  becomeFollower(term: Term, leader: NodeId | null, reason: string): Follower {
    const before = this.role;
    if (before.kind === "leader") this.#giveUpRequests(before);
    if (term > this.term) this.#adoptTerm(term);
    const role = newFollower(leader, this.nowMs);
    this.role = role;
    if (before.kind !== "follower" || leader !== null) this.drawElectionDeadline();
    this.#noteRemoval();
    this.noteRole(reason);
    return role;
  }

  becomePreCandidate(reason: string): PreCandidate {
    const role: PreCandidate = { kind: "preCandidate", ballots: new Map([[this.id, true]]) };
    this.role = role;
    this.drawElectionDeadline();
    this.noteRole(reason);
    return role;
  }

  becomeCandidate(reason: string): Candidate {
    this.#adoptTerm(nextTerm(this.term));
    this.setVote(this.id);
    const role: Candidate = { kind: "candidate", ballots: new Map() };
    this.role = role;
    this.drawElectionDeadline();
    this.noteRole(reason);
    return role;
  }

  becomeLeader(reason: string): Leader {
    assert(this.role.kind === "candidate", "only a candidate becomes leader");
    const { log, options } = this;
    const role: Leader = {
      kind: "leader",
      noopIndex: indexAfter(log.lastIndex),
      peers: new Map(),
      rounds: { round: 0, inFlight: null, gathering: [] },
      transfer: null,
      change: null,
      heartbeatDueMs: this.nowMs + options.heartbeatMs,
      uncommittedBytes: log.bytesOf(indexAfter(this.commitIndex), log.lastIndex),
    };
    this.role = role;
    this.electionDeadlineMs = Number.POSITIVE_INFINITY;
    matchPeers(this, role);
    this.noteRole(reason);
    this.appendOwn(role, "noop", noPayload);
    return role;
  }

  noteRole(reason: string): void {
    const change = { role: this.roleName, term: this.term, leader: this.leader, reason };
    const told = this.#toldRole;
    if (told.role === change.role && told.term === change.term && told.leader === change.leader) return;
    this.#toldRole = change;
    this.outbox.changeRole(change);
  }

  // The log.

  appendOwn(leader: Leader, kind: EntryKind, payload: Uint8Array): void {
    const { log, term } = this;
    const index = indexAfter(log.lastIndex);
    const chain = this.codec.chainFor(log.lastChain, index, term, kind, payload);
    leader.uncommittedBytes += entryBytes(payload);
    this.append({ index, term, kind, payload, chain });
  }

  append(entry: Entry): void {
    this.log.append(entry);
    if (entry.kind === "configuration") this.#onConfigurationChanged();
  }

  truncateFrom(index: Index): void {
    assert(this.role.kind !== "leader", "a leader only appends");
    if (index <= this.commitIndex) {
      throw new InvariantError(
        "committed entries stay",
        `truncation from ${index}, committed up to ${this.commitIndex}`,
      );
    }
    const before = this.log.configuration;
    this.log.truncateFrom(index);
    this.writes.onTruncated(index);
    if (this.log.configuration !== before) this.#onConfigurationChanged();
  }

  /**
   * A received snapshot takes the place of the log. What it holds is committed; it is applied when it is durable. Until then nothing of the
   * log counts as durable: an own snapshot that is being taken of the old one must not be completed behind it.
   */
  replaceLog(base: LogBase): void {
    if (this.appliedBase === null) this.appliedBase = this.log.baseAt(this.lastApplied);
    this.log.resetTo(base, this.commitIndex);
    this.writes.onTruncated(indexAfter(zeroIndex));
    this.commitIndex = base.position.index;
    this.installing = base;
    this.#onConfigurationChanged();
    this.#noteRemoval();
  }

  onInstalled(base: LogBase): void {
    assert(base === this.installing, "snapshots are installed one at a time");
    this.installing = null;
    this.appliedBase = null;
    this.snapshotBase = base;
    this.lastApplied = base.position.index;
    this.outbox.install = base;
  }

  /** The log is the leader's up to `index`. */
  noteVerified(index: Index): void {
    if (index > this.verifiedIndex) this.verifiedIndex = index;
  }

  advanceCommit(index: Index): void {
    if (index <= this.commitIndex) return;
    assert(index <= this.log.lastIndex, "nothing is committed that is not in the log");
    if (this.role.kind === "leader") {
      this.role.uncommittedBytes -= this.log.bytesOf(indexAfter(this.commitIndex), index);
      // Followers hear of it by the next append, or by a heartbeat as soon as ever.
      this.role.heartbeatDueMs = Math.min(this.role.heartbeatDueMs, this.nowMs + this.options.heartbeatMs);
    }
    this.commitIndex = index;
    this.#noteRemoval();
  }

  get hasCommitted(): boolean {
    return this.lastApplied < this.commitIndex && this.installing === null;
  }

  /** The entries to apply next, as many as one output may carry; they count as applied. */
  takeCommitted(): readonly Entry[] {
    if (!this.hasCommitted) return noEntries;
    const bytesMax = this.options.limits.committedBytesPerOutputMax;
    const entries = this.log.slice(indexAfter(this.lastApplied), this.commitIndex, bytesMax, Number.POSITIVE_INFINITY);
    this.lastApplied = indexAfter(this.lastApplied, entries.length);
    return entries;
  }

  /** What the host claims of a snapshot that it has taken. */
  assertApplied(base: LogBase): void {
    const { index } = base.position;
    assert(index <= this.lastApplied, "a snapshot is taken of what has been applied");
    assert(index <= this.writes.persistedIndex, "a snapshot is complete only when the log is durable up to it");
    assert(this.log.chainAt(index) === base.chain, "a snapshot's chain value is the log's");
  }

  takeHardState(): HardState | null {
    return this.outbox.isHardStateDue ? { term: this.term, votedFor: this.votedFor } : null;
  }

  #adoptTerm(term: Term): void {
    assert(term > this.term, "terms only rise");
    this.term = term;
    this.votedFor = null;
    this.verifiedIndex = zeroIndex;
    this.outbox.isHardStateDue = true;
    this.outbox.onTermRisen();
  }

  #giveUpRequests(leader: Leader): void {
    const { inFlight, gathering } = leader.rounds;
    for (const id of inFlight?.ids ?? []) this.outbox.unconfirm(id);
    for (const id of gathering) this.outbox.unconfirm(id);
    if (leader.change !== null) this.outbox.answerChange({ kind: "unknown", id: leader.change });
  }

  /** An uncommitted configuration may still be truncated, and a leader has yet to hand over. */
  #noteRemoval(): void {
    if (this.isVoter || this.isRemoved || this.role.kind === "leader" || !this.isRemovedId(this.id)) return;
    this.isRemoved = true;
    this.electionDeadlineMs = Number.POSITIVE_INFINITY;
    this.outbox.isRemovalDue = true;
  }

  #onConfigurationChanged(): void {
    const { configuration } = this.log;
    const wasVoter = this.isVoter;
    this.sets = voterSetsFor(configuration);
    this.voterIds = voterIdsFor(this.sets);
    this.isVoter = this.voterIds.includes(this.id);
    this.outbox.configuration = configuration;
    if (this.role.kind === "leader") matchPeers(this, this.role);
    else if (this.isVoter !== wasVoter) this.drawElectionDeadline();
    this.noteRole("the configuration changed");
  }
}

const noPayload = new Uint8Array(0);

function newFollower(leader: NodeId | null, nowMs: number): Follower {
  return { kind: "follower", leader, heardMs: nowMs, incoming: null };
}
