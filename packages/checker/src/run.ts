/** One history, sorted into books: what the rules read. */
import { CallBook } from "./books/calls.js";
import { ClusterBook } from "./books/cluster.js";
import { LeaseBook } from "./books/leases.js";
import { LogBook } from "./books/log.js";
import type { History } from "./history.js";
import { Ledger } from "./ledger.js";

export class Run {
  readonly history: History;
  /** Bound of the difference of clock rates. */
  readonly rho: number;
  readonly calls: CallBook = new CallBook();
  readonly leases: LeaseBook = new LeaseBook();
  readonly cluster: ClusterBook;
  readonly log: LogBook;
  readonly ledger: Ledger = new Ledger();

  /** The history is well-formed (rules/well-formed.ts). */
  constructor(history: History, rho: number) {
    this.history = history;
    this.rho = rho;
    this.cluster = new ClusterBook(history.nodes);
    this.log = new LogBook(history.firstIndex);
    for (const [position, event] of history.events.entries()) {
      this.calls.note(event, position);
      this.leases.note(event, position);
      this.cluster.note(event, position);
      this.log.note(event, position);
    }
  }

  /** The ledger knows all that was committed: no machine was found to be wrong, and there is a log. */
  get isLedgerWhole(): boolean {
    return !this.log.isEmpty && this.ledger.lastIndex === this.log.entries.at(-1)?.event.index;
  }

  /** True time at which an entry was committed. */
  commitAt(index: number): number {
    return this.log.entryAt(index)?.event.at ?? Number.POSITIVE_INFINITY;
  }

  /** Position of the event that committed an entry; Infinity: it never was. */
  commitPosition(index: number): number {
    return this.log.entryAt(index)?.position ?? Number.POSITIVE_INFINITY;
  }
}
