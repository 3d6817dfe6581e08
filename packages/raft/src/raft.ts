/**
 * The consensus core: one synchronous object without clock, chance or I/O of its own. Events go in through `step`; what the host must do
 * comes out of `takeOutput`. See docs/architecture.md for the parts.
 */
import { assert, assertNever, InvariantError } from "./assert.js";
import { Core } from "./core.js";
import { leaveIfRemoved, nextDeadlineFor, onTime } from "./deadlines.js";
import {
  onLeaderGone,
  onPersistedVote,
  onPreVote,
  onPreVoteAnswer,
  onTimeoutNow,
  onVote,
  onVoteAnswer,
} from "./election.js";
import { answerOldLeader, onAppend, onHeartbeat } from "./follower.js";
import { isWellFormed } from "./message-checks.js";
import type { Progress } from "./progress.js";
import { beginRound, isRoundDue, onConfirm, onHeartbeatAnswer } from "./read-index.js";
import {
  areAppendsDue,
  fillAppends,
  maybeCommit,
  onAppendAccepted,
  onAppendRejected,
  onHeartbeatAnswered,
  onPropose,
  onSnapshotInstalled,
} from "./replication.js";
import type { Leader } from "./role.js";
import { onChunkWanted, onPeerResetWhileSending, onSnapshotRead, onSnapshotTaken } from "./snapshot-sending.js";
import { onSnapshotChunk } from "./snapshot-receiving.js";
import { statusOf } from "./status.js";
import { isTimeoutNowDue, onTransfer, sendTimeoutNow } from "./transfer.js";
import type {
  Configuration,
  Entry,
  Event,
  Index,
  LogBase,
  Message,
  NodeId,
  Output,
  Position,
  RaftOptions,
  RaftParts,
  RaftStatus,
  Restored,
  RoleName,
  Term,
} from "./types.js";

type MessageOf<Kind extends Message["kind"]> = Message & { readonly kind: Kind };
type Answer = MessageOf<"appendAccepted" | "appendRejected" | "heartbeatAnswer" | "snapshotAnswer">;

export class Raft {
  readonly #core: Core;

  /** Throws InvariantError when what storage gave back is no log of a Raft node. */
  constructor(options: RaftOptions, parts: RaftParts, restored: Restored) {
    checkOptions(options);
    this.#core = new Core(options, parts, restored);
  }

  /** Throws InvariantError when a rule of safety is broken: the process must end, and nothing more may leave it. */
  step(event: Event): void {
    const core = this.#core;
    core.advanceTime(event.nowMs);
    switch (event.kind) {
      case "tick":
        // Time acts here alone: after a stall, what waited in the sockets is heard before its lack is noticed.
        onTime(core);
        break;
      case "received":
        onReceived(core, event.from, event.message);
        break;
      case "propose":
        onPropose(core, event.proposal);
        break;
      case "confirm":
        onConfirm(core, event.id);
        break;
      case "persisted":
        onPersisted(core, event.number);
        break;
      case "peerGone":
        onPeerGone(core, event.peer);
        break;
      case "peerReset":
        onPeerReset(core, event.peer);
        break;
      case "transfer":
        onTransfer(core, event.to);
        break;
      case "snapshotTaken":
        onSnapshotTaken(core, event.base);
        break;
      case "snapshotRead":
        onSnapshotRead(core, event);
        break;
      default:
        assertNever(event);
    }
    leaveIfRemoved(core);
  }

  /** What the host must do next; null when there is nothing. A long apply comes in several outputs. */
  takeOutput(): Output | null {
    const core = this.#core;
    const { log, outbox, role } = core;
    if (role.kind === "leader") prepareLeader(core, role);
    const committed = core.takeCommitted();
    if (outbox.isEmpty && !log.hasUnsaved && committed.length === 0) return null;
    const hardState = core.takeHardState();
    const chunk = outbox.chunk;
    const output = outbox.take(hardState, log.takeUnsaved(), committed);
    if (hardState !== null || output.truncateFrom !== null || output.entries.length > 0 || chunk !== null) {
      const installs = chunk?.done === true ? core.installing : null;
      core.writes.onTaken(output.number, core.nowMs, hardState, log.lastIndex, installs);
    }
    return output;
  }

