/** What a leader knows of one peer's log, and what it may send it next. Stale and repeated answers change nothing. */
import { indexAfter, maxIndex, minIndex, zeroIndex } from "./position.js";
import type { Index, LogBase, NodeId } from "./types.js";

/**
 * probe: where the logs agree is unknown; one append is out at a time. replicate: appends are pipelined within a window.
 * snapshot: the peer needs entries that the log no longer has.
 */
type ProgressState = "probe" | "replicate" | "snapshot";

export interface SnapshotSending {
  base: LogBase;
  /** The chunk that is being read, is on its way, or comes next. */
  chunk: number;
  /** waiting: for `retryAtMs`, after a failure. */
  phase: "reading" | "sent" | "waiting";
  retryAtMs: number;
  backoffMs: number;
  /** A repeated answer may be old: going back to an earlier chunk is allowed once after each failure. */
  mayRewind: boolean;
}

interface Leaving {
  /** Of the configuration that removed it. */
  readonly index: Index;
  /** Set when that is committed; Infinity before. */
  untilMs: number;
}

/** What to send now: entries (with a probe perhaps none), an empty append as a question, or nothing. */
type NextAppend = "entries" | "empty" | "none";

export class Progress {
  readonly id: NodeId;
  state: ProgressState = "probe";
  /** The peer holds the log up to here, durably. */
  matchIndex: Index = zeroIndex;
  /** The next entry to send; always greater than matchIndex. */
  nextIndex: Index;
  /** When any message of this term last came from the peer; before that, since when it has been listened for. */
  heardMs: number;
  /** Since it was removed: it is sent the log until it can have learnt that. Null for a member. */
  leaving: Leaving | null = null;
  /** The newest quorum round that the peer has answered. */
  round = 0;
  snapshot: SnapshotSending | null = null;
  /** Last index of each append that is out, in the order of sending; used in replicate. */
  readonly #inFlight: Index[] = [];
  readonly #inFlightMax: number;
  #isProbeOut = false;
  /** Ask where the peer stands, without sending entries (again). */
  #isQuestionDue = false;
  /** Since when an answer has been owed without any coming. */
  #waitingSinceMs = Number.POSITIVE_INFINITY;

  constructor(id: NodeId, nextIndex: Index, nowMs: number, appendsInFlightMax: number) {
    this.id = id;
    this.nextIndex = nextIndex;
    this.heardMs = nowMs;
    this.#inFlightMax = appendsInFlightMax;
  }

  get inFlight(): number {
    return this.state === "probe" && this.#isProbeOut ? 1 : this.#inFlight.length;
  }

  nextAppendFor(lastIndex: Index): NextAppend {
    if (this.state === "snapshot") return "none";
    if (this.state === "probe" && this.#isProbeOut) return "none";
    if (this.#isQuestionDue) return "empty";
    if (this.state === "probe") return "entries";
    return this.nextIndex <= lastIndex && this.#inFlight.length < this.#inFlightMax ? "entries" : "none";
  }

  /** An append was sent whose last entry (or, when empty, its previous position) is at `last`. */
  onSent(last: Index, nowMs: number): void {
    this.#isQuestionDue = false;
    if (this.state === "probe") {
      this.#isProbeOut = true;
      this.#waitingSinceMs = nowMs;
      return;
    }
    if (last < this.nextIndex || this.#inFlight.length === 0) this.#waitingSinceMs = nowMs;
    if (last < this.nextIndex) return;
    this.#inFlight.push(last);
    this.nextIndex = indexAfter(last);
  }

  /** The peer holds the log up to `index`. Returns whether that is news. */
  onAccepted(index: Index, nowMs: number): boolean {
    const isNews = index > this.matchIndex;
    this.matchIndex = maxIndex(this.matchIndex, index);
    this.nextIndex = maxIndex(this.nextIndex, indexAfter(this.matchIndex));
    if (this.state === "probe") {
      this.#becomeReplicate();
    } else if (this.state === "replicate" && isNews) {
      const answered = this.#inFlight.findIndex((last) => last > this.matchIndex);
      this.#inFlight.splice(0, answered === -1 ? this.#inFlight.length : answered);
      this.#waitingSinceMs = this.#inFlight.length > 0 ? nowMs : Number.POSITIVE_INFINITY;
    }
    return isNews;
  }

  /**
   * The peer has no entry that fits `rejected`, the previous index of an append; `agreed` is the last index where the logs may agree.
   * Returns false for a stale answer, which changes nothing.
   */
  onRejected(rejected: Index, agreed: Index): boolean {
    if (this.state === "snapshot" || rejected <= this.matchIndex) return false;
    // A probe has one question out: an answer to any other is late.
    if (this.state === "probe" && rejected !== this.nextIndex - 1) return false;
    const behind = minIndex(agreed, indexAfter(rejected, -1));
    this.#becomeProbe(indexAfter(maxIndex(this.matchIndex, behind)));
    return true;
  }

  /**
   * The peer lives, but has owed an answer for too long: an append or its answer was lost, or its disk is slow. An empty append asks where
   * it stands, and costs nothing if all is well.
   */
  onAnswerOverdue(nowMs: number, patienceMs: number): void {
    if (nowMs - this.#waitingSinceMs < patienceMs) return;
    this.#isProbeOut = false;
    this.#isQuestionDue = true;
    this.#waitingSinceMs = nowMs;
  }

  /**
   * Appends in flight may be lost: find anew where the logs agree. The question starts no further back than the log's base: only a peer that
   * says it lacks that needs a snapshot.
   */
  becomeProbe(baseIndex: Index): void {
    const nextIndex = this.state === "probe" ? this.nextIndex : indexAfter(this.matchIndex);
    this.#becomeProbe(maxIndex(nextIndex, indexAfter(baseIndex)));
  }

  becomeSnapshot(snapshot: SnapshotSending): void {
    this.#clear();
    this.state = "snapshot";
    this.snapshot = snapshot;
  }

  #becomeProbe(nextIndex: Index): void {
    this.#clear();
    this.state = "probe";
    this.nextIndex = nextIndex;
  }

  #becomeReplicate(): void {
    this.#clear();
    this.state = "replicate";
    this.nextIndex = indexAfter(this.matchIndex);
  }

  #clear(): void {
    this.snapshot = null;
    this.#inFlight.length = 0;
    this.#isProbeOut = false;
    this.#isQuestionDue = false;
    this.#waitingSinceMs = Number.POSITIVE_INFINITY;
  }
}
