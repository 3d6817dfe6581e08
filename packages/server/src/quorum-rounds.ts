/**
 * Who waits for which quorum round. All that gathers in one turn shares one `confirm`; its callbacks run once the round has confirmed
 * this leader and the state machine has applied up to the index that the round vouches for (ReadIndex, thesis 6.4).
 */

/**
 * A round costs all nodes a turn: what has time begins one only so long after the last that it began. Ten thousand sessions send keepalives
 * every fraction of a millisecond, and their leases count from the sending, however long the answer takes.
 */
const patientEveryMs = 20;

export interface RoundCallbacks {
  readonly onReady: () => void;
  readonly onFailed: () => void;
}

export class QuorumRounds {
  private gathering: RoundCallbacks[] = [];
  /** What has time: it shares the next round that begins, whoever asked for it. */
  private patient: RoundCallbacks[] = [];
  private patientFromMs = Number.NEGATIVE_INFINITY;
  private readonly inFlight = new Map<number, RoundCallbacks[]>();
  /** Confirmed, but not yet applied; indexes rise. */
  private unapplied: { readonly index: number; readonly callbacks: RoundCallbacks[] }[] = [];
  private nextId = 1;

  gather(onReady: () => void, onFailed: () => void): void {
    this.gathering.push({ onReady, onFailed });
  }

  /** The same for what has time. */
  gatherPatiently(onReady: () => void, onFailed: () => void): void {
    this.patient.push({ onReady, onFailed });
  }

  /** The id to confirm for all that gathered, or null when nothing did that is due. */
  begin(nowMs: number): number | null {
    if (this.patient.length > 0 && nowMs >= this.patientFromMs) this.patientFromMs = nowMs + patientEveryMs;
    else if (this.gathering.length === 0) return null;
    const id = this.nextId;
    this.nextId += 1;
    this.inFlight.set(id, [...this.gathering, ...this.patient]);
    this.gathering = [];
    this.patient = [];
    return id;
  }

  /** When the next round is due, if nothing else asks for one before; infinity when none is. */
  nextDeadlineMs(): number {
    return this.patient.length > 0 ? this.patientFromMs : Number.POSITIVE_INFINITY;
  }

  onConfirmed(id: number, index: number): void {
    const callbacks = this.inFlight.get(id);
    if (callbacks === undefined) return;
    this.inFlight.delete(id);
    this.unapplied.push({ index, callbacks });
  }

  onUnconfirmed(id: number): void {
    const callbacks = this.inFlight.get(id);
    this.inFlight.delete(id);
    for (const { onFailed } of callbacks ?? []) onFailed();
  }

  onApplied(lastApplied: number): void {
    while (this.unapplied.length > 0 && (this.unapplied[0]?.index ?? 0) <= lastApplied) {
      for (const { onReady } of this.unapplied.shift()?.callbacks ?? []) onReady();
    }
  }

  /** Leadership is lost: what was confirmed but not yet answered isn't worth an answer any more. */
  failAll(): void {
    const failed = [...this.unapplied.flatMap(({ callbacks }) => callbacks), ...[...this.inFlight.values()].flat()];
    failed.push(...this.gathering, ...this.patient);
    this.unapplied = [];
    this.inFlight.clear();
    this.gathering = [];
    this.patient = [];
    for (const { onFailed } of failed) onFailed();
  }
}
