/**
 * The consensus core: one synchronous object without clock, chance or I/O of its own. Events go in through `step`; what the host must do
 * comes out of `takeOutput`. See docs/architecture.md for the parts.
 */
import { assert, assertNever, InvariantError } from "./assert.js";
import { Core } from "./core.js";
import { nextDeadlineFor, onTime } from "./deadlines.js";
import { onLeaderGone, onPersistedVote } from "./election.js";
import { advanceMembership, onChangeMembers } from "./membership.js";
import type { Progress } from "./progress.js";
import { beginRound, isRoundDue, onConfirm } from "./read-index.js";
import { onReceived } from "./receiving.js";
import { areAppendsDue, fillAppends, maybeCommit, onPropose } from "./replication.js";
import type { Leader } from "./role.js";
import { onPeerResetWhileSending, onSnapshotRead, onSnapshotTaken } from "./snapshot-sending.js";
import { statusOf } from "./status.js";
import { isTimeoutNowDue, onTransfer, sendTimeoutNow } from "./transfer.js";
import type {
  Configuration,
  Entry,
  Event,
  Index,
  LogBase,
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
      case "changeMembers":
        onChangeMembers(core, event);
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
    advanceMembership(core);
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