  hasOutput(): boolean {
    const core = this.#core;
    const { role } = core;
    if (!core.outbox.isEmpty || core.log.hasUnsaved || core.hasCommitted) return true;
    return role.kind === "leader" && isLeaderDue(core, role);
  }

  /** When a tick is due, on the clock of `nowMs`. 0 before the first event, Infinity when time alone changes nothing. */
  nextDeadlineMs(): number {
    return nextDeadlineFor(this.#core);
  }

  get id(): NodeId {
    return this.#core.id;
  }

  get term(): Term {
    return this.#core.term;
  }

  get votedFor(): NodeId | null {
    return this.#core.votedFor;
  }

  get role(): RoleName {
    return this.#core.roleName;
  }

  /** Null while none is known. */
  get leader(): NodeId | null {
    return this.#core.leader;
  }

  get commitIndex(): Index {
    return this.#core.commitIndex;
  }

  /** The last entry that was handed out in `Output.committed`, or the installed snapshot's. */
  get lastApplied(): Index {
    return this.#core.lastApplied;
  }

  get lastIndex(): Index {
    return this.#core.log.lastIndex;
  }

  get lastPosition(): Position {
    return this.#core.log.last;
  }

  /** The own log is durable up to here; 0 while a received snapshot has taken its place and is not durable itself. */
  get persistedIndex(): Index {
    return this.#core.writes.persistedIndex;
  }

  /** The newest complete snapshot's base, or the cluster's first base. */
  get base(): LogBase {
    return this.#core.snapshotBase;
  }

  get snapshotIndex(): Index {
    return this.#core.snapshotBase.position.index;
  }

  /** Where the log in memory begins: at `base` or, for slow followers, behind it. */
  get logBase(): LogBase {
    return this.#core.log.base;
  }

  /** The configuration in force: the last one in the log, committed or not. */
  get configuration(): Configuration {
    return this.#core.log.configuration;
  }

  /** Null when the log doesn't hold it (any more). */
  entryAt(index: Index): Entry | null {
    return this.#core.log.entryAt(index);
  }

  /** Null outside of the log and its base. */
  termAt(index: Index): Term | null {
    return this.#core.log.termAt(index);
  }

  /** The chain value at `index`, which vouches for all before it; null outside of the log and its base. */
  chainAt(index: Index): number | null {
    return this.#core.log.chainAt(index);
  }

  /** The base of a snapshot of the state machine at `index`, with the configuration as of that index. Throws unless it is applied and known. */
  baseAt(index: Index): LogBase {
    const { log, lastApplied, appliedBase } = this.#core;
    const base = appliedBase?.position.index === index ? appliedBase : log.baseAt(index);
    if (base === null || index > lastApplied) {
      throw new InvariantError(
        "a snapshot is taken of what has been applied",
        `index ${index}, applied ${lastApplied}`,
      );
    }
    return base;
  }

  /** For people, metrics and checks. */
  status(): RaftStatus {
    return statusOf(this.#core);
  }
}

function prepareLeader(core: Core, leader: Leader): void {
  if (isRoundDue(core, leader)) beginRound(core, leader);
  if (isTimeoutNowDue(core, leader)) sendTimeoutNow(core, leader);
  fillAppends(core, leader);
}

function isLeaderDue(core: Core, leader: Leader): boolean {
  return isRoundDue(core, leader) || isTimeoutNowDue(core, leader) || areAppendsDue(core, leader);
}

/** Term rules first (thesis 3.3), then the message's own. Pre-votes are outside of them: they change no term. */
function onReceived(core: Core, from: NodeId, message: Message): void {
  if (from === core.id || !isWellFormed(message)) return;
  const comesFromLeader = isOfLeader(message);
  // A leader counts by its term, whatever the own configuration says of it: a node behind may not know it yet (thesis 4.1).
  if (!comesFromLeader && !core.isMember(from)) return;
  if (message.kind === "preVote") {
    onPreVote(core, from, message);
    return;
  }
  if (message.kind === "preVoteAnswer") {
    onPreVoteAnswer(core, from, message);
    return;
  }
  // A vote request doesn't even raise the term of a node that hears its leader, or a disturber could depose it (thesis 4.2.3).
  if (message.kind === "vote" && message.term >= core.term && core.isSticky && !message.transfer) return;
  if (message.term < core.term) {
    onOldTerm(core, from, message);
    return;
  }
  if (message.term > core.term) {
    core.becomeFollower(
      message.term,
      comesFromLeader ? from : null,
      comesFromLeader ? `heard leader ${from}` : `${from} is in a later term`,
    );
  }
  dispatch(core, from, message);
}

function isOfLeader(message: Message): boolean {
  return message.kind === "append" || message.kind === "heartbeat" || message.kind === "snapshotChunk";
}

/** Late, or from a node that has missed an election: it learns the term. Late answers say nothing. */
function onOldTerm(core: Core, from: NodeId, message: Message): void {
  if (message.kind === "vote") core.send(from, { kind: "voteAnswer", term: core.term, granted: false });
  else answerOldLeader(core, from, message);
}

function dispatch(core: Core, from: NodeId, message: Exclude<Message, MessageOf<"preVote" | "preVoteAnswer">>): void {
  switch (message.kind) {
    case "vote":
      onVote(core, from, message);
      break;
    case "voteAnswer":
      onVoteAnswer(core, from, message);
      break;
    case "append":
      onAppend(core, from, message);
      break;
    case "heartbeat":
      onHeartbeat(core, from, message);
      break;
    case "snapshotChunk":
      onSnapshotChunk(core, from, message);
      break;
    case "timeoutNow":
      onTimeoutNow(core, from);
      break;
    case "appendAccepted":
    case "appendRejected":
    case "heartbeatAnswer":
    case "snapshotAnswer":
      onAnswer(core, from, message);
      break;
    default:
      assertNever(message);
  }
}

function onAnswer(core: Core, from: NodeId, message: Answer): void {
  const { role } = core;
  const peer = core.peerFor(from);
  // The own leadership is over, or the peer has left the configuration.
  if (role.kind !== "leader" || peer === null) return;
  peer.heardMs = core.nowMs;
  switch (message.kind) {
    case "appendAccepted":
      onAppendAccepted(core, role, peer, message);
      break;
    case "appendRejected":
      onAppendRejected(core, peer, message);
      break;
    case "heartbeatAnswer":
      onHeartbeatAnswer(core, role, peer, message.round);
      onHeartbeatAnswered(core, peer);
      break;
    case "snapshotAnswer":
      if (message.installed) onSnapshotInstalled(core, role, peer, message.snapshotIndex);
      else onChunkWanted(core, peer, message);
      break;
    default:
      assertNever(message);
  }
}

function onPersisted(core: Core, number: number): void {
  assert(number <= core.outbox.number, "only an output that was taken can be persisted");
  const installed = core.writes.onPersisted(number);
  if (installed !== null) core.onInstalled(installed);
  onPersistedVote(core);
  if (core.role.kind === "leader") maybeCommit(core, core.role);
}

function onPeerGone(core: Core, peer: NodeId): void {
  onPeerReset(core, peer);
  if (core.role.kind === "follower" && core.role.leader === peer) onLeaderGone(core, peer);
}

function onPeerReset(core: Core, id: NodeId): void {
  const peer: Progress | null = core.peerFor(id);
  if (peer === null) return;
  if (peer.snapshot === null) peer.becomeProbe(core.log.baseIndex);
  else onPeerResetWhileSending(core, peer.snapshot);
}

function checkOptions(options: RaftOptions): void {
  const { electionTimeoutMsMin, heartbeatMs, diskStallMs, limits } = options;
  const isPositive = (value: number): boolean => Number.isSafeInteger(value) && value > 0;
  assert([electionTimeoutMsMin, heartbeatMs, diskStallMs].every(isPositive), "times are whole milliseconds above 0");
  assert(heartbeatMs < electionTimeoutMsMin, "heartbeats come more often than elections");
  const { uncommittedBytesMax, appendsInFlightMax, appendBytesMax, appendEntriesMax, committedBytesPerOutputMax } =
    limits;
  const counts = [
    uncommittedBytesMax,
    appendsInFlightMax,
    appendBytesMax,
    appendEntriesMax,
    committedBytesPerOutputMax,
  ];
  assert(counts.every(isPositive), "limits are whole numbers above 0");
  const maybeZero = [limits.trailingEntriesMax, limits.reservedBytesMax];
  assert(
    maybeZero.every((value) => value === 0 || isPositive(value)),
    "limits are whole numbers",
  );
}
