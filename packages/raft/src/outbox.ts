/**
 * Gathers what the next output says. Which queue a message goes to depends on its kind alone: what promises
 * something about the log or a vote waits for the disk.
 */
import { assert, assertNever } from "./assert.js";
import type { Unsaved } from "./log.js";
import type {
  ChangeOutcome,
  Configuration,
  Entry,
  HardState,
  IncomingChunk,
  LogBase,
  Message,
  NodeId,
  Outbound,
  Output,
  RoleChange,
} from "./types.js";

type Refused = Output["refused"][number];
type Confirmed = Output["confirmed"][number];
type SnapshotRead = Output["snapshotReads"][number];

/** Empty lists are shared: most lists of most outputs are. */
const none: readonly never[] = Object.freeze([]);

export class Outbox {
  /** The term or the vote differs from what the last output said. */
  isHardStateDue = false;
  chunk: IncomingChunk | null = null;
  install: LogBase | null = null;
  configuration: Configuration | null = null;
  isRemovalDue = false;
  #number = 0;
  #heartbeats: Outbound[] = [];
  /** Answers to heartbeats and pre-votes: they promise nothing, and wait only for a hard state in the same output. */
  #answers: Outbound[] = [];
  #appends: Outbound[] = [];
  #chunks: Outbound[] = [];
  #afterPersist: Outbound[] = [];
  #confirmed: Confirmed[] = [];
  #unconfirmed: number[] = [];
  #refused: Refused[] = [];
  #snapshotReads: SnapshotRead[] = [];
  #roleChanges: RoleChange[] = [];
  #changes: ChangeOutcome[] = [];

  /** Number of the last output taken. */
  get number(): number {
    return this.#number;
  }

  get isEmpty(): boolean {
    return (
      !this.isHardStateDue &&
      this.chunk === null &&
      this.install === null &&
      this.configuration === null &&
      !this.isRemovalDue &&
      this.#heartbeats.length === 0 &&
      this.#answers.length === 0 &&
      this.#appends.length === 0 &&
      this.#chunks.length === 0 &&
      this.#afterPersist.length === 0 &&
      this.#confirmed.length === 0 &&
      this.#unconfirmed.length === 0 &&
      this.#refused.length === 0 &&
      this.#snapshotReads.length === 0 &&
      this.#roleChanges.length === 0 &&
      this.#changes.length === 0
    );
  }

  send(to: NodeId, message: Message): void {
    this.#queueFor(message).push({ to, message });
  }

  /** One acknowledgement says all that earlier ones of the same turn said. */
  sendAccepted(to: NodeId, message: Message & { readonly kind: "appendAccepted" }): void {
    const last = this.#afterPersist.at(-1);
    const isCovered =
      last?.to === to && last.message.kind === "appendAccepted" && last.message.matchIndex <= message.matchIndex;
    if (isCovered) this.#afterPersist.pop();
    this.send(to, message);
  }

  confirm(id: number, index: Confirmed["index"]): void {
    this.#confirmed.push({ id, index });
  }

  unconfirm(id: number): void {
    this.#unconfirmed.push(id);
  }

  refuse(id: number, code: Refused["code"]): void {
    this.#refused.push({ id, code });
  }

  readSnapshot(to: NodeId, base: LogBase, chunk: number): void {
    this.#snapshotReads.push({ to, base, chunk });
  }

  answerChange(outcome: ChangeOutcome): void {
    this.#changes.push(outcome);
  }

  changeRole(change: RoleChange): void {
    this.#roleChanges.push(change);
  }

  /**
   * The term rose: what waits for the disk and was not taken yet is dropped, as if lost. An acknowledgement of the old term may speak of
   * entries that are truncated before this output is written, and a vote of it is never written at all.
   */
  onTermRisen(): void {
    if (this.#afterPersist.length > 0) this.#afterPersist = [];
  }

  /** Empties the outbox into the next output. */
  take(hardState: HardState | null, unsaved: Unsaved, committed: readonly Entry[]): Output {
    assert(
      this.chunk?.done !== true || unsaved.entries.length === 0,
      "the last chunk of a snapshot comes without entries",
    );
    assert(this.install === null || this.chunk === null, "a snapshot is installed before the next one is received");
    const waits = hardState !== null;
    this.#number += 1;
    const output: Output = {
      number: this.#number,
      hardState,
      truncateFrom: unsaved.truncateFrom,
      entries: unsaved.entries,
      chunk: this.chunk,
      send: joined(joined(this.#heartbeats, waits ? none : this.#answers), joined(this.#appends, this.#chunks)),
      sendAfterPersist: waits ? joined(this.#answers, this.#afterPersist) : listOrNone(this.#afterPersist),
      committed,
      install: this.install,
      confirmed: listOrNone(this.#confirmed),
      unconfirmed: listOrNone(this.#unconfirmed),
      refused: listOrNone(this.#refused),
      snapshotReads: listOrNone(this.#snapshotReads),
      roleChanges: listOrNone(this.#roleChanges),
      configuration: this.configuration,
      changes: listOrNone(this.#changes),
      isRemoved: this.isRemovalDue,
    };
    this.#clear();
    return output;
  }

  #clear(): void {
    this.isHardStateDue = false;
    this.chunk = null;
    this.install = null;
    this.configuration = null;
    this.isRemovalDue = false;
    // A list that was handed out belongs to the output: never emptied in place.
    if (this.#heartbeats.length > 0) this.#heartbeats = [];
    if (this.#answers.length > 0) this.#answers = [];
    if (this.#appends.length > 0) this.#appends = [];
    if (this.#chunks.length > 0) this.#chunks = [];
    if (this.#afterPersist.length > 0) this.#afterPersist = [];
    if (this.#confirmed.length > 0) this.#confirmed = [];
    if (this.#unconfirmed.length > 0) this.#unconfirmed = [];
    if (this.#refused.length > 0) this.#refused = [];
    if (this.#snapshotReads.length > 0) this.#snapshotReads = [];
    if (this.#roleChanges.length > 0) this.#roleChanges = [];
    if (this.#changes.length > 0) this.#changes = [];
  }

  #queueFor(message: Message): Outbound[] {
    switch (message.kind) {
      case "heartbeat":
        return this.#heartbeats;
      case "heartbeatAnswer":
      case "preVoteAnswer":
        return this.#answers;
      case "append":
      case "preVote":
      case "timeoutNow":
        return this.#appends;
      case "snapshotChunk":
        return this.#chunks;
      case "vote":
      case "voteAnswer":
      case "appendAccepted":
      case "appendRejected":
      case "snapshotAnswer":
        return this.#afterPersist;
      default:
        return assertNever(message);
    }
  }
}

function listOrNone<T>(list: readonly T[]): readonly T[] {
  return list.length > 0 ? list : none;
}

function joined(first: readonly Outbound[], second: readonly Outbound[]): readonly Outbound[] {
  if (second.length === 0) return listOrNone(first);
  return first.length === 0 ? second : [...first, ...second];
}
