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

/** What an open command carries; known to the cluster once that command is answered from the log. */
interface Carried {
  readonly settled: RequestNumber;
  readonly seen: readonly RequestNumber[];
}

export class RequestBook {
  private next: RequestNumber = 1;
  /** Numbers that have not ended, rising. */
  private readonly open = new Set<RequestNumber>();
  /** The lowest of them, or `next`. */
  private settled: RequestNumber = 1;
  /** Ended numbers from `settled` on (and some below it) that no command has named. */
  private readonly untold = new Set<RequestNumber>();
  private readonly carried = new Map<RequestNumber, Carried>();
  /** Numbers whose outcome the cluster may be keeping, rising. */
  private readonly kept = new Set<RequestNumber>();

  /** How many outcomes the cluster may be keeping for this session; it refuses more than `outcomesPerSessionMax`. */
  get unseen(): number {
    return this.kept.size;
  }

  /** A new number, with what its command is to carry. That command is sent again, as it is, until it is answered. */
  begin(session: SessionId): SessionRequest {
    const request = this.next;
    this.next += 1;
    this.open.add(request);
    this.kept.add(request);
    const seen = request - this.settled > unsettledBeforeNaming ? this.takeUntold() : noNumbers;
    this.carried.set(request, { settled: this.settled, seen });
    return { session, request, settled: this.settled, seen };
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
    const carried = this.carried.get(request);
    if (carried === undefined) return;
    this.carried.delete(request);
    for (const number of carried.seen) this.kept.delete(number);
    for (const number of this.kept) {
      if (number >= carried.settled) break;
      this.kept.delete(number);
    }
  }

  /** The command was refused and is in no log: what it carried is still to be told. */
  unanswered(request: RequestNumber): void {
    const carried = this.carried.get(request);
    if (carried === undefined) return;
    this.carried.delete(request);
    this.kept.delete(request);
    for (const number of carried.seen) if (number >= this.settled) this.untold.add(number);
  }

  /** Nothing more will be listened to about this number. */
  end(request: RequestNumber): void {
    if (!this.open.delete(request)) return;
    if (request !== this.settled) {
      this.untold.add(request);
      if (this.untold.size > untoldBeforePurge) this.purge();
      return;
    }
    const [lowest = this.next] = this.open;
    this.settled = lowest;
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
