/**
 * A session's request numbers, and what its commands tell the cluster of answers seen (docs/decisions/001-seen-requests.md):
 * `settled` covers all requests below it, `seen` names single ones above that. Everything kept here is O(open requests), also while
 * one request waits for hours and thousands pass it.
 */
import type { RequestNumber, SessionId, SessionRequest } from "@holdfast/lock";
import { limits } from "@holdfast/wire";

/** While so few numbers are above `settled`, naming single ones is not worth its bytes. */
const unsettledBeforeNaming = 128;
const untoldBeforePurge = 256;

export class RequestBook {
  private next: RequestNumber = 1;
  /** Numbers that have not ended, rising. */
  private readonly open = new Set<RequestNumber>();
  /** The lowest of them, or `next`. */
  private settled: RequestNumber = 1;
  /** Ended numbers from `settled` on (and some below it) that no command has named. */
  private readonly untold = new Set<RequestNumber>();
  /** What an unanswered command names, if it names any. */
  private readonly carried = new Map<RequestNumber, readonly RequestNumber[]>();

  /**
   * Whether the cluster keeps fewer than `max` outcomes of this session once it has applied all that was sent: those of open numbers,
   * and of ended ones that no command has named.
   */
  hasRoom(max: number): boolean {
    if (this.open.size + this.untold.size < max) return true;
    this.purge();
    return this.open.size + this.untold.size < max;
  }

  /** Whether another command could name so many ended numbers that it makes room, though it takes a number itself. */
  get canMakeRoom(): boolean {
    return this.untold.size >= limits.seenMax;
  }

  /** As begin, for a command whose only use is what it carries. */
  beginTelling(session: SessionId): SessionRequest {
    return this.beginWith(session, this.takeUntold());
  }

  /** A new number, with what its command is to carry. That command is sent again, as it is, until it is answered. */
  begin(session: SessionId): SessionRequest {
    return this.beginWith(session, this.next - this.settled > unsettledBeforeNaming ? this.takeUntold() : noNumbers);
  }

  /** What a command of an answered number carries if it is asked once more: its first copy has told the rest. */
  repeat(session: SessionId, request: RequestNumber): SessionRequest {
    return { session, request, settled: this.settled, seen: noNumbers };
  }

  /**
   * The log holds this number's command, so the cluster knows what it carried. The number itself may stay open: an acquire that
   * was told `waiting`.
   */
  answered(request: RequestNumber): void {
    this.carried.delete(request);
  }

  /** The command was refused and is in no log: what it carried is still to be told. */
  unanswered(request: RequestNumber): void {
    for (const number of this.carried.get(request) ?? noNumbers) if (number >= this.settled) this.untold.add(number);
    this.carried.delete(request);
  }

  /** Nothing more will be listened to about this number. */
  end(request: RequestNumber): void {
    if (!this.open.delete(request)) return;
    // An acquire that was cancelled before it was answered may be in no log: what it carried is told again.
    if (this.carried.has(request)) this.unanswered(request);
    if (request !== this.settled) {
      this.untold.add(request);
      if (this.untold.size > untoldBeforePurge) this.purge();
      return;
    }
    const [lowest = this.next] = this.open;
    this.settled = lowest;
  }

  private beginWith(session: SessionId, seen: readonly RequestNumber[]): SessionRequest {
    const request = this.next;
    this.next += 1;
    this.open.add(request);
    if (seen.length > 0) this.carried.set(request, seen);
    return { session, request, settled: this.settled, seen };
  }

  private takeUntold(): readonly RequestNumber[] {
    this.purge();
    const seen: RequestNumber[] = [];
    for (const number of this.untold) {
      if (seen.length >= limits.seenMax) break;
      seen.push(number);
      this.untold.delete(number);
    }
    return seen.sort((a, b) => a - b);
  }

  private purge(): void {
    for (const number of this.untold) if (number < this.settled) this.untold.delete(number);
  }
}

const noNumbers: readonly RequestNumber[] = [];
