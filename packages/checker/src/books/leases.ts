/** Keepalives: when they were sent and read, and who vouched for them. */
import type { EventOf, HistoryEvent } from "../history.js";

interface Receipt {
  readonly node: string;
  readonly at: number;
  readonly position: number;
}

interface Sending {
  readonly at: number;
  readonly position: number;
  /** The highest term in which a leader had begun its lease clocks before. */
  readonly servingTerm: number;
  readonly servingPosition: number;
}

export interface Keepalive {
  readonly number: number;
  sent: Sending | null;
  readonly receipts: Receipt[];
}

/** A word that the session is renewed: given by a leader (`node`, `term`), or come to its client (both null). */
export interface Acknowledgement {
  readonly number: number;
  readonly node: string | null;
  readonly term: number | null;
  readonly at: number;
  readonly position: number;
}

/** What a library said was left, and when the keepalive was sent of whose acknowledgement it knew then; null: of none. */
export interface Remaining {
  readonly event: EventOf<"remaining">;
  readonly position: number;
  readonly sentAt: number | null;
}

class SessionLease {
  readonly session: number;
  readonly keepalives: Map<number, Keepalive> = new Map();
  readonly acknowledgements: Acknowledgement[] = [];
  lastReceiptAt: number | null = null;
  lastSentAt: number | null = null;
  /** Of the newest keepalive of whose acknowledgement its client knows. */
  lastToldSending: number | null = null;

  constructor(session: number) {
    this.session = session;
  }

  keepalive(number: number): Keepalive {
    let known = this.keepalives.get(number);
    if (known === undefined) {
      known = { number, sent: null, receipts: [] };
      this.keepalives.set(number, known);
    }
    return known;
  }

  /** When the acknowledged keepalive was read: by the node that vouches for it, or by anybody. Null: not known. */
  receiptOf({ number, node, position }: Acknowledgement): Receipt | null {
    const receipts = (this.keepalives.get(number)?.receipts ?? []).filter((each) => each.position < position);
    return receipts.findLast((each) => each.node === node) ?? receipts[0] ?? null;
  }

  /** When the client sent the newest keepalive of whose acknowledgement it knew then. Null: none. */
  lastToldSendingBefore(position: number): number | null {
    let last: number | null = null;
    for (const { node, number, position: toldAt } of this.acknowledgements) {
      const sentAt = this.keepalives.get(number)?.sent?.at ?? null;
      if (node === null && toldAt < position && sentAt !== null) last = Math.max(last ?? sentAt, sentAt);
    }
    return last;
  }
}

export class LeaseBook {
  readonly leases: Map<number, SessionLease> = new Map();
  readonly remaining: Remaining[] = [];
  /** Whether the history shows when nodes read keepalives at all. */
  hasReceipts = false;
  /** Whether it shows what keepalives clients send and what they learn of them. */
  hasWords = false;
  private readonly openings: Map<string, number> = new Map();
  private servingTerm = -1;
  private servingPosition = -1;

  /** When an openSession with this key first left its client. Null: not known. */
  firstOpeningOf(key: string): number | null {
    return this.openings.get(key) ?? null;
  }

  note(event: HistoryEvent, position: number): void {
    switch (event.kind) {
      case "openSent":
        if (!this.openings.has(event.key)) this.openings.set(event.key, event.at);
        return;
      case "serving":
        if (event.term <= this.servingTerm) return;
        this.servingTerm = event.term;
        this.servingPosition = position;
        return;
      case "keepaliveSent": {
        const lease = this.leaseOf(event.session);
        const { at } = event;
        lease.lastSentAt = at;
        const { servingTerm, servingPosition } = this;
        lease.keepalive(event.number).sent ??= { at, position, servingTerm, servingPosition };
        return;
      }
      case "remaining":
        this.remaining.push({ event, position, sentAt: this.leaseOf(event.session).lastToldSending });
        return;
      case "keepaliveReceived": {
        this.hasReceipts = true;
        const lease = this.leaseOf(event.session);
        lease.lastReceiptAt = event.at;
        lease.keepalive(event.number).receipts.push({ node: event.node, at: event.at, position });
        return;
      }
      case "keepaliveAcknowledged":
      case "keepaliveTold": {
        const { number, at } = event;
        const from = event.kind === "keepaliveTold" ? { node: null, term: null } : event;
        const { node, term } = from;
        const lease = this.leaseOf(event.session);
        lease.acknowledgements.push({ number, node, term, at, position });
        const sentAt = lease.keepalives.get(number)?.sent?.at ?? null;
        if (node !== null || sentAt === null) return;
        this.hasWords = true;
        lease.lastToldSending = Math.max(lease.lastToldSending ?? sentAt, sentAt);
        return;
      }
      default:
        return;
    }
  }

  private leaseOf(session: number): SessionLease {
    let lease = this.leases.get(session);
    if (lease === undefined) {
      lease = new SessionLease(session);
      this.leases.set(session, lease);
    }
    return lease;
  }
}
